"""HTTP/1.1 as the cloud serves it: one request at a time, a caller that leaves is noticed."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import h11

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

_CHUNK = 65536
_BODY_LIMIT = 64 << 20
_REASONS = {200: b"OK", 201: b"Created", 404: b"Not Found"}
Headers = list[tuple[str, str]]


class Hangup(Exception):
    """The connection is to end here, whatever is still owed on it."""


@dataclass(frozen=True)
class Request:
    """A request that was read to its end.

    Args:
        method: its method.
        target: its target as it was sent.
        headers: names in lower case.
        body: all of it.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        """The target without the query."""
        return self.target.partition("?")[0]

    def json(self) -> dict[str, Any]:
        """Give the body; what is no JSON object is empty."""
        try:
            body = json.loads(self.body)
        except ValueError:
            return {}
        return body if isinstance(body, dict) else {}


@dataclass(frozen=True)
class Answer:
    """An answer that is whole.

    Args:
        status: its status.
        body: what it says.
        kind: the type of that.
        headers: further ones.
    """

    status: int
    body: bytes = b""
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, number: int, /, **fields: object) -> Answer:
        """Give one in JSON."""
        return cls(number, json.dumps(fields).encode())

    @classmethod
    def text(cls, status: int, text: str) -> Answer:
        """Give one in words."""
        return cls(status, text.encode(), "text/plain; charset=utf-8")


class Caller:
    """One connection to the cloud.

    Args:
        reader: what the caller says.
        writer: what it is told.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.SERVER)
        self._waiting: asyncio.Task[bytes] | None = None

    async def serve(self, handle: Callable[[Request, Caller], Awaitable[Answer | None]]) -> None:
        """Answer requests until either side has done.

        Args:
            handle: gives the answer, or has sent one itself.
        """
        try:
            while (request := await self._next()) is not None:
                answer = await handle(request, self)
                if answer is not None:
                    await self.send(answer, request.method == "HEAD")
                if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                    return
                self._http.start_next_cycle()
        except (OSError, h11.ProtocolError, Hangup, EOFError):
            pass  # the caller's doing, or ours on purpose
        finally:
            if self._waiting is not None:
                self._waiting.cancel()
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()

    async def _next(self) -> Request | None:
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    go_on = h11.InformationalResponse(status_code=100, headers=[])
                    self._writer.write(self._http.send(go_on) or b"")
                self._http.receive_data(await self._read())
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > _BODY_LIMIT:
                    raise Hangup
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                headers = {n.decode("latin-1"): v.decode("latin-1") for n, v in head.headers}
                method, target = head.method.decode("ascii"), head.target.decode("latin-1")
                return Request(method, target, headers, bytes(body))
            else:
                return None

    async def _read(self) -> bytes:
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            return await waiting
        return await self._reader.read(_CHUNK)

    async def left(self) -> None:
        """Wait until the caller hangs up while it waits for an answer."""
        while True:
            if self._waiting is None:
                self._waiting = asyncio.ensure_future(self._reader.read(_CHUNK))
            # Shielded: what was read is the next request, unless it is the end.
            if not await asyncio.shield(self._waiting):
                return
            await asyncio.get_running_loop().create_future()  # it speaks: it is there

    async def begin(self, status: int, headers: Headers) -> None:
        """Send the head of an answer."""
        reason = _REASONS.get(status, b"")
        response = h11.Response(status_code=status, headers=headers, reason=reason)
        self._writer.write(self._http.send(response) or b"")
        await self._writer.drain()

    async def go_on(self, data: bytes) -> None:
        """Send some of its body."""
        self._writer.write(self._http.send(h11.Data(data=data)) or b"")
        await self._writer.drain()

    async def finish(self) -> None:
        """End it."""
        self._writer.write(self._http.send(h11.EndOfMessage()) or b"")
        await self._writer.drain()

    async def send(self, answer: Answer, bodiless: bool = False) -> None:
        """Send a whole answer."""
        headers = [("content-type", answer.kind), ("content-length", str(len(answer.body)))]
        head = h11.Response(
            status_code=answer.status,
            headers=[*headers, *answer.headers.items()],
            reason=_REASONS.get(answer.status, b""),
        )
        parts: list[h11.Event] = [head, h11.EndOfMessage()]
        if answer.body and not bodiless:
            parts.insert(1, h11.Data(data=answer.body))
        self._writer.write(b"".join(self._http.send(part) or b"" for part in parts))
        await self._writer.drain()
