"""The process that instances are forked from, as its customers see it.

It has loaded what the server of an instance needs, which takes longer than all else that an
instance is made of. It is forked before the cloud has any secret, since every instance has a
copy of its memory; and not executed anew, since an ordinary user's rights in the namespaces of
the lab would end with that.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from conformance.lab.processes import fork

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


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
    """Forks it, in the caller's namespaces; it ends with the caller."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        descriptor = theirs.fileno()
        self._pid = fork(lambda: _become(descriptor))
        theirs.close()

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
        os.waitpid(self._pid, 0)


def _become(descriptor: int) -> None:
    from conformance.lab.cloud.building import serve  # dear, and nobody else needs it

    serve(descriptor)
