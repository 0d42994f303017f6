"""Running a command inside a new laboratory, from any process.

The lab is made by a fresh, single-threaded process, the launcher: a process that already
has threads cannot be sealed in place, since its other threads would stay outside.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from conformance.lab.ending import Ending
from conformance.lab.environment import scrubbed
from conformance.lab.errors import LabUnavailable
from conformance.lab.plan import Plan
from conformance.run.foreground import terminal_lent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_ROOM_BYTES = 16_384
_START_SECONDS = 60.0
_ROOT = Path(__file__).resolve().parents[2]


def run_in_lab(
    command: Sequence[str],
    *,
    mode: Literal["auto", "sealed", "loopback"],
    cwd: Path,
    results: Sequence[Path],
    environ: Mapping[str, str],
    pass_fds: Sequence[int] = (),
    on_fallback: Callable[[str], None],
    on_interrupt: Callable[[], None] = lambda: None,
    leave_sockets: Sequence[Path] = (),
) -> int:
    """Run `command` inside a new laboratory and give its exit code.

    Everything that was made for the lab ends with this call, and with the calling process
    however that ends. Ctrl-C is passed on to the command; a second one kills it.

    Args:
        command: program and arguments.
        mode: "sealed" (namespaces), "loopback" (servers on 127.0.0.1 only), or "auto":
            sealed, or else loopback.
        cwd: working folder of the command.
        results: folders that the command really writes to; made where missing.
        environ: variables of the command; proxies, credentials and the like are left out.
        pass_fds: descriptors that the command inherits beside the standard three.
        on_fallback: told in one line why "auto" takes loopback, and how to get a seal.
        on_interrupt: told at the end of a run that Ctrl-C ended, whatever its exit code.
        leave_sockets: daemons' unix sockets that the subject needs; all others are masked.

    Returns:
        The exit code; 128 + n where signal n ended the command.

    Raises:
        LabUnavailable: the mode "sealed" cannot be had on this machine.
        KeyboardInterrupt: Ctrl-C came before the lab stood.
        ValueError: `mode` is none of the three.
    """
    if mode not in ("auto", "sealed", "loopback"):
        raise ValueError(f"mode is {mode!r}; give 'auto', 'sealed' or 'loopback'")
    for folder in results:
        folder.mkdir(parents=True, exist_ok=True)

    plan = Plan(
        command=tuple(command),
        mode="sealed",
        cwd=str(cwd.resolve()),
        results=tuple(str(folder.resolve()) for folder in results),
        environ=dict(environ),
        caller=os.getpid(),
        pass_fds=tuple(pass_fds),
        leave_sockets=tuple(str(path) for path in leave_sockets),
    )
    if mode != "loopback":
        try:
            return _launch(plan, on_interrupt)
        except LabUnavailable as unavailable:
            if mode == "sealed":
                raise
            on_fallback(unavailable.reason)
    return _launch(replace(plan, mode="loopback"), on_interrupt)


def _launch(plan: Plan, on_interrupt: Callable[[], None]) -> int:
    plan_end, plan_input = os.pipe()
    status, status_end = os.pipe()
    with contextlib.ExitStack() as descriptors, _children_waited_for(), Ending() as ending:
        for descriptor in (plan_input, status):
            descriptors.callback(os.close, descriptor)
        try:
            plan = replace(plan, status=status_end)
            process = _start(plan, plan_end)
            ending.of(process)
        finally:
            os.close(plan_end)
            os.close(status_end)
        with _ended_at_last(process, ending), terminal_lent(process.pid):
            with contextlib.suppress(BrokenPipeError):  # it ended: its status tells more
                _write(plan_input, plan.to_json().encode())
            try:
                _await_status(process, status)
            except LabUnavailable:
                if ending.is_asked_for():  # nobody wants another kind of lab then
                    raise KeyboardInterrupt from None
                raise
            if ending.is_asked_for():  # it may have come before there was a command to get it
                raise KeyboardInterrupt
            code = _exit_code(process)
            if ending.is_asked_for():
                on_interrupt()
            return code


def _start(plan: Plan, plan_end: int) -> subprocess.Popen[bytes]:
    environ = scrubbed(os.environ)  # the inside can read it in /proc
    environ["PYTHONPATH"] = os.pathsep.join(_import_path(environ.get("PYTHONPATH", "")))
    if not environ["PYTHONPATH"]:
        del environ["PYTHONPATH"]
    # Where instances of the lab's cloud, forked from it, put variables of their own.
    environ["ROOM"] = "." * _ROOM_BYTES
    return subprocess.Popen(
        # -P: the working folder is the subject's, and nothing of it may run outside the lab.
        [sys.executable, "-P", "-m", "conformance.lab.launcher", str(plan_end)],
        env=environ,
        pass_fds=(plan_end, plan.status, *plan.pass_fds),
        process_group=0,
    )


def _import_path(callers: str) -> Iterator[str]:
    """Give where the launcher imports from, before the interpreter's own: not the cwd."""
    installed = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")}
    if _ROOT not in installed:  # there already; and in front it could hide standard modules
        yield str(_ROOT)
    for entry in filter(None, callers.split(os.pathsep)):
        if Path(entry).resolve() not in (Path.cwd(), _ROOT):
            yield os.path.abspath(entry)


def _write(descriptor: int, data: bytes) -> None:
    # The length goes first: the launcher must not wait for an end of file that a child
    # started meanwhile by another thread of the caller might hold back.
    data = len(data).to_bytes(8, "big") + data
    while data:
        data = data[os.write(descriptor, data) :]


def _await_status(process: subprocess.Popen[bytes], status: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([status], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise LabUnavailable(
                f"the lab did not start within {_START_SECONDS:.0f} s; try --lab=loopback"
            )
        chunk = os.read(status, 4096)
        if not chunk:
            code = process.wait()
            if code == -signal.SIGINT:  # from the terminal, which was its already
                raise KeyboardInterrupt
            raise LabUnavailable(
                f"the lab's launcher ended with {code} before the lab stood; "
                "see its message above, or try --lab=loopback"
            )
        line += chunk
    if line != b"ready\n":
        raise LabUnavailable(line.decode("utf-8", "replace").strip())


def _exit_code(process: subprocess.Popen[bytes]) -> int:
    code = process.wait()
    return code if code >= 0 else 128 - code


@contextlib.contextmanager
def _children_waited_for() -> Iterator[None]:
    """Undo an ignored SIGCHLD: the kernel throws the exit code of each child away then.

    Raises:
        LabUnavailable: it is ignored, and only the main thread could change that.
    """
    if signal.getsignal(signal.SIGCHLD) is not signal.SIG_IGN:
        yield
        return
    if threading.current_thread() is not threading.main_thread():
        raise LabUnavailable(
            "this process ignores SIGCHLD, so it would not learn how the lab ended; "
            "call signal.signal(signal.SIGCHLD, signal.SIG_DFL) first"
        )
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)


@contextlib.contextmanager
def _ended_at_last(process: subprocess.Popen[bytes], ending: Ending) -> Iterator[None]:
    try:
        yield
    finally:
        if process.poll() is None:
            ending.harder()
            ending.harder()
            process.wait()
