"""Hand one request to the keeper of background processes, and print its answer.

Arguments: the keeper's folder, or its name alone; a token; "part" or "last"; and a piece
of the request in base64, since a long one does not fit into one command line.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

MARK = "sandbox-processes:"
SECONDS = 30.0


def main(name: str, token: str, kind: str, piece: str) -> None:
    """Do what the arguments ask, and say so in one line of ASCII."""
    here = os.getcwd()
    try:
        # A socket's path may have 107 bytes only; from within the folder it has one.
        os.chdir(name if os.path.isabs(name) else below_temp(name))
    except OSError:
        reply = '{"gone": true}'
    else:
        reply = ask(here, token + ".part", piece) if kind == "last" else keep(token, piece)
    sys.stdout.write(MARK + reply + "\n")


def below_temp(name: str) -> str:
    """The folder of a keeper that was not heard of."""
    import tempfile  # costs more than all the rest

    return os.path.join(tempfile.gettempdir(), name)


def keep(token: str, piece: str) -> str:
    """Put a part of a request away."""
    with open(token + ".part", "a") as parts:
        parts.write(piece)
    return "{}"


def ask(here: str, parts: str, piece: str) -> str:
    """Send the whole request to the keeper."""
    if os.path.exists(parts):
        with open(parts) as before:
            piece = before.read() + piece
        os.unlink(parts)
    request: dict[str, Any] = json.loads(base64.b64decode(piece))
    if request["do"] == "start":
        umask = os.umask(0o077)
        request.update(cwd=here, environ=dict(os.environ), umask=umask)
    with socket.socket(socket.AF_UNIX) as keeper:
        keeper.settimeout(SECONDS)
        try:
            keeper.connect("s")
            keeper.sendall(json.dumps(request).encode())
            keeper.shutdown(socket.SHUT_WR)
            reply = b"".join(iter(lambda: keeper.recv(65536), b""))
        except OSError:
            if request["do"] == "close":
                clear()
            return '{"gone": true}'
    return reply.decode() or '{"gone": true}'


def clear() -> None:
    """Remove the folder of a keeper that was killed before it could."""
    import shutil  # costs more than all the rest

    folder = os.getcwd()
    os.chdir("/")
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
