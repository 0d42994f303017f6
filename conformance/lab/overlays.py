"""The file seal: what the command writes lands on a tmpfs that ends with the lab.

All that the host has mounted is made read-only, and each top-level folder lies under an
overlay. That keeps the host's sockets and FIFOs out of reach too, those of later as well:
an overlay shows them, but as others than those that somebody listens on.

Everything here runs in a mount namespace of its own, made private, before the command
starts; nothing that it mounts is visible outside.
"""

from __future__ import annotations

import errno
import itertools
import os
import pwd
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.lab import kernel
from conformance.lab.devices import SCRATCH
from conformance.lab.errors import LabUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.lab.plan import Plan

_TEMPORARY = ("/tmp", "/var/tmp", "/run/lock")  # noqa: S108 - covered, not used
_OWN = ("/dev", "/proc", "/sys")  # ours, or the kernel's and read-only
# Kinds of mounts that show the kernel's state, or that mount something when looked at.
_NO_FILES = {
    "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts",
    "devtmpfs", "fusectl", "mqueue", "nsfs", "proc", "pstore", "securityfs", "sysfs", "tracefs",
}  # fmt: skip


@dataclass(frozen=True)
class _Kept:
    """A folder or socket that stays the real one.

    Args:
        path: where it is.
        handle: an open descriptor of it.
        writable: the mounts in it, itself the first, that can be written to.
    """

    path: str
    handle: int
    writable: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Cover:
    """A folder to be covered, and what in it needs to be shown in an overlay of its own."""

    path: str
    handle: int
    inner: tuple[tuple[str, int], ...]

    def close(self) -> None:
        for _, handle in ((self.path, self.handle), *self.inner):
            os.close(handle)


class FileSeal:
    """Overlays over what the command must not really write, made in three steps.

    Make it before `mount_devices` and `mount_scratch`: it holds folders open that lie under
    /dev/shm and are out of reach afterwards. `protect` comes before these two as well,
    `apply` after them.

    Args:
        plan: the launch.

    Raises:
        OSError: a folder of the results cannot be opened.
    """

    def __init__(self, plan: Plan) -> None:
        self._uppers = SCRATCH / "upper"
        self._numbers = itertools.count()
        self._mounts = _mounts()
        self._results = plan.results
        self._kept = [
            _Kept(path, _handle(path), tuple(self._writable(path))) for path in plan.results
        ]
        for path in {os.path.realpath(socket) for socket in plan.leave_sockets}:
            if os.path.exists(path):
                self._kept.append(_Kept(path, os.open(path, os.O_PATH)))
        self._needed = _needed(plan)
        self._early = {
            path: self._opened(path) for path in self._needed if _beneath(path, str(SCRATCH))
        }
        self._covered: list[str] = []
        self.hidden: list[str] = []

    @property
    def handles(self) -> tuple[int, ...]:
        """Descriptors of the real folders, which nobody else should hold."""
        early = [handle for cover in self._early.values() for _, handle in cover.inner]
        early += [cover.handle for cover in self._early.values()]
        return (*(kept.handle for kept in self._kept), *early)

    def protect(self) -> None:
        """Make all that is mounted read-only.

        Raises:
            OSError: the kernel refused that to root.
        """
        try:
            kernel.set_read_only("/", on=True, recursive=True)
        except OSError:
            if os.geteuid() == 0:
                raise
            # An ordinary user can write to little beyond what gets an overlay.

    def apply(self) -> None:
        """Mount the overlays, then bind back what stays real.

        Raises:
            LabUnavailable: an overlay that is needed was refused.
            OSError: a bind was refused.
        """
        for path in (*_top_level(), *self._needed):
            if not any(_beneath(path, outer) for outer in self._covered):
                self._cover(path)
        for path in self._needed:
            if any(_beneath(path, hidden) for hidden in self.hidden):
                raise _without_overlay(path, None)
        for kept in self._kept:
            kernel.mount(
                f"/proc/self/fd/{kept.handle}", kept.path, None, kernel.MS_BIND | kernel.MS_REC
            )
            os.close(kept.handle)
            for point in kept.writable:
                kernel.set_read_only(point, on=False)

    def _cover(self, path: str) -> None:
        try:
            cover = self._early.pop(path, None) or self._opened(path)
        except OSError:
            return  # out of reach for the command as well, and read-only
        try:
            self._overlay(path, cover.handle)
        except OSError as refused:
            if path in self._needed:
                raise _without_overlay(path, refused) from refused
            # An ordinary user may not cover a folder with mounts in it: he could see below them.
            # It stays, read-only, and the folders in it are covered.
            if cover.inner:
                for folder in _folders(path):
                    self._cover(folder)
        else:
            self._covered.append(path)
            for point, handle in cover.inner:
                self._uncover(point, handle)
        finally:
            cover.close()

    def _uncover(self, point: str, handle: int) -> None:
        """Show what is mounted at `point`, in an overlay of its own."""
        try:
            if stat.S_ISDIR(os.fstat(handle).st_mode):
                self._overlay(point, handle)
            else:
                kernel.mount(f"/proc/self/fd/{handle}", point, None, kernel.MS_BIND)
        except OSError:
            self.hidden.append(point)  # what is below the mount is all that is seen

    def _overlay(self, path: str, handle: int) -> None:
        number = next(self._numbers)
        upper, work = self._uppers / f"{number}u", self._uppers / f"{number}w"
        info = os.fstat(handle)
        for folder in (upper, work):
            folder.mkdir(parents=True)
        mode = stat.S_IMODE(info.st_mode)
        try:
            os.chown(upper, info.st_uid, info.st_gid)
        except OSError:  # an ordinary user cannot give his folder away: what he may, he may
            mode = mode if _may_write(info) else mode & ~0o222
        upper.chmod(mode)
        os.makedirs(path, exist_ok=True)
        options = f"lowerdir=/proc/self/fd/{handle},upperdir={upper},workdir={work}"
        try:
            kernel.mount("overlay", path, "overlay", kernel.MS_NODEV, f"{options},userxattr")
        except OSError as refused:
            if refused.errno != errno.EINVAL:
                raise
            kernel.mount("overlay", path, "overlay", kernel.MS_NODEV, options)

    def _opened(self, path: str) -> _Cover:
        if self._mounts.get(path) in _NO_FILES:
            raise OSError(errno.EINVAL, "no folder of files", path)
        handle = _handle(path)
        inner = []
        # A folder that the command is sure to write to gets an overlay of its own: in another's
        # it would first be copied with its owner, whom an ordinary user cannot stand for.
        needed = (point for point in self._needed if point != path and _beneath(point, path))
        for point in sorted({*self._mounts_below(path), *needed}):
            with suppress(OSError):  # one that cannot even be opened stays hidden
                inner_handle = os.open(point, os.O_PATH)
                if stat.S_IFMT(os.fstat(inner_handle).st_mode) in (stat.S_IFDIR, stat.S_IFREG):
                    inner.append((point, inner_handle))
                else:
                    os.close(inner_handle)
        return _Cover(path, handle, tuple(inner))

    def _mounts_below(self, folder: str) -> list[str]:
        """Give the mounts with files below `folder`, but for those that stay real."""
        return sorted(
            point
            for point, kind in self._mounts.items()
            if point != folder
            and _beneath(point, folder)
            and kind not in _NO_FILES
            and not any(_beneath(point, real) for real in self._results)
        )

    def _writable(self, path: str) -> Iterator[str]:
        below = sorted(point for point in self._mounts if _beneath(point, path) and point != path)
        for point in (path, *below):
            with suppress(OSError):
                if not os.statvfs(point).f_flag & os.ST_RDONLY:
                    yield point


def _without_overlay(path: str, refused: OSError | None) -> LabUnavailable:
    cause = f": {refused.strerror}" if refused else ""
    return LabUnavailable(
        f"the kernel refused an overlay over {path}{cause} (its file system takes none, or, for an "
        "ordinary user, something is mounted in it); start from another folder, run as root, "
        "or use --lab=loopback"
    )


def _handle(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_DIRECTORY)


def _may_write(info: os.stat_result) -> bool:
    if info.st_uid == os.geteuid():
        return bool(info.st_mode & stat.S_IWUSR)
    if info.st_gid in (os.getegid(), *os.getgroups()):
        return bool(info.st_mode & stat.S_IWGRP)
    return bool(info.st_mode & stat.S_IWOTH)


def _top_level() -> list[str]:
    return [path for path in _folders("/") if path not in _OWN]


def _folders(path: str) -> list[str]:
    """Give the real folders in `path`; none where it cannot be listed."""
    with suppress(OSError), os.scandir(path) as entries:
        return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    return []


def _needed(plan: Plan) -> list[str]:
    """Give the folders that must be covered, none beneath another, nor one that is real."""
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


def _mounts() -> Mapping[str, str]:
    """Give the kind of what is mounted at each place."""
    text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    found = {}
    for line in text.splitlines():
        place, _, source = line.partition(" - ")
        found[_unescaped(place.split()[4])] = source.split()[0]
    return found


def _unescaped(point: str) -> str:
    for code in ("040", "011", "012", "134"):
        point = point.replace("\\" + code, chr(int(code, 8)))
    return point
