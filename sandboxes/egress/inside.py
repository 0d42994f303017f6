"""A socket that listens in the network namespace of somebody else's process."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from sandboxes.contract import SandboxStartError
from sandboxes.threads import made_or_undone

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_SECONDS = 30
_SHOWN = 200

# In a process of its own: one with threads may not change its user namespace.
_PROGRAM = """
import ctypes, fcntl, os, socket, struct, sys

pid, port, link = map(int, sys.argv[1:])
libc = ctypes.CDLL(None, use_errno=True)
opened = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY) for kind in ("user", "net")]
for kind, namespace in zip(("user", "net"), opened):
    if os.path.sameopenfile(namespace, os.open(f"/proc/self/ns/{kind}", os.O_RDONLY)):
        if kind == "net":
            sys.exit("it has the network of this process, and no namespace of its own")
    elif libc.setns(namespace, 0):
        sys.exit(f"its {kind} namespace: {os.strerror(ctypes.get_errno())}")
with socket.socket() as any_socket:
    flags = 0x8914, struct.pack("16sh22x", b"lo", 0x1)  # SIOCSIFFLAGS, IFF_UP
    fcntl.ioctl(any_socket, *flags)
with socket.create_server(("127.0.0.1", port), backlog=256) as listener:
    socket.send_fds(socket.socket(fileno=link), [b"r"], [listener.fileno()])
"""


@asynccontextmanager
async def listening_inside(pid: int, port: int) -> AsyncIterator[socket.socket]:
    """Listen on 127.0.0.1 in the network namespace of a process, and bring its loopback up.

    A socket belongs to the namespace that it was made in, whoever accepts: what connects to
    it comes from inside, and this process, outside, has it. It needs Linux, and no root where
    this user made the namespaces.

    Args:
        pid: A process whose network is a namespace of its own.
        port: Where to listen; see `EgressProxy.environ`.

    Yields:
        The socket that listens.

    Raises:
        SandboxStartError: It cannot be done; the message says what stood in the way.
    """
    listener = await made_or_undone(lambda: _listen(pid, port), socket.socket.close)
    with listener:
        yield listener


def _listen(pid: int, port: int) -> socket.socket:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        words = [_PROGRAM, str(pid), str(port), str(theirs.fileno())]
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", *words],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
        if done.returncode:
            told = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason"]
            raise SandboxStartError(
                f"nothing can listen in the namespaces of process {pid} ({told[-1][:_SHOWN]}); "
                "give it a network namespace that this user made, and a free port"
            )
        _, passed, _, _ = socket.recv_fds(ours, 1, 1)
    return socket.socket(fileno=passed[0])
