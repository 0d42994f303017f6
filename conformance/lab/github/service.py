"""The lab's GitHub as a process: its two doors, one for its customers and one for the checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.lab.cloud.wire import Caller
from conformance.lab.errors import LabError
from conformance.lab.github.edge import Edge
from conformance.lab.github.repositories import Repositories
from conformance.lab.serving import Door, serve, until_cancelled

if TYPE_CHECKING:
    import asyncio
    import socket
    import ssl
    from pathlib import Path


class GitHub:
    """The service.

    Args:
        folder: where repositories are put.
    """

    def __init__(self, folder: Path) -> None:
        self.known = Repositories(folder)
        self.edge = Edge(self.known)

    async def serve(
        self, door: socket.socket, control: socket.socket, tls: ssl.SSLContext | None = None
    ) -> None:
        """Serve until cancelled.

        Args:
            door: listens for customers.
            control: a unix socket that listens for the checks.
            tls: the certificates of the door, where nobody before it speaks TLS.
        """
        await serve(control, self._do, Door(door, self._take, tls=tls))

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Caller(reader, writer).serve(self.edge.handle)

    async def _do(self, what: str, fields: dict[str, Any]) -> dict[str, Any]:
        if what == "repository":
            return self.known.make(**fields).to_wire()
        if what == "rename":
            self.known.rename(**fields)
            return {}
        if what == "user":
            return {"token": self.known.user.value}
        if what == "issue":
            return {"token": self.known.issue(fields["numbers"]).value}
        if what == "requests":
            mark = fields["mark"]
            return {"rows": [row for row in self.edge.requests if _holds(row, mark)]}
        raise LabError(f"the lab's GitHub does not know how to {what}")


def _holds(row: dict[str, Any], mark: str) -> bool:
    """Whether a row is of who uses a mark: in a name, a header or a body."""
    shown = (row["target"], row["body"], *row["headers"].values(), *row["meant"])
    return any(mark in text.lower() for text in shown)


async def run(
    folder: Path, door: socket.socket, control: socket.socket, tls: ssl.SSLContext | None = None
) -> None:
    """Serve until the task is cancelled."""
    await until_cancelled(GitHub(folder).serve(door, control, tls))
