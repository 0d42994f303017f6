"""Names of services that the lab has of its own, and the way from their address to their door."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from conformance.lab.cloud import place as cloud
from conformance.lab.github import place as github
from conformance.lab.sandbox_proxy import place as sandbox_proxy

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.lab.door import Door

DOORS: tuple[Door, ...] = (cloud.PUBLIC, *sandbox_proxy.PUBLIC, github.PUBLIC)
"""All that there are; each answers for its names once its service runs."""

_CHUNK = 65536
_HANDSHAKE_SECONDS = 10.0
_SHUTDOWN_SECONDS = 2.0


class Doors:
    """Takes connections to the names of services over to them, once they run.

    Args:
        doors: theirs.
    """

    def __init__(self, doors: Sequence[Door] = DOORS) -> None:
        self._doors = tuple(doors)
        self._open: set[asyncio.Task[None]] = set()

    def of(self, name: str) -> Door | None:
        """Give the door of a name whose service runs; None for other names."""
        return next((door for door in self._doors if door.serves(name)), None)

    def answers(self, name: str, kind: str) -> list[str] | None:
        """Give the addresses of a service's name for a question; None for other names."""
        door = self.of(name)
        if door is None:
            return None
        return [door.address] if kind == "A" else []

    def take(self, door: Door, handle: socket.socket, context: ssl.SSLContext) -> None:
        """Speak TLS on a connection, and pass on what is in it for as long as both ends like.

        Args:
            door: where to.
            handle: the connection, which is this one's to close.
            context: the certificate.
        """
        task = asyncio.ensure_future(_pass_on(handle, context, door.path))
        self._open.add(task)
        task.add_done_callback(self._open.discard)


async def _pass_on(handle: socket.socket, context: ssl.SSLContext, path: Path) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    with suppress(OSError, TimeoutError):
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol,
            handle,
            ssl=context,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=_SHUTDOWN_SECONDS,
        )
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        try:
            inside, out = await asyncio.open_unix_connection(path)
            there = asyncio.ensure_future(_pump(reader, out))
            back = asyncio.ensure_future(_pump(inside, writer))
            try:
                # TLS knows no half of a connection: where one end goes, the other does.
                await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
            finally:
                there.cancel()
                back.cancel()
                out.close()
        finally:
            writer.close()
            await writer.wait_closed()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
