"""A connection as bytes that are waited for: bounded both ways, and never waited for forever."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Callable

_HIGH_WATER = 64 * 1024
_LINGER_SECONDS = 1.0
_LINGER_BYTES = 256 * 1024


class Stream(Protocol):
    """What both a bare connection and TLS on it can do."""

    async def receive(self, seconds: float) -> bytes:
        """Wait for the next bytes, at most so long; none at the end of the stream."""

    async def send(self, data: bytes) -> None:
        """Write, and wait while the peer takes nothing."""

    async def finish(self) -> None:
        """Say that nothing more is written."""

    async def linger(self) -> None:
        """Finish, and read away what still comes, so that the peer gets our last words."""

    @property
    def quiet(self) -> bool:
        """Whether nothing came that was not received, the end included."""

    def abort(self) -> None:
        """Cut the connection."""


class Wire(asyncio.Protocol):
    """One TCP or unix connection.

    Args:
        silence_seconds: How long a peer may take nothing of what is sent to it.
        opened: Called once, when the connection stands.
    """

    def __init__(
        self, silence_seconds: float, opened: Callable[[Wire], None] | None = None
    ) -> None:
        self._silence_seconds = silence_seconds
        self._opened = opened
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._paused = self._ended = self._lost = False
        self._broken = False
        self._reader: asyncio.Future[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        self._transport = cast("asyncio.Transport", transport)
        connection = transport.get_extra_info("socket")
        if connection.family in (socket.AF_INET, socket.AF_INET6):
            # asyncio does so only where a socket names its protocol.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._opened is not None:
            self._opened(self)

    def data_received(self, data: bytes) -> None:
        """Keep what came, and stop reading when that is much."""
        self._buffer += data
        if len(self._buffer) > _HIGH_WATER and not self._paused and self._transport:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        """Keep the other direction open."""
        self._ended = True
        self._wake()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """Wake everybody."""
        self._ended = self._lost = True
        self._broken = self._broken or error is not None
        self._writable.set()
        self._wake()

    def pause_writing(self) -> None:
        """Let senders wait."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let senders go on."""
        self._writable.set()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def receive(self, seconds: float) -> bytes:
        """Wait for the next bytes, at most so long; none at the end of the stream.

        Raises:
            TimeoutError: Nothing came in time.
            ConnectionResetError: The connection broke.
        """
        if not self._buffer and not self._ended:
            self._reader = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(seconds):
                    await self._reader
            finally:
                self._reader = None
        data = bytes(self._buffer)
        self._buffer.clear()
        if not data and self._broken:
            raise ConnectionResetError("the connection broke")
        if self._paused and self._transport:
            self._paused = False
            self._transport.resume_reading()
        return data

    async def send(self, data: bytes) -> None:
        """Write, and wait while the peer takes nothing.

        Raises:
            TimeoutError: The peer took nothing in time.
            ConnectionResetError: The connection broke.
        """
        if self._lost or self._transport is None:
            raise ConnectionResetError("the connection broke")
        self._transport.write(data)
        if not self._writable.is_set():
            async with asyncio.timeout(self._silence_seconds):
                await self._writable.wait()

    async def flush(self) -> None:
        """Wait until all that was written is sent.

        Raises:
            TimeoutError: The peer took nothing in time.
        """
        if self._transport and not self._lost:
            self._transport.set_write_buffer_limits(0)
            if not self._writable.is_set():
                async with asyncio.timeout(self._silence_seconds):
                    await self._writable.wait()

    async def finish(self) -> None:
        """Say that nothing more is written."""
        if self._transport and not self._lost and self._transport.can_write_eof():
            self._transport.write_eof()

    async def linger(self) -> None:
        """Finish, and read away what still comes, so that the peer gets our last words."""
        taken = 0
        try:
            await self.finish()
            await self.flush()
            async with asyncio.timeout(_LINGER_SECONDS):
                while taken < _LINGER_BYTES and (data := await self.receive(_LINGER_SECONDS)):
                    taken += len(data)
        except (TimeoutError, OSError):
            pass  # it had its chance
        self.abort()

    @property
    def quiet(self) -> bool:
        """Whether nothing came that was not received, the end included."""
        return not (self._buffer or self._ended)

    def abort(self) -> None:
        """Cut the connection; what was written and not sent is dropped."""
        if self._transport is not None and not self._lost:
            self._broken = True
            self._transport.abort()
