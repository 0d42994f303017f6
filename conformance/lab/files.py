"""The file seal: what the command writes lands on a tmpfs that ends with the lab.

Everything here runs in a mount namespace of its own, made private, before the command
starts; nothing that it mounts is visible outside.
"""

from __future__ import annotations

import errno
import os
import pwd
import socket
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.lab import addresses, kernel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.lab.plan import Plan

SCRATCH = Path("/dev/shm")  # noqa: S108 - covered by a tmpfs of our own before use

_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - covered, not used
_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)
# Daemons that speak for whoever asks; those that listen in this network namespace are
# found in /proc/net/unix, these may listen in another one.
_DAEMONS = (
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/dbus/system_bus_socket",
    "/run/nscd/socket",
    "/run/systemd/resolve/io.systemd.Resolve",
    "/run/systemd/private",
)


def _name_services(path: Path) -> str:
    """Give the system's own name services, but for hosts, which are ours to tell."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    others = [line for line in lines if not line.lstrip().startswith("hosts:")]
    return "\n".join([*others, "hosts: files dns", ""])


_CONFIGURATION = {
    "/etc/resolv.conf": f"nameserver {addresses.GATEWAY_IPV4}\noptions timeout:2 attempts:2\n",
    # Some servers look the machine's own name up when they start.
    "/etc/hosts": (
        "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
        f"127.0.1.1 {socket.gethostname()}\n"
    ),
    "/etc/nsswitch.conf": _name_services(Path("/etc/nsswitch.conf")),
}


def unix_sockets() -> tuple[str, ...]:
    """Give the absolute paths of the unix sockets of this network namespace."""
    lines = Path("/proc/net/unix").read_text(encoding="utf-8", errors="surrogateescape")
    fields = (line.split(maxsplit=7) for line in lines.splitlines()[1:])
    return tuple(sorted({row[7] for row in fields if len(row) == 8 and row[7].startswith("/")}))


def mount_scratch() -> None:
    """Cover /dev/shm with a fresh tmpfs.

    Raises:
        OSError: it cannot be mounted.
    """
    kernel.mount("sandbox-conformance", str(SCRATCH), "tmpfs", kernel.MS_NOSUID, "mode=1777")


class FileSeal:
    """Overlays over what the command must not really write, made in two steps.

    Make it before `mount_scratch`: it holds the real folders open, and those that lie under
    /dev/shm are out of reach afterwards.

    Args:
        plan: the launch.

    Raises:
        OSError: a folder of the results cannot be opened.
    """

    def __init__(self, plan: Plan) -> None:
        self._uppers = SCRATCH / "upper"
        self._results = [(path, _handle(path)) for path in plan.results]
        self._covers: list[tuple[str, int]] = []
        self.hidden: list[str] = []
        for folder in _overlaid(plan):
            self._covers.append((folder, _handle(folder)))
            for inner in _mounts_below(folder, besides=plan.results):
                with suppress(OSError):  # one that cannot even be opened stays hidden
                    self._covers.append((inner, _handle(inner)))

    @property
    def handles(self) -> tuple[int, ...]:
        """Descriptors of the real folders, which nobody else should hold."""
        return tuple(handle for _, handle in (*self._results, *self._covers))

    def apply(self) -> None:
        """Mount the overlays, then bind the results back.

        Raises:
            OSError: an overlay or a bind was refused.
        """
        outer = ""
        for number, (path, handle) in enumerate(self._covers):
            inner = bool(outer) and _beneath(path, outer)
            try:
                self._overlay(number, path, handle)
            except OSError:
                if not inner:
                    raise
                self.hidden.append(path)  # the empty folder below the mount is all that is seen
            os.close(handle)
            outer = outer if inner else path
        for path, handle in self._results:
            os.makedirs(path, exist_ok=True)
            kernel.mount(f"/proc/self/fd/{handle}", path, None, kernel.MS_BIND | kernel.MS_REC)
            os.close(handle)

    def _overlay(self, number: int, path: str, handle: int) -> None:
        upper, work = self._uppers / f"{number}u", self._uppers / f"{number}w"
        info = os.fstat(handle)
        for folder in (upper, work):
            folder.mkdir(parents=True)
            folder.chmod(stat.S_IMODE(info.st_mode))
        with suppress(OSError):  # an ordinary user cannot give his folder away
            os.chown(upper, info.st_uid, info.st_gid)
        os.makedirs(path, exist_ok=True)
        options = f"lowerdir=/proc/self/fd/{handle},upperdir={upper},workdir={work}"
        try:
            kernel.mount("overlay", path, "overlay", 0, f"{options},userxattr")
        except OSError as refused:
            if refused.errno != errno.EINVAL:
                raise
            kernel.mount("overlay", path, "overlay", 0, options)


def _handle(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_DIRECTORY)


def _overlaid(plan: Plan) -> list[str]:
    """Give the folders to cover, none beneath another one, nor one that is to stay real."""
    homes = [pwd.getpwuid(os.getuid()).pw_dir] if _has_account() else []
    homes.append(plan.environ.get("HOME", ""))
    wanted = [os.path.realpath(path) for path in (*homes, *_TEMPORARY, plan.cwd) if path]
    found: list[str] = []
    for path in sorted({path for path in wanted if os.path.isdir(path)}, key=len):
        if path != "/" and not any(_beneath(path, outer) for outer in (*found, *plan.results)):
            found.append(path)
    return found


def _has_account() -> bool:
    with suppress(KeyError):
        return bool(pwd.getpwuid(os.getuid()))
    return False


def _beneath(path: str, outer: str) -> bool:
    return path == outer or path.startswith(outer.rstrip("/") + "/")


def _mounts_below(folder: str, besides: Sequence[str]) -> Iterable[str]:
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    points = {_unescaped(line.split()[4]) for line in lines.splitlines()}
    below = (point for point in points if point != folder and _beneath(point, folder))
    return sorted(point for point in below if not any(_beneath(point, real) for real in besides))


def _unescaped(point: str) -> str:
    for code in ("040", "011", "012", "134"):
        point = point.replace("\\" + code, chr(int(code, 8)))
    return point


def bind_configuration(folder: Path) -> None:
    """Put the lab's resolver, hosts and name service files in the place of the system's.

    Raises:
        OSError: one cannot be bound, or the system has no resolv.conf.
    """
    for path, content in _CONFIGURATION.items():
        own = folder / Path(path).name
        own.write_text(content, encoding="utf-8")
        own.chmod(0o644)
        real = os.path.realpath(path)
        if os.path.exists(real):
            kernel.mount(str(own), real, None, kernel.MS_BIND)
        elif path == "/etc/resolv.conf":
            raise FileNotFoundError(errno.ENOENT, "missing, and needed to put ours there", real)


def bind_bundle(bundle: Path) -> None:
    """Put the lab's certificates in the place of the system's bundles.

    Raises:
        OSError: one cannot be bound.
    """
    for real in {os.path.realpath(path) for path in _BUNDLES if os.path.exists(path)}:
        kernel.mount(str(bundle), real, None, kernel.MS_BIND)


def mask_sockets(listening: Iterable[str], leave: Sequence[str]) -> None:
    """Bind /dev/null over the sockets of daemons, so that a connection finds no listener.

    Args:
        listening: paths found in /proc/net/unix.
        leave: paths that the subject needs.

    Raises:
        OSError: a socket that this account can reach cannot be covered.
    """
    left = {os.path.realpath(path) for path in leave}
    for path in sorted({os.path.realpath(path) for path in (*listening, *_DAEMONS)} - left):
        try:
            mode = os.stat(path).st_mode
        except OSError:
            continue  # gone, or out of reach for the command as well
        if stat.S_ISSOCK(mode):
            kernel.mount("/dev/null", path, None, kernel.MS_BIND)
