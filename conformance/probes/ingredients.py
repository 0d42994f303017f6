"""What background processes are made of inside a sandbox, each tried by itself."""

from __future__ import annotations

import secrets
import shlex
import time
from typing import TYPE_CHECKING

from conformance.probes.declared import process_shared, said

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.subject.facade import Box

_RUNS = "print(f'ran={40 + 2}')"
_SOCKET = """
import os, socket, sys
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(sys.argv[1])
    listener.listen()
os.unlink(sys.argv[1])
print(f"ran={40 + 2}")
"""
_SUBPROCESS = """
import subprocess
print(f"ran={subprocess.run(['sh', '-c', 'exit 42']).returncode}")
"""
# It answers one caller, who comes with a later command.
_LISTENER = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
apart, told = os.pipe()
if os.fork():
    os.close(told)
    os.read(apart, 1)  # the group of a command may be ended with it
    print(f"ran={40 + 2}")
    sys.stdout.flush()
    os._exit(0)
os.setsid()
os.close(told)
null = os.open(os.devnull, os.O_RDWR)
for number in (0, 1, 2):
    os.dup2(null, number)
listener.settimeout(20)
caller, _ = listener.accept()
caller.sendall(b"heard=42")
os.unlink(sys.argv[1])
"""
_CALLER = """
import socket, sys
with socket.socket(socket.AF_UNIX) as caller:
    caller.settimeout(5)
    caller.connect(sys.argv[1])
    print(caller.recv(100).decode())
"""


def _python(code: str, *words: str) -> str:
    return shlex.join(["python3", "-I", "-c", code, *words])


def _ran(box: Box, command: str) -> str:
    got = said(box, command)
    shown = " ".join(command.split())[:60]
    return "" if "ran=42" in got.split() else f"`{shown}` showed {got[-80:]!r}"


def _shell(box: Box) -> str:
    return process_shared(box)


def _python_alone(box: Box) -> str:
    return _ran(box, _python(_RUNS))


def _name() -> str:
    return f"listens-{secrets.token_hex(3)}"


def _sockets(box: Box) -> str:
    return _ran(box, _python(_SOCKET, _name()))


def _children(box: Box) -> str:
    return _ran(box, _python(_SUBPROCESS))


def _living_on(box: Box) -> str:
    """What listens in the temporary folder is still there for a later command."""
    place = said(box, _python("import tempfile; print(tempfile.gettempdir())")).strip()
    path = f"{place}/{_name()}"
    if lack := _ran(box, _python(_LISTENER, path)):
        return lack
    time.sleep(0.3)
    got = said(box, _python(_CALLER, path))
    return "" if "heard=42" in got else "no later command found what one had left listening"


_LACKS: dict[str, Callable[[Box], str]] = {
    "an operating-system shell": _shell,
    "python3 -I": _python_alone,
    "socket": _sockets,
    "subprocess": _children,
    "processes that live on": _living_on,
}
NAMES = tuple(_LACKS)
"""What they are made of."""


def lack(box: Box, name: str) -> str:
    """Say what is missing of one of these; an empty text if nothing is."""
    return _LACKS[name](box)
