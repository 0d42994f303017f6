"""An instance: a process with namespaces, files and a network of its own."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from conformance.lab import addresses, devices, kernel
from conformance.lab.cloud import forks, wires
from conformance.lab.errors import LabError
from conformance.lab.processes import fork

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PROGRAMS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SETTINGS = ("ssl", "ca-certificates", "alternatives", "ld.so.cache", "ld.so.conf",
             "ld.so.conf.d", "localtime", "nsswitch.conf", "mime.types", "services",
             "protocols", "profile", "bash.bashrc", "debian_version", "os-release")  # fmt: skip
_OWN_SETTINGS = {
    "passwd": "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "group": "root:x:0:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "resolv.conf": f"nameserver {addresses.GATEWAY_IPV4}\noptions timeout:2 attempts:2\n",
}
_FOLDERS = {"root": 0o700, "home": 0o755, "workspace": 0o755, "tmp": 0o1777, "run": 0o755,
            "var": 0o755, "var/tmp": 0o1777, "var/log": 0o755, "opt": 0o755, "srv": 0o755,
            "mnt": 0o755, "etc": 0o755, "proc": 0o555, "dev": 0o755, "app": 0o755}  # fmt: skip
# What a container engine leaves to root by default.
_KEPT_CAPABILITIES = {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31}
_EVERY_CAPABILITY = 64
_SOURCE = Path(__file__).with_name("executor.py")
_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Order:
    """What an instance is to be.

    Args:
        number: its own, which gives it its addresses.
        identifier: its name in the cloud.
        environ: variables of its first process.
        privileged: whether it keeps root's capabilities.
        ranges: what it may reach at first.
    """

    number: int
    identifier: str
    environ: Mapping[str, str]
    privileged: bool
    ranges: Sequence[str]


class Instance:
    """One that was started; made by `start`.

    Args:
        order: what it is.
        folder: where its sockets are, outside of it.
        outer: the process that waits for it.
        inner: its first process.
    """

    def __init__(self, order: Order, folder: Path, outer: int, inner: int) -> None:
        self.order = order
        self.folder = folder
        self.pid = inner
        self._namespace = os.open(f"/proc/{inner}/ns/net", os.O_RDONLY)
        self._end = asyncio.ensure_future(forks.ended(outer))

    @classmethod
    async def start(cls, order: Order, folder: Path) -> Instance:
        """Start one.

        Raises:
            LabError: it did not start; the message of its builder is on the error stream.
        """
        folder.mkdir(mode=0o700)  # noqa: ASYNC240 - in memory
        listeners = [_listen(folder / name) for name in ("calls", "public")]
        answer, told = os.pipe()
        numbers = [listener.fileno() for listener in listeners]
        place = folder / "root"
        place.mkdir()
        outer = fork(lambda: _build(order, place, numbers, told))
        os.close(told)
        for listener in listeners:
            listener.close()
        try:
            async with asyncio.timeout(_SECONDS):
                text = await forks.heard(answer)
            return cls(order, folder, outer, int(text))
        except (ValueError, TimeoutError, FileNotFoundError) as cause:
            with suppress(ProcessLookupError):
                os.kill(outer, signal.SIGKILL)
            await forks.ended(outer)
            shutil.rmtree(folder)
            raise LabError("an instance of the cloud did not start; see above") from cause

    @property
    def calls(self) -> Path:
        """The socket of the server inside."""
        return self.folder / "calls"

    @property
    def public(self) -> Path:
        """The socket that leads to the port that somebody inside bound."""
        return self.folder / "public"

    @property
    def is_alive(self) -> bool:
        """Whether its first process is there."""
        return not self._end.done()

    async def over(self) -> None:
        """Wait until it has ended."""
        await asyncio.shield(self._end)

    async def enforce(self, ranges: Sequence[str]) -> None:
        """Let it reach these ranges alone from now on.

        Raises:
            LabError: the kernel refused.
        """
        number, namespace = self.order.number, self._namespace
        await forks.in_child(lambda: wires.enforce(number, namespace, ranges), (namespace,))

    def kill(self) -> None:
        """End all that runs in it, as a machine does that fails."""
        with suppress(ProcessLookupError):
            if self.is_alive:
                os.kill(self.pid, signal.SIGKILL)

    async def remove(self) -> None:
        """End it, and forget all that was made for it."""
        if self._namespace < 0:
            return
        namespace, self._namespace = self._namespace, -1
        self.kill()
        await asyncio.shield(self._end)
        os.close(namespace)
        number = self.order.number
        await forks.in_child(lambda: wires.detach(number))
        shutil.rmtree(self.folder, ignore_errors=True)


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(128)
    return listener


def _build(order: Order, place: Path, listeners: Sequence[int], told: int) -> None:
    """Be the process that waits for an instance: it is in the pid namespace of the cloud."""
    kernel.die_with_parent(signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setsid()
    forks.close_others((*listeners, told))
    wires.attach(order.number, order.ranges)
    flags = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS
    kernel.unshare(flags)
    inner = fork(lambda: _become(order, place, listeners))
    os.write(told, str(inner).encode())
    os.close(told)
    for listener in listeners:
        os.close(listener)
    os.waitpid(inner, 0)


def _become(order: Order, place: Path, listeners: Sequence[int]) -> NoReturn:
    kernel.die_with_parent(signal.SIGKILL)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    program, search = _interpreter()
    _build_root(place, Path(program), search)
    kernel.pivot_root(str(place))
    socket.sethostname(order.identifier[:8])
    if not order.privileged:
        kernel.drop_capabilities(set(range(_EVERY_CAPABILITY)) - _KEPT_CAPABILITIES)
    kernel.die_with_parent(signal.SIGKILL)  # other credentials have cleared it
    for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    for listener in listeners:
        os.set_inheritable(listener, True)
    os.chdir("/root")
    environ = {"PATH": search, "HOME": "/root", "LANG": "C.UTF-8", **order.environ}
    words = [program, "-I", "-S", "/opt/executor.py", *map(str, listeners)]
    os.execve(program, words, environ)  # noqa: S606 - the whole purpose


def _interpreter() -> tuple[str, str]:
    """Give the interpreter of instances, and their PATH."""
    found = shutil.which("python3", path=_SEARCHED)
    if found is not None:
        return found, _SEARCHED
    own = Path(sys.base_prefix, "bin", "python3")
    return str(own), f"{own.parent}:{_SEARCHED}"


def _build_root(place: Path, program: Path, search: str) -> None:
    flags = kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("instance", str(place), "tmpfs", flags, "mode=755")
    for name, mode in _FOLDERS.items():
        (place / name).mkdir()
        (place / name).chmod(mode)
    for name in _PROGRAMS:
        _show(Path("/", name), place / name)
    for name in _SETTINGS:
        _show(Path("/etc", name), place / "etc" / name)
    for name, text in _OWN_SETTINGS.items():
        (place / "etc" / name).write_text(text, encoding="ascii")
    if not search.startswith("/usr/local/sbin"):
        prefix = program.parent.parent
        _show(prefix, place / prefix.relative_to("/"))
    shutil.copyfile(_SOURCE, place / "opt" / "executor.py")
    devices.fill(place / "dev")
    quiet = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    kernel.mount("proc", str(place / "proc"), "proc", quiet)


def _show(source: Path, aim: Path) -> None:
    """Have something of the machine's in an instance, to be read only."""
    if source.is_symlink():
        aim.symlink_to(source.readlink())
    elif source.is_dir():
        aim.mkdir(parents=True, exist_ok=True)
        kernel.mount(str(source), str(aim), None, kernel.MS_BIND | kernel.MS_REC)
        kernel.set_read_only(str(aim), on=True, recursive=True)
    elif source.exists():
        aim.touch()
        kernel.mount(str(source), str(aim), None, kernel.MS_BIND)
        kernel.set_read_only(str(aim), on=True)
