"""The lab's GitHub as a process: its two doors, one for its customers and one for the checks."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from conformance.lab.cloud.wire import Caller
from conformance.lab.errors import LabError
from conformance.lab.github.edge import Edge
from conformance.lab.github.repositories import Repositories

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Coroutine
    from pathlib import Path

_LINE_BYTES = 1 << 26


class GitHub:
    """The service.

    Args:
        folder: where repositories are put.
    """

    def __init__(self, folder: Path) -> None:
        self.known = Repositories(folder)
        self.edge = Edge(self.known)
        self._callers: set[asyncio.Task[None]] = set()

    async def serve(
        self, door: socket.socket, control: socket.socket, tls: ssl.SSLContext | None = None
    ) -> None:
        """Serve until cancelled.

        Args:
            door: listens for customers.
            control: a unix socket that listens for the checks.
            tls: the certificates of the door, where nobody before it speaks TLS.
        """
        listening = await asyncio.start_server(self._take, sock=door, ssl=tls)
        asked = await asyncio.start_unix_server(self._be_asked, sock=control, limit=_LINE_BYTES)
        try:
            async with listening, asked:
                await asyncio.gather(listening.serve_forever(), asked.serve_forever())
        finally:
            for task in self._callers:
                task.cancel()
            await asyncio.gather(*self._callers, return_exceptions=True)

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._keep(Caller(reader, writer).serve(self.edge.handle))

    def _be_asked(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._keep(self._converse(reader, writer))

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._callers.add(task)
        task.add_done_callback(self._callers.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                request = json.loads(line)
                try:
                    answer = self._do(request.pop("do"), request)
                except LabError as failure:
                    answer = {"error": failure.reason}
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError):
            pass  # the asker is gone, or is none of ours
        finally:
            writer.close()

    def _do(self, what: str, fields: dict[str, Any]) -> dict[str, Any]:
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
    with suppress(asyncio.CancelledError):
        await GitHub(folder).serve(door, control, tls)
