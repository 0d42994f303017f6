"""How an instance is built, in the process that all of them are forked from; see `nursery`."""

from __future__ import annotations

import ctypes
import encodings.idna  # noqa: F401 - inside an instance no module can be loaded any more
import gc
import json
import os
import shutil
import signal
import socket
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from conformance.lab import addresses, devices, kernel
from conformance.lab.cloud import executor, wires
from conformance.lab.cloud.forks import close_others
from conformance.lab.cloud.nursery import Order
from conformance.lab.errors import LabError
from conformance.lab.processes import close_all, fork

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
_DESCRIPTORS = 4
# Of /proc/PID/stat behind the name: where the arguments begin and end, and the variables.
_ARGUMENTS = 45


def serve(descriptor: int) -> None:
    """Fork builders until the other end of the socket is closed.

    A message is nothing but the descriptors that `Nursery.begin` sends: what an order holds is
    read by its builder, and no later instance has a copy of it.
    """
    kernel.die_with_parent(signal.SIGKILL)
    close_others([descriptor])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, _reap)
    gc.freeze()
    orders = socket.socket(fileno=descriptor)
    while True:
        _, passed, _, _ = socket.recv_fds(orders, 1, _DESCRIPTORS)
        if not passed:
            return
        fork(partial(_build, *passed))
        close_all(passed)


def _reap(*_: object) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _build(asked: int, told: int, *listeners: int) -> None:
    """Be the process that waits for an instance: it is in the pid namespace of the cloud."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with open(asked, encoding="utf-8") as file:
        fields, place = json.load(file)
    order = Order(**fields)
    os.write(told, b"%d " % os.getpid())
    kernel.die_with_parent(signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setsid()
    close_others((*listeners, told))
    wires.attach(order.number, order.ranges)
    flags = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS
    kernel.unshare(flags)
    inner = fork(lambda: _become(order, Path(place), listeners))
    os.write(told, str(inner).encode())
    os.close(told)
    for listener in listeners:
        os.close(listener)
    os.waitpid(inner, 0)


def _become(order: Order, place: Path, listeners: Sequence[int]) -> NoReturn:
    kernel.die_with_parent(signal.SIGKILL)
    close_others(listeners)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    search = _build_root(place)
    kernel.pivot_root(str(place))
    socket.sethostname(order.identifier[:8])
    if not order.privileged:
        kernel.drop_capabilities(set(range(_EVERY_CAPABILITY)) - _KEPT_CAPABILITIES)
    kernel.die_with_parent(signal.SIGKILL)  # other credentials have cleared it
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    os.chdir("/root")
    _show_as(
        f"executor {order.identifier}",
        {"PATH": search, "HOME": "/root", "LANG": "C.UTF-8", **order.environ},
    )
    executor.run(*listeners)
    raise AssertionError("the first process of an instance runs until its server ends")


def _show_as(name: str, environ: Mapping[str, str]) -> None:
    """Have this process's arguments and variables in `/proc` be those of a server of this name."""
    with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    os.environ.clear()
    os.environ.update(environ)
    variables = b"".join(os.fsencode(f"{name}={text}\0") for name, text in environ.items())
    areas = [int(field) for field in fields[_ARGUMENTS : _ARGUMENTS + 4]]
    for (begin, end), data in zip((areas[:2], areas[2:]), (name.encode(), variables), strict=True):
        if len(data) >= end - begin:
            raise LabError(f"{len(data)} bytes of variables are too many for an instance")
        ctypes.memset(begin, 0, end - begin)
        ctypes.memmove(begin, data, len(data))


def _interpreter() -> tuple[str, str]:
    """Give the interpreter of instances, and their PATH."""
    found = shutil.which("python3", path=_SEARCHED)
    if found is not None:
        return found, _SEARCHED
    own = Path(sys.base_prefix, "bin", "python3")
    return str(own), f"{own.parent}:{_SEARCHED}"


def _build_root(place: Path) -> str:
    """Mount the files of an instance, and give its PATH."""
    program, search = _interpreter()
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
        prefix = Path(program).parent.parent
        _show(prefix, place / prefix.relative_to("/"))
    devices.fill(place / "dev")
    quiet = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    kernel.mount("proc", str(place / "proc"), "proc", quiet)
    return search


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
