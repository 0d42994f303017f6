"""A unix socket inside the sandbox, for controls: does a client reach one at all in there?

Sent as `python3 -I -c SOURCE KIND ADDRESS COMMAND`; an address with an `@` before it is an
abstract name. It listens, runs the command, and says whether the command got through to
it, or that the sandbox lets no program make a unix socket. Python 3.8 and the standard
library are enough.
"""

import os
import socket
import subprocess
import sys

SECONDS = 8


def made(kind: str) -> "socket.socket | None":
    """Make a socket; None where there are none."""
    try:
        return socket.socket(socket.AF_UNIX, getattr(socket, kind))
    except OSError:
        return None


def heard(server: socket.socket, kind: str, address: str, command: str) -> bool:
    """Listen, run the command, and tell whether it came."""
    server.bind(address.replace("@", "\0", 1))
    server.settimeout(SECONDS)
    if kind == "SOCK_STREAM":
        server.listen()
    child = subprocess.Popen(["/bin/sh", "-c", command])
    peer = server.accept()[0] if kind == "SOCK_STREAM" else server
    with peer:
        peer.settimeout(SECONDS)
        came = bool(peer.recv(4096))
    child.wait(SECONDS)
    return came


if __name__ == "__main__":
    kind, address, command = sys.argv[1:]
    with made(kind) or open(os.devnull) as server:
        # Computed, so that a fake which echoes its commands does not pass for an answer.
        if isinstance(server, socket.socket):
            sys.stdout.write(f"\nheard={40 + 2 * heard(server, kind, address, command)}\n")
        else:
            sys.stdout.write(f"\nunmakeable={40 + 2}\n")
    if not address.startswith("@") and os.path.exists(address):
        os.remove(address)
