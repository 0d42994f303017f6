"""What the programs inside a cloud sandbox have in common: their argument and their answer.

Its arguments are a token, which names the call among the processes, and, appended where other
processes do not see it, a request: plain values as `marshal` writes them, compressed, in base64;
or after @ the name of a file that holds one, since a long one does not fit into one command line.

Every command waits for the imports, and json's are half as dear as the interpreter.
"""

from __future__ import annotations

import marshal
import os
import sys
import zlib
from binascii import a2b_base64, b2a_base64

from sandboxes.bare import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

try:
    from _json import encode_basestring_ascii as _quoted
except ImportError:
    from json import dumps as _quoted

MARK = "sandbox-cloud:"


def request() -> dict[str, Any]:
    """What was asked for."""
    text = sys.argv[2]
    if text.startswith("@"):
        path = text[1:]
        with open(path) as file:
            text = file.read()
        os.unlink(path)
    packed = zlib.decompress(a2b_base64(text))
    found: dict[str, Any] = marshal.loads(packed)  # noqa: S302 - as our own as this program
    return found


def answer(found: dict[str, Any]) -> None:
    """Say what came of it, in one line of JSON, which is ASCII."""
    rest = memoryview(f"{MARK}{_json(found)}\n".encode())
    while rest:
        rest = rest[os.write(1, rest) :]


def _json(value: object) -> str:
    """A plain value in JSON."""
    if isinstance(value, dict):
        rows = [f"{_json(name)}: {_json(one)}" for name, one in value.items()]
        return f"{{{', '.join(rows)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_json, value))}]"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else repr(value)


def packed(data: bytes) -> str:
    """Bytes as text for an answer."""
    return b2a_base64(zlib.compress(data, 1), newline=False).decode()


def instance() -> str:
    """What differs once the machine or the container was started anew."""
    found = []
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        found.append(file.read().strip())
    with suppress(OSError, IndexError), open("/proc/1/stat") as file:
        found.append(file.read().rpartition(")")[2].split()[19])
    return " ".join(found)
