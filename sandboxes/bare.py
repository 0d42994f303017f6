"""What `signal`, `socket` and `contextlib` have that a process which starts commands needs.

Every session waits for the interpreter of that process, and the enumerations in which the
standard library wraps these constants take longer to import than all else. So their C
halves are used as they are; another interpreter that has none gets the whole modules.
"""

from __future__ import annotations

import struct

# typing would cost as much again.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket
else:
    try:
        import _signal as signal
        import _socket as socket
    except ImportError:
        import signal
        import socket

__all__ = ["receive", "send_descriptor", "send_descriptors", "signal", "socket", "suppress"]

_DESCRIPTOR = struct.Struct("i")


class suppress:
    """Let errors of these kinds pass; `contextlib.suppress` without its module's imports."""

    def __init__(self, *kinds: type[BaseException]) -> None:
        self._kinds = kinds

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        return kind is not None and issubclass(kind, self._kinds)


def receive(connection: socket.socket, size: int, most: int) -> tuple[bytes, list[int]]:
    """Receive a message and the descriptors that came with it.

    Args:
        connection: A unix socket.
        size: So many bytes at the most.
        most: So many descriptors at the most.
    """
    # CMSG_SPACE would have room for one more, which nobody would close or keep from commands.
    room = socket.CMSG_LEN(most * _DESCRIPTOR.size)
    data, rows, _, _ = connection.recvmsg(size, room)
    descriptors = [
        number
        for level, kind, packed in rows
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
        for (number,) in _DESCRIPTOR.iter_unpack(packed[: len(packed) // 4 * 4])
    ]
    return data, descriptors


def send_descriptor(connection: socket.socket, data: bytes, descriptor: int) -> None:
    """Send a message and one descriptor with it, over a unix socket."""
    send_descriptors(connection, data, [descriptor])


def send_descriptors(
    connection: socket.socket, data: bytes | memoryview, descriptors: list[int]
) -> int:
    """Send the beginning of some data with descriptors, and say how long it is."""
    packed = b"".join(map(_DESCRIPTOR.pack, descriptors))
    return connection.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, packed)])
