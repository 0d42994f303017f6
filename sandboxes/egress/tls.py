"""TLS on a connection, in memory: what was read ahead can be given to it."""

from __future__ import annotations

import contextlib
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandboxes.egress.wire import Wire

_CHUNK = 64 * 1024


class TlsWire:
    """One side of a TLS connection; `handshake` comes first.

    Args:
        wire: What carries it.
        context: Of this side.
        server_side: Which side this is.
        server_hostname: The name that the server's certificate must hold.
        first: Bytes of the peer that were read from the wire already.
    """

    def __init__(
        self,
        wire: Wire,
        context: ssl.SSLContext,
        *,
        server_side: bool = False,
        server_hostname: str | None = None,
        first: bytes = b"",
    ) -> None:
        self._wire = wire
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._incoming.write(first)
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_side, server_hostname=server_hostname
        )

    async def handshake(self, seconds: float) -> None:
        """Agree on keys, and check the peer's certificate where this side has to.

        Raises:
            ssl.SSLError: They did not agree; the peer was told.
            TimeoutError: The peer was silent for so long.
        """
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._fill(seconds)
            except ssl.SSLError:
                await self._flush()
                raise
            else:
                await self._flush()
                return

    async def _flush(self) -> None:
        if self._outgoing.pending:
            await self._wire.send(self._outgoing.read())

    async def _fill(self, seconds: float) -> None:
        data = await self._wire.receive(seconds)
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    async def receive(self, seconds: float) -> bytes:
        """Wait for the next bytes, at most so long; none where the peer closed properly.

        Raises:
            ssl.SSLError: The connection was cut, or what came is no TLS.
            TimeoutError: Nothing came in time.
        """
        while True:
            try:
                return self._tls.read(_CHUNK)
            except ssl.SSLZeroReturnError:
                return b""
            except ssl.SSLWantReadError:
                await self._flush()
                await self._fill(seconds)

    async def send(self, data: bytes) -> None:
        """Write, and wait while the peer takes nothing."""
        self._tls.write(data)
        await self._flush()

    async def finish(self) -> None:
        """Say that nothing more is written."""
        # Our close_notify is written; the peer's is not waited for.
        with contextlib.suppress(ssl.SSLError):
            self._tls.unwrap()
        await self._flush()

    async def linger(self) -> None:
        """Finish, and read away what still comes, so that the peer gets our last words."""
        await self.finish()
        await self._wire.linger()

    @property
    def quiet(self) -> bool:
        """Whether nothing came that was not received, the end included."""
        return self._wire.quiet and not self._incoming.pending and not self._tls.pending()

    def abort(self) -> None:
        """Cut the connection."""
        self._wire.abort()
