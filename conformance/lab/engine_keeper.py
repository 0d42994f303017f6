"""The keeper: the process of a sealed lab that starts its container engine and adopts its kin.

It has a mount namespace of its own, in which the account's engine folder is the real one
and control groups can be written to; the engine sees all else as the subject does, so that
a bind mount of a container's reaches no file of the host's. The network namespace is the
subject's: what containers send takes the lab's wire, past its sniffers.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from conformance.lab import addresses, kernel
from conformance.lab.engine import CONTROL_SOCKET, RUNTIME, SOCKET
from conformance.lab.engine_api import EngineApi
from conformance.lab.engine_images import load_images
from conformance.lab.errors import LabError
from conformance.lab.processes import close_all, fork

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from conformance.lab.engine import Offer

_HOME = CONTROL_SOCKET.with_name("engine")
_CACHE, _FOLDER, _EXEC = _HOME / "cache", _HOME / "folder", _HOME / "exec"
_LOG, _CONFIGURATION = _HOME / "engine.log", _HOME / "daemon.json"
_PARTS = "/run/containerd"
_SLOTS = 8
_START_SECONDS = 60.0
_PAUSE_SECONDS = 0.02
_TICK_SECONDS = 1.0
# The engine and its parts begin anew with each container, and ended a third of that time
# collecting garbage that their end takes away as well.
_COLLECTING = "400"


def start_keeper(
    offered: Offer, handle: int, environ: Mapping[str, str], close: Iterable[int]
) -> int:
    """Fork the keeper, and give its id once it has what it needs of the host.

    Args:
        offered: what it is to start.
        handle: a descriptor of the offer's ancestor, opened before the seal; closed here.
        environ: the variables of the command.
        close: descriptors that are not the keeper's.

    Raises:
        OSError: the kernel refused a mount.
        LabError: the keeper ended.
    """
    _HOME.mkdir()
    kernel.mount("sandbox-conformance", str(_HOME), "tmpfs", kernel.MS_NOSUID, "mode=700")
    for place in (_CACHE, _FOLDER, _EXEC):
        place.mkdir()
    kernel.mount(f"/proc/self/fd/{handle}", str(_CACHE), None, kernel.MS_BIND)
    os.close(handle)
    ready, told = os.pipe()
    keeper = fork(lambda: _keep(offered, environ, told, [*close, ready]))
    os.close(told)
    answer = os.read(ready, 1)
    os.close(ready)
    # The keeper has them in its own namespace; nobody else is to.
    kernel.unmount(str(_CACHE))
    kernel.unmount(str(_HOME))
    if not answer:
        raise LabError("the keeper of the lab's engine ended; see the message above")
    return keeper


def _keep(offered: Offer, environ: Mapping[str, str], told: int, close: Iterable[int]) -> NoReturn:
    os.setsid()
    close_all(close)
    kernel.adopt_orphans()
    kernel.drop_capabilities(kernel.MACHINE_CAPABILITIES)
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.set_read_only(str(_CACHE), on=False)
    control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    control.bind(str(CONTROL_SOCKET))
    control.listen(64)
    control.settimeout(_TICK_SECONDS)
    os.write(told, b"y")
    os.close(told)
    engine = _Engine(offered, environ)
    while True:
        with suppress(TimeoutError):
            asker, _ = control.accept()
            with asker, suppress(OSError):  # the asker is gone
                asker.sendall(json.dumps(engine.answer()).encode())
        engine.reap()


class _Engine:
    """The engine, started at the first question.

    Args:
        offered: what is to be started.
        environ: the variables of the command.
    """

    def __init__(self, offered: Offer, environ: Mapping[str, str]) -> None:
        self._offered = offered
        self._environ = environ
        self._answer: dict[str, str] = {}
        self._api = EngineApi(str(SOCKET))
        self._pid = 0
        self._ended: int | None = None

    def answer(self) -> dict[str, str]:
        """Tell its address, or the reason why there is none."""
        if not self._answer:
            try:
                self._start()
                self._answer = {"address": f"unix://{SOCKET}"}
            except LabError as failure:
                self._answer = {"reason": failure.reason}
            except OSError as refused:
                self._answer = {"reason": f"{refused.strerror}: {refused.filename}"}
        return self._answer

    def reap(self) -> None:
        """Wait for what was handed to the keeper and has ended."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._pid:
                    self._ended = ended[1]

    def _start(self) -> None:
        folder = _CACHE / self._offered.rest
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        kernel.mount(str(folder), str(_FOLDER), None, kernel.MS_BIND)
        for point in self._offered.cgroup_mounts:
            kernel.set_read_only(point, on=False)
        if self._offered.runtime:
            for point in self._offered.unified:  # it refuses to work with both versions
                kernel.mount("sandbox-conformance", point, "tmpfs", kernel.MS_NOSUID, "mode=700")
        # Sockets between the engine's own parts, at a place that cannot be configured.
        os.makedirs(_PARTS, exist_ok=True)
        kernel.mount("sandbox-conformance", _PARTS, "tmpfs", kernel.MS_NOSUID, "mode=711")
        root = _free_root()
        self._pid = self._spawn(root)
        deadline = time.monotonic() + _START_SECONDS
        while not self._api.answers():
            self.reap()
            if self._ended is not None or time.monotonic() > deadline:
                raise LabError(f"{self._offered.program}: {_last_words()}")
            time.sleep(_PAUSE_SECONDS)
        self._api.remove(self._api.items())  # of a run that was killed
        load_images(self._api, _FOLDER / "images")

    def _spawn(self, root: Path) -> int:
        _CONFIGURATION.write_text("{}", encoding="ascii")  # in the place of the host's
        command = [
            self._offered.program,
            *("--config-file", str(_CONFIGURATION)),
            *("--data-root", str(root)),
            *("--exec-root", str(_EXEC)),
            *("--pidfile", str(_HOME / "engine.pid")),
            *("--host", f"unix://{SOCKET}"),
            *("--cgroup-parent", f"/{self._offered.cgroup}"),
            *("--dns", addresses.GATEWAY_IPV4),
            *("--dns-opt", "timeout:2", "--dns-opt", "attempts:2"),
            *("--shutdown-timeout", "2"),
            *("--log-level", "warn"),
        ]
        if runtime := self._offered.runtime:
            command += ["--add-runtime", f"{RUNTIME}={runtime}", "--default-runtime", RUNTIME]
        environ = {
            **self._environ,
            "HOME": str(_HOME),
            "TMPDIR": str(_HOME),
            "GOGC": _COLLECTING,
        }
        with _LOG.open("wb") as log:
            child = subprocess.Popen(
                command,
                env=environ,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=lambda: kernel.die_with_parent(signal.SIGKILL),  # noqa: PLW1509 - no threads here
            )
        child.returncode = 0  # it is waited for with all others, in `reap`
        return child.pid


def _free_root() -> Path:
    """Take a data root that no other run has; it is given back by the end of this process.

    Raises:
        LabError: all are taken.
    """
    for number in range(_SLOTS):
        root = _FOLDER / f"root-{number}"
        root.mkdir(mode=0o711, exist_ok=True)
        lock = os.open(root.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            return root
    raise LabError(f"{_SLOTS} runs have an engine already; wait for one to end")


def _last_words() -> str:
    lines = _LOG.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:500] if lines else "it did not answer, and said nothing"
