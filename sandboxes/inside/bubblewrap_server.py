"""The first process inside a Bubblewrap sandbox: it forks supervisors, and reads and writes files.

Standard library only, in an interpreter that was told to look at nothing else.
"""

from __future__ import annotations

import ctypes
import os
import struct

from sandboxes import host_files
from sandboxes.bare import send_descriptor, socket
from sandboxes.inside.bubblewrap_filter import hold_back
from sandboxes.supervisor import serve

FILES = b"f"
"""The byte that asks the server for somebody who reads or writes one file."""

READ, WRITE = b"r", b"w"
HEAD = struct.Struct("!cIQ")
"""What to do, the length of the path, and that of the data."""

ANSWER = struct.Struct("!IIQ")
"""An error number or 0, the length of its text, and that of the data."""

WORKSPACE = "/workspace"

_PR_SET_DUMPABLE = 4
_BACKLOG = 256


def main(descriptor: int, port: int) -> None:
    """Be ready, say so, and serve until the other end is closed.

    Args:
        descriptor: The socket to the sandbox's process.
        port: Where to listen for the proxy of the sandbox's process, which gets the
            listening socket; 0 for nowhere.
    """
    hold_back()
    server = socket.socket(fileno=descriptor)
    if port:
        # A socket belongs to the network namespace that it was made in, whoever accepts.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.bind(("127.0.0.1", port))
        listener.listen(_BACKLOG)
        send_descriptor(server, b"r", listener.fileno())
        listener.close()
    else:
        server.sendall(b"r")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 2)
    os.close(null)
    # Commands are the same user: they shall neither trace us nor take our descriptors.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    serve(server.detach(), {FILES: use_file})


def use_file(control: socket.socket) -> None:
    """Read or write one file, as commands see it."""
    action, length, size = HEAD.unpack(exactly(control, HEAD.size))
    path = os.fsdecode(exactly(control, length))
    data = exactly(control, size)
    found, number, fact = b"", 0, b""
    try:
        if action == READ:
            found = host_files.read(WORKSPACE, path)
        else:
            host_files.write(WORKSPACE, path, data)
    except OSError as error:
        number, fact = error.errno or 1, os.fsencode(error.strerror or str(error))
    control.sendall(ANSWER.pack(number, len(fact), len(found)) + fact)
    control.sendall(found)


def exactly(control: socket.socket, size: int) -> bytes:
    """Receive so many bytes.

    Raises:
        EOFError: The other end was closed before.
    """
    data = bytearray()
    while len(data) < size:
        piece = control.recv(min(size - len(data), 1024 * 1024))
        if not piece:
            raise EOFError("the other end was closed")
        data += piece
    return bytes(data)
