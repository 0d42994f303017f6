"""The HTTP origin: it records each request and answers as its site is meant to behave."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import h11

from conformance.lab.journal import PAYLOAD_LIMIT
from conformance.lab.servers.registry import host_only

if TYPE_CHECKING:
    from conformance.lab.servers.records import Journal
    from conformance.lab.servers.registry import DefinedSite, Registry

_CHUNK = 65536
_BODY_LIMIT = 64 << 20
_LARGE_LIMIT = 64 << 20
_BODILESS = (204, 304)
_PIECE = 11
_PIECE_PAUSE = 0.005
_HEADERS = tuple[tuple[str, str], ...]


@dataclass
class Stream:
    """A connection as a pair of streams.

    Args:
        reader: what the client says.
        writer: what it is answered.
        local: address and port that were dialled.
        source: address and port that it came from.
        tls: whether it runs inside TLS.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    local: tuple[str, int]
    source: tuple[str, int]
    tls: bool


class HttpConnection:
    """h11 over a stream, with the requests recorded.

    Args:
        stream: the connection.
        journal: where requests are recorded.
    """

    def __init__(self, stream: Stream, journal: Journal) -> None:
        self.stream = stream
        self._journal = journal
        self._http = h11.Connection(h11.SERVER)
        self._number = 0
        self._is_head = False

    async def next_request(self) -> h11.Request | None:
        """Read a request's head and record it; `None` at the end of the connection.

        Raises:
            h11.RemoteProtocolError: it is no HTTP; the bytes are recorded.
        """
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        raw = b""
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError:
                self._record_raw(raw)
                raise
            if isinstance(event, h11.Request):
                self._number = self._record(event)
                self._is_head = event.method == b"HEAD"
                return event
            if event is not h11.NEED_DATA:
                return None
            data = await self.stream.reader.read(_CHUNK)
            raw = (raw + data)[:PAYLOAD_LIMIT]
            if not data and raw:
                self._record_raw(raw)  # a head that never ended
            self._http.receive_data(data)

    def _record_raw(self, data: bytes) -> None:
        stream = self.stream
        self._journal.record("request", stream.local, stream.source, payload=data, tls=stream.tls)

    def _record(self, request: h11.Request) -> int:
        headers = headers_of(request)
        host = next((value for name, value in headers if name == "host"), "")
        return self._journal.record(
            "request",
            self.stream.local,
            self.stream.source,
            name=host_only(host),
            method=request.method.decode("latin-1"),
            path=request.target.decode("latin-1"),
            headers=headers,
            tls=self.stream.tls,
        )

    async def body(self) -> bytes:
        """Read the body to its end, and give its first bytes.

        Raises:
            ValueError: it is too large.
        """
        head, size = bytearray(), 0
        while True:
            if self._http.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                self.stream.writer.write(self._http.send(go_on) or b"")
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                if head:  # what has come is on record even if the rest never comes
                    self._journal.amend(self._number, bytes(head))
                self._http.receive_data(await self.stream.reader.read(_CHUNK))
            elif isinstance(event, h11.Data):
                size += len(event.data)
                head += event.data[: max(0, PAYLOAD_LIMIT - len(head))]
                if size > _BODY_LIMIT:
                    raise ValueError("the body is too large")
            else:
                break
        if head:
            self._journal.amend(self._number, bytes(head))
        return bytes(head)

    async def respond(
        self,
        status: int,
        body: bytes,
        headers: _HEADERS = (),
        pause: float = 0.0,
        piece: int = 0,
    ) -> None:
        """Answer; the length is always told, since some clients insist on it.

        Args:
            status: of the answer.
            body: its body.
            headers: beside those of every answer.
            pause: seconds between head and body.
            piece: so many bytes of the body are sent at a time, if not 0.
        """
        fields = [("content-length", str(len(body))), ("content-type", "text/plain"), *headers]
        response = h11.Response(status_code=status, headers=fields, reason=b"Lab")
        head = self._http.send(response) or b""
        if pause:
            self.stream.writer.write(head)
            await asyncio.sleep(pause)
            head = b""
        if body and not self._is_head and status not in _BODILESS:
            while piece and len(body) > piece:
                head += self._http.send(h11.Data(data=body[:piece])) or b""
                self.stream.writer.write(head)
                await self.stream.writer.drain()
                await asyncio.sleep(_PIECE_PAUSE)
                head, body = b"", body[piece:]
            head += self._http.send(h11.Data(data=body)) or b""
        head += self._http.send(h11.EndOfMessage()) or b""
        self.stream.writer.write(head)  # in one piece where it can be, for clients that read once
        await self.stream.writer.drain()

    @property
    def is_reusable(self) -> bool:
        """Whether another request may follow."""
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    @property
    def unparsed(self) -> bytes:
        """What has been read beyond the request."""
        return bytes(self._http.trailing_data[0])


def headers_of(request: h11.Request) -> _HEADERS:
    """Give header fields as text, names in lower case."""
    return tuple(
        (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in request.headers
    )


async def serve(stream: Stream, journal: Journal, registry: Registry) -> None:
    """Answer the requests of one connection until either side has done."""
    connection = HttpConnection(stream, journal)
    while True:
        request = await connection.next_request()
        if request is None:
            return
        headers = headers_of(request)
        host = next((value for name, value in headers if name == "host"), "")
        path = request.target.decode("latin-1")
        body = await connection.body()
        site = registry.serving(*stream.local, host, path)
        if not await _behave(connection, site, request, body) or not connection.is_reusable:
            return


async def _behave(
    connection: HttpConnection, site: DefinedSite | None, request: h11.Request, body: bytes
) -> bool:
    """Answer one request as the site is meant to; whether the connection may go on."""
    if site is None:
        await connection.respond(404, b"no site of the lab\n")
        return True
    kind, _, argument = site.behaviour.partition(":")
    token = site.token.encode() + b"\n"
    if kind == "close":
        return False
    if site.redirect is not None:
        status, target = site.redirect
        await connection.respond(status, token, (("location", target),))
    elif kind == "loop":
        location = request.target.decode("latin-1")
        await connection.respond(302, token, (("location", location),))
    elif kind == "status":
        await connection.respond(int(argument), token)
    elif kind == "slow":
        await connection.respond(200, token, pause=float(argument or 10))
    elif kind == "large":
        size = min(int(argument), _LARGE_LIMIT)
        await connection.respond(200, token + b"x" * max(0, size - len(token)))
    elif kind == "echo":
        told = {
            "token": site.token,
            "method": request.method.decode("latin-1"),
            "path": request.target.decode("latin-1"),
            "headers": headers_of(request),
            "body": body.decode("latin-1"),
        }
        await connection.respond(200, json.dumps(told).encode() + b"\n")
    elif kind in ("reflect", "drip"):
        values = [value for name, value in headers_of(request) if name != "host"]
        shown = tuple(("x-reflected", value) for value in values if kind == "reflect")
        lines = "\n".join(values).encode("latin-1")
        piece = _PIECE if kind == "drip" else 0
        await connection.respond(200, token + lines + b"\n", shown, piece=piece)
    else:
        await connection.respond(200, token)
    return True
