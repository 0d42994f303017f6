"""The cloud's public side: its names, and the way from its address to its door."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from conformance.lab.addresses import CLOUD_ADDRESS
from conformance.lab.cloud.place import DOOR, is_provider

if TYPE_CHECKING:
    import socket
    import ssl

_CHUNK = 65536
_HANDSHAKE_SECONDS = 10.0
_SHUTDOWN_SECONDS = 2.0


class CloudGate:
    """Takes connections to the provider's names over to the cloud, once it runs."""

    def __init__(self) -> None:
        self._open: set[asyncio.Task[None]] = set()

    def serves(self, name: str) -> bool:
        """Whether this is a name of the provider's, and the cloud runs."""
        return is_provider(name) and DOOR.exists()

    def answers(self, name: str, kind: str) -> list[str] | None:
        """Give the addresses of a name of the provider's for a question; None for others."""
        if not self.serves(name):
            return None
        return [CLOUD_ADDRESS] if kind == "A" else []

    def take(self, handle: socket.socket, context: ssl.SSLContext) -> None:
        """Speak TLS on a connection, and pass on what is in it for as long as both ends like.

        Args:
            handle: the connection, which is this one's to close.
            context: the certificate.
        """
        task = asyncio.ensure_future(_pass_on(handle, context))
        self._open.add(task)
        task.add_done_callback(self._open.discard)


async def _pass_on(handle: socket.socket, context: ssl.SSLContext) -> None:
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
            inside, out = await asyncio.open_unix_connection(DOOR)
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
