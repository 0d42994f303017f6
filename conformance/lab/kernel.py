"""The Linux calls that the standard library lacks before Python 3.12, or lacks altogether."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_MOVE = 8192
MS_REC = 16384
MS_PRIVATE = 1 << 18

CAP_SYS_ADMIN = 21
# What reaches past namespaces to the machine itself: its modules, ports, clock, power and log.
MACHINE_CAPABILITIES = (
    16,  # CAP_SYS_MODULE
    17,  # CAP_SYS_RAWIO
    22,  # CAP_SYS_BOOT
    25,  # CAP_SYS_TIME
    32,  # CAP_MAC_OVERRIDE
    33,  # CAP_MAC_ADMIN
    34,  # CAP_SYSLOG
    35,  # CAP_WAKE_ALARM
)

_SYS_MOUNT_SETATTR = 442  # the same number on every architecture
_SYS_KEYCTL = {"x86_64": 250, "aarch64": 219}
_KEYCTL_JOIN_SESSION_KEYRING = 1
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_ATTR_RDONLY = 1
_MNT_DETACH = 2
_ST_KEPT = 2 | 4 | 8 | 1024 | 2048  # ST_NOSUID ... ST_NODIRATIME: the numbers of their MS_ twins
_ST_RELATIME = 4096
_MS_RELATIME = 1 << 21

_PR_SET_PDEATHSIG = 1
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x20080522
_SIOCGIFFLAGS = 0x8913
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, subject: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), subject)


def unshare(flags: int) -> None:
    """Move this thread into new namespaces.

    Args:
        flags: a combination of the ``CLONE_NEW*`` constants.

    Raises:
        OSError: the kernel refused.
    """
    _checked(_libc.unshare(flags), "unshare")


def setns(descriptor: int, kind: int) -> None:
    """Move this thread into the namespace that `descriptor` names.

    Raises:
        OSError: the kernel refused.
    """
    _checked(_libc.setns(descriptor, kind), "setns")


def map_only(user: int, group: int) -> None:
    """Have the caller be himself in the user namespace that he has just made, alone there.

    Raises:
        OSError: the kernel refused.
    """
    maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
    for name, content in maps.items():
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(content)


def mount(
    source: str, target: str, kind: str | None = None, flags: int = 0, options: str = ""
) -> None:
    """Mount `source` on `target`.

    Raises:
        OSError: the kernel refused; `filename` is the target.
    """
    result = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        os.fsencode(options) if options else None,
    )
    _checked(result, target)


def unmount(target: str) -> None:
    """Take the mount at `target` away, with what is mounted below it.

    Raises:
        OSError: the kernel refused.
    """
    _checked(_libc.umount2(os.fsencode(target), _MNT_DETACH), target)


def pivot_root(folder: str) -> None:
    """Make `folder`, which is a mount, the root, and let go of the old one.

    Raises:
        OSError: the kernel refused.
    """
    os.chdir(folder)
    _checked(_libc.pivot_root(b".", b"."), folder)
    unmount(".")
    os.chdir("/")


def set_read_only(target: str, *, on: bool, recursive: bool = False) -> None:
    """Make the mount at `target` read-only, or writable again; its other options stay.

    Args:
        target: where it is mounted.
        on: read-only or writable.
        recursive: with all mounts below it, where the kernel can do that (Linux 5.12).

    Raises:
        OSError: the kernel refused.
    """
    wanted = (_MOUNT_ATTR_RDONLY, 0) if on else (0, _MOUNT_ATTR_RDONLY)
    attributes = ctypes.create_string_buffer(struct.pack("=4Q", *wanted, 0, 0), 32)
    done = _libc.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_long(_AT_FDCWD),
        ctypes.c_char_p(os.fsencode(target)),
        ctypes.c_long(_AT_RECURSIVE if recursive else 0),
        attributes,
        ctypes.c_size_t(32),
    )
    if done == 0:
        return
    # Not known to the kernel, or to a filter of system calls: the older call does one mount.
    now = os.statvfs(target).f_flag
    flags = MS_REMOUNT | MS_BIND | (now & _ST_KEPT) | (_MS_RELATIME if now & _ST_RELATIME else 0)
    mount("none", target, None, flags | (MS_RDONLY if on else 0))


def leave_session_keyring() -> None:
    """Take a new session keyring, so that keys made from now on are seen by descendants only."""
    number = _SYS_KEYCTL.get(os.uname().machine)
    if number is not None:  # without keyrings in the kernel there is nothing to leave
        _libc.syscall(ctypes.c_long(number), ctypes.c_long(_KEYCTL_JOIN_SESSION_KEYRING), None)


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send `signal_number` to this process when its parent ends.

    The setting is lost when credentials change, so call it again after that, and compare
    `os.getppid` afterwards: the parent may have ended before.
    """
    if sys.platform == "linux":
        _checked(_libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal_number), 0, 0, 0), "prctl")


def adopt_orphans() -> None:
    """Make this process the one that its orphaned descendants are handed to."""
    if sys.platform == "linux":
        _checked(_libc.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0), "prctl")


def has_capability(number: int) -> bool:
    """Whether the effective set of this process holds capability `number`."""
    return bool(_capabilities("CapEff") >> number & 1)


def _capabilities(kind: str) -> int:
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        for line in status:
            if line.startswith(f"{kind}:"):
                return int(line.split()[1], 16)
    return 0


def drop_capabilities(numbers: Iterable[int] | None = None) -> None:
    """Take capabilities out of the bounding, ambient, inheritable, permitted, effective sets.

    Args:
        numbers: which; all by default.

    Raises:
        OSError: a set that can always be lowered was not.
    """
    with open("/proc/sys/kernel/cap_last_cap", encoding="ascii") as file:
        everything = range(int(file.read()) + 1)
    dropped = sorted(set(everything) & set(everything if numbers is None else numbers))
    for number in dropped:
        # The bounding set can only be lowered with CAP_SETPCAP; the other sets matter more.
        _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(number), 0, 0, 0)
    ambient = ctypes.c_ulong(_PR_CAP_AMBIENT_CLEAR_ALL)
    _checked(_libc.prctl(_PR_CAP_AMBIENT, ambient, 0, 0, 0), "ambient capabilities")
    kept = ~sum(1 << number for number in dropped)
    sets = [_capabilities(kind) & kept for kind in ("CapEff", "CapPrm", "CapInh")]
    words = [held >> shift & 0xFFFFFFFF for shift in (0, 32) for held in sets]
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION_3, 0))
    _checked(
        _libc.capset(header, ctypes.create_string_buffer(struct.pack("=6I", *words))), "capset"
    )


def raise_loopback() -> None:
    """Bring `lo` up in the network namespace of this thread.

    Raises:
        OSError: the kernel refused.
    """
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as handle:
        request = struct.pack("16sH14x", b"lo", 0)
        answer = fcntl.ioctl(handle, _SIOCGIFFLAGS, request)
        flags = struct.unpack("16sH14x", answer)[1] | _IFF_UP
        fcntl.ioctl(handle, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags))
