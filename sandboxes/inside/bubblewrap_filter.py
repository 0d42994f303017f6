"""Calls of the kernel that no namespace holds back, refused to all processes inside.

Keys belong to a user of the host, whoever he is inside. AF_VSOCK leads out of a virtual
machine, whatever the network namespace. io_uring makes sockets past this very filter.

Standard library only, in an interpreter that was told to look at nothing else.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from sandboxes.bare import socket

_LOAD, _EQUALS, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOWED, _ERROR = 0x7FFF0000, 0x00050000
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2

# The kernel's name of the architecture, and its numbers of socket, add_key, request_key, keyctl.
_MACHINES = {
    "x86_64": (0xC000003E, 41, (248, 249, 250)),
    "aarch64": (0xC00000B7, 198, (217, 218, 219)),
}
_IO_URING_SETUP = 425
# Numbers of x86_64 with 32-bit pointers, which would be other names for the same calls.
_OTHER_NUMBERS = 0x40000000
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]  # type: ignore[mutable-override] # as ctypes has it


def hold_back() -> None:
    """Refuse these calls from now on, in this process and all that come of it.

    Raises:
        OSError: The kernel takes no filter, or the machine is one that we know no numbers of.
    """
    machine = os.uname().machine
    if machine not in _MACHINES:
        raise OSError(errno.ENOSYS, f"no filter of system calls for {machine}")
    code = b"".join(_instructions(*_MACHINES[machine]))
    program = _Program(len(code) // 8, code)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")


def _instructions(architecture: int, make_socket: int, keys: tuple[int, ...]) -> list[bytes]:
    code = [_load(_ARCHITECTURE), _one(_EQUALS, architecture, yes=1), _refuse(errno.ENOSYS)]
    code += [_load(_NUMBER), _one(_AT_LEAST, _OTHER_NUMBERS, no=1), _refuse(errno.ENOSYS)]
    for number in (*keys, _IO_URING_SETUP):
        code += [_one(_EQUALS, number, no=1), _refuse(errno.ENOSYS)]
    code += [_one(_EQUALS, make_socket, yes=1), _give(_ALLOWED), _load(_FIRST_ARGUMENT)]
    for family in _FAMILIES:
        code += [_one(_EQUALS, family, no=1), _give(_ALLOWED)]
    return [*code, _refuse(errno.EAFNOSUPPORT)]


def _one(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _load(offset: int) -> bytes:
    return _one(_LOAD, offset)


def _give(value: int) -> bytes:
    return _one(_RETURN, value)


def _refuse(number: int) -> bytes:
    return _give(_ERROR | number)
