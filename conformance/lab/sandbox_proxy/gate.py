"""The gate: it knows sessions by their credential, and hands connections to their proxies."""

from __future__ import annotations

import asyncio
import base64
import binascii
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from conformance.lab.sandbox_proxy.sessions import USER

if TYPE_CHECKING:
    from conformance.lab.sandbox_proxy.sessions import Session, Sessions

HEAD_BYTES = 64 * 1024
"""The longest head of a request."""

_HEAD_SECONDS = 15.0
_CHUNK = 65536
_ASK = (
    b"HTTP/1.1 407 Proxy Authentication Required\r\n"
    b'Proxy-Authenticate: Basic realm="Sandbox Proxy"\r\n'
    b"Content-Length: 0\r\nConnection: close\r\n\r\n"
)
_WELL = b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"
# Each request is judged by its credential, so only one comes over a connection.
_TAKEN_OFF = (b"proxy-authorization", b"proxy-connection", b"connection")


class Gate:
    """Serves the proxy's public name.

    Args:
        sessions: those that were handed out.
        record: takes a row for each request.
    """

    def __init__(self, sessions: Sessions, record: list[dict[str, Any]]) -> None:
        self._sessions = sessions
        self._record = record

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection to its end."""
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            try:
                async with asyncio.timeout(_HEAD_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                await self._judge(head, reader, writer)
            except TimeoutError:
                pass  # it had its chance
            finally:
                writer.close()
                await writer.wait_closed()

    async def _judge(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        first, *fields = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
        named = [(field.partition(b":")[0].strip().lower(), field) for field in fields]
        shown = [field.partition(b":")[2] for name, field in named if name == _TAKEN_OFF[0]]
        session = self._session(shown)
        self._note(first, session)
        if session is None:
            writer.write(_ASK)
            await writer.drain()
            return
        if session.identity.goes_wrong("gate_down"):
            return
        if first.startswith(b"OPTIONS * "):
            writer.write(_WELL)
            await writer.drain()
            return
        lines = [first, *(field for name, field in named if name not in _TAKEN_OFF)]
        if not first.startswith(b"CONNECT "):
            lines.append(b"Connection: close")
        await _hand_over(session, b"\r\n".join(lines) + b"\r\n\r\n", reader, writer)

    def _session(self, shown: list[bytes]) -> Session | None:
        if len(shown) != 1:
            return None
        scheme, _, text = shown[0].strip().partition(b" ")
        try:
            user, _, credential = base64.b64decode(text, validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            return None
        if scheme.lower() != b"basic" or user != USER:
            return None
        return self._sessions.bearing(credential)

    def _note(self, first: bytes, session: Session | None) -> None:
        words = first.decode("latin-1").split(" ")
        self._record.append(
            {
                "method": words[0],
                "target": words[1] if len(words) > 1 else "",
                "identity": session.identity.name if session else "",
                "session": session.name if session else "",
            }
        )


async def _hand_over(
    session: Session, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    inside, out = await asyncio.open_unix_connection(session.path)
    out.write(head)
    there = asyncio.ensure_future(_pump(reader, out))
    back = asyncio.ensure_future(_pump(inside, writer))
    try:
        await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
    finally:
        there.cancel()
        back.cancel()
        out.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
