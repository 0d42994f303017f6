"""The lab without namespaces: servers on 127.0.0.1, throwaway folders, a scrubbed environment.

For machines where a seal cannot be had. What it cannot show is named in its facts.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.lab import kernel
from conformance.lab.engine import own_engine
from conformance.lab.environment import inside
from conformance.lab.plan import (
    BUNDLE_NAME,
    CANARY_NAME,
    LAB_VARIABLE,
    LOCK_NAME,
    Facts,
    Plan,
)
from conformance.lab.processes import close_all, exec_command, exit_code_of, fork, leave_group
from conformance.lab.servers.start import start_servers

if TYPE_CHECKING:
    from collections.abc import Iterator

_WATCH_SECONDS = 0.5
_SWEEPS = 20
_REMEDY = "use --lab=sealed on Linux, as root or with unprivileged user namespaces"
_NO_ENGINE = (
    "none answers at DOCKER_HOST or /var/run/docker.sock on this machine; start one, or run as "
    "root with dockerd installed and without --lab=loopback"
)

MISSING = {
    "names": f"a loopback lab has no host names but localhost; {_REMEDY}",
    "private": f"a loopback lab has no addresses but 127.0.0.1 and ::1; {_REMEDY}",
    "packets": f"a loopback lab does not see packets that nothing listens for; {_REMEDY}",
    "dns": f"a loopback lab has no resolver; {_REMEDY}",
    "files": f"a loopback lab does not protect the files of this machine; {_REMEDY}",
}


def run(plan: Plan) -> int:
    """Run the command beside the lab's servers, and give its exit code.

    Raises:
        LabUnavailable: the servers did not start.
    """
    kernel.die_with_parent(signal.SIGTERM)
    kernel.adopt_orphans()
    wake = _wake_on((signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP))
    scratch = Path(tempfile.mkdtemp(prefix="sandbox-conformance-"))
    try:
        return _run_in(plan, scratch, wake)
    finally:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # a second one must not leave the folder
        _kill_descendants()
        shutil.rmtree(scratch, ignore_errors=True)


def _run_in(plan: Plan, scratch: Path, wake: int) -> int:
    lab = scratch / "lab"
    canary = lab / CANARY_NAME
    canary.mkdir(parents=True)
    held = (canary / LOCK_NAME).open("w")  # while this process lives, and no other has it
    fcntl.lockf(held, fcntl.LOCK_EX)
    launcher = os.getpid()
    servers = start_servers(
        "loopback",
        lab,
        close=(*plan.pass_fds, plan.status, wake),
        prepare=lambda: _clear_up_after(launcher, scratch),
    )
    proxies = servers.await_ready()
    own = own_engine(plan.environ)
    facts = Facts(
        mode="loopback",
        proxies=proxies,
        missing=MISSING,
        engine_missing=_NO_ENGINE,
        own_engine=own,
    )
    facts.write(lab)
    environ = inside(plan.environ, scratch=scratch, lab=lab, bundle=lab / BUNDLE_NAME)
    os.write(plan.status, b"ready\n")

    def become_command() -> None:
        signal.set_wakeup_fd(-1)
        kernel.die_with_parent(signal.SIGKILL)
        if os.getppid() == launcher:
            exec_command(plan, environ)

    command = fork(become_command)
    leave_group(os.getpgid(plan.caller))
    close_all((plan.status, *plan.pass_fds))
    while True:
        for pid, status in _ended():
            if pid == command:
                return exit_code_of(status)
        signals = _await_signals(wake)
        if os.getppid() != plan.caller or signal.SIGTERM in signals or signal.SIGHUP in signals:
            return 128 + signal.SIGTERM


def _clear_up_after(launcher: int, scratch: Path) -> None:
    """Have the servers' process end the lab where the launcher was killed before it could."""

    def clear_up(_number: int, _frame: object) -> None:
        os.chdir("/")
        for _ in range(_SWEEPS):  # a process may have been starting another, or making files
            for pid in _processes_of(scratch):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            shutil.rmtree(scratch, ignore_errors=True)
            if not scratch.exists() and not _processes_of(scratch):
                break
        os._exit(128 + signal.SIGTERM)

    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, clear_up)
    kernel.die_with_parent(signal.SIGTERM)
    if os.getppid() != launcher:
        os.kill(os.getpid(), signal.SIGTERM)


def _processes_of(scratch: Path) -> list[int]:
    """Find the processes that were started with the lab's folder in their environment."""
    mark, found = os.fsencode(f"{LAB_VARIABLE}={scratch}/"), []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def _wake_on(numbers: tuple[signal.Signals, ...]) -> int:
    """Have these signals write their number to a pipe, and give its read end."""
    wake, written = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(written, False)
    signal.set_wakeup_fd(written)
    for number in numbers:
        signal.signal(number, lambda _number, _frame: None)
    return wake


def _await_signals(wake: int) -> bytes:
    select.select([wake], [], [], _WATCH_SECONDS)
    with suppress(BlockingIOError):
        return os.read(wake, 512)
    return b""


def _ended() -> Iterator[tuple[int, int]]:
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            yield pid, status


def _kill_descendants() -> None:
    """Kill what is left: children, and orphans that were handed to this process.

    Where orphans are not handed on (no /proc), the process group has to do.
    """
    if sys.platform != "linux":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(os.getpgrp(), signal.SIGTERM)
        return
    tasks = Path(f"/proc/self/task/{os.getpid()}/children")
    for _ in range(_SWEEPS):  # killing a parent hands its children over: look again
        children = [int(pid) for pid in tasks.read_text(encoding="ascii").split()]
        if not children:
            return
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in children:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
