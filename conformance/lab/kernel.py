"""The Linux calls that the standard library lacks before Python 3.12, or lacks altogether."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import sys

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

CAP_SYS_ADMIN = 21

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
    with open("/proc/self/status", encoding="ascii", errors="replace") as status:
        for line in status:
            if line.startswith("CapEff:"):
                return bool(int(line.split()[1], 16) >> number & 1)
    return False


def drop_capabilities() -> None:
    """Empty the bounding, ambient, inheritable, permitted and effective sets.

    Raises:
        OSError: a set that can always be emptied was not.
    """
    with open("/proc/sys/kernel/cap_last_cap", encoding="ascii") as file:
        last = int(file.read())
    for number in range(last + 1):
        # The bounding set can only be lowered with CAP_SETPCAP; the other sets matter more.
        _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(number), 0, 0, 0)
    ambient = ctypes.c_ulong(_PR_CAP_AMBIENT_CLEAR_ALL)
    _checked(_libc.prctl(_PR_CAP_AMBIENT, ambient, 0, 0, 0), "ambient capabilities")
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION_3, 0))
    nothing = ctypes.create_string_buffer(24)
    _checked(_libc.capset(header, nothing), "capset")


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
