"""What the programs inside a cloud sandbox have in common: their argument and their answer.

Its arguments are a token, which names the call among the processes, and, appended where other
processes do not see it, a request: in JSON, compressed, in base64; or after @ the name of a
file that holds one, since a long one does not fit into one command line.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import zlib
from contextlib import suppress
from typing import Any

MARK = "sandbox-cloud:"


def request() -> dict[str, Any]:
    """What was asked for."""
    text = sys.argv[2]
    if text.startswith("@"):
        path = text[1:]
        with open(path) as file:
            text = file.read()
        os.unlink(path)
    found: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(text)))
    return found


def answer(found: dict[str, Any]) -> None:
    """Say what came of it, in one line of ASCII."""
    rest = memoryview((MARK + json.dumps(found) + "\n").encode())
    while rest:
        rest = rest[os.write(1, rest) :]


def packed(data: bytes) -> str:
    """Bytes as text for an answer."""
    return base64.b64encode(zlib.compress(data, 1)).decode()


def instance() -> str:
    """What differs once the machine or the container was started anew."""
    found = []
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        found.append(file.read().strip())
    with suppress(OSError, IndexError), open("/proc/1/stat") as file:
        found.append(file.read().rpartition(")")[2].split()[19])
    return " ".join(found)
