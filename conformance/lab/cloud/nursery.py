"""The process that instances are forked from, as its customers see it.

It has loaded what the server of an instance needs, which takes longer than all else that an
instance is made of; and it was started anew, so that its memory, which every instance has a
copy of, holds nothing of the lab's.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# What it is started with is later written over by the variables of an instance.
_ROOM = "." * 65_536
_BEGIN = """\
import sys
sys.path[:] = {path!r}
from conformance.lab.cloud.building import serve
serve({descriptor})
"""


@dataclass(frozen=True, kw_only=True)
class Order:
    """What an instance is to be.

    Args:
        number: its own, which gives it its addresses.
        identifier: its name in the cloud.
        environ: variables of its first process.
        privileged: whether it keeps root's capabilities.
        ranges: what it may reach at first.
    """

    number: int
    identifier: str
    environ: Mapping[str, str]
    privileged: bool
    ranges: Sequence[str]


class Nursery:
    """Starts it, in the caller's namespaces; it ends with the caller."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        begin = _BEGIN.format(path=sys.path, descriptor=theirs.fileno())
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", begin],
                env={"ROOM": _ROOM},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def begin(self, order: Order, place: Path, told: int, listeners: Sequence[int]) -> None:
        """Have the building of an instance begun.

        Args:
            order: what it is to be.
            place: a folder for its root.
            told: a pipe that its builder writes its own id to, and, when all is built, that of
                the first process.
            listeners: the sockets of its server.

        Raises:
            OSError: it is gone.
        """
        with os.fdopen(os.memfd_create("order"), "wb", buffering=0) as asked:
            asked.write(json.dumps([asdict(order), str(place)]).encode())
            asked.seek(0)
            socket.send_fds(self._socket, [b"o"], [asked.fileno(), told, *listeners])

    def close(self) -> None:
        """Have it end, and wait for that."""
        self._socket.close()
        self._process.wait()
