"""Requests of one client, one after the other: each judged, sent on, and answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import h11

from sandboxes.egress.bodies import Body
from sandboxes.egress.denied import Denied
from sandboxes.egress.redaction import RedactedStream
from sandboxes.egress.rules import HOP_BY_HOP

if TYPE_CHECKING:
    from sandboxes.contract import HostEntry
    from sandboxes.egress.heads import HeadReader, RequestHead
    from sandboxes.egress.limits import ProxyLimits
    from sandboxes.egress.redaction import Redaction
    from sandboxes.egress.requests import Judge, Outgoing
    from sandboxes.egress.wire import Stream

Connect = Callable[["HostEntry"], Awaitable["Stream"]]
"""Connects to an origin that is let through; raises `Denied` where that fails."""

_BODYLESS = frozenset({204, 304})
_QUESTIONS = frozenset({b"GET", b"HEAD", b"OPTIONS"})


class Relay:
    """Serves the requests of one client.

    Args:
        client: The client.
        heads: What reads its requests.
        judge: Decides on each.
        connect: The way to an origin.
        redaction: What is covered in answers; None where nothing is to be.
        limits: How long.
    """

    def __init__(
        self,
        client: Stream,
        heads: HeadReader,
        judge: Judge,
        connect: Connect,
        redaction: Redaction | None,
        limits: ProxyLimits,
    ) -> None:
        self._client, self._heads, self._judge = client, heads, judge
        self._connect, self._redaction, self._limits = connect, redaction, limits
        self._origin: Stream | None = None
        self._origin_is: HostEntry | None = None

    async def run(self, first: RequestHead | None = None) -> None:
        """Serve requests until the client has no more, or one ends badly.

        Args:
            first: One that was read already.

        Raises:
            Denied: A request is refused and nothing of an answer was sent.
            OSError: The client went away, or stood still.
        """
        try:
            head = first or await self._heads.next(self._limits.idle_seconds)
            while head is not None and await self._exchange(head):
                head = await self._heads.next(self._limits.idle_seconds)
        finally:
            self._drop_origin()

    async def _exchange(self, head: RequestHead) -> bool:
        """Serve one request; whether the connection can serve another."""
        body = Body(head, self._client, self._heads, self._limits)
        outgoing = await self._judge(head, body)
        kept = self._kept_for(outgoing)
        if kept is not None:
            exchange = self._new_exchange(head, body, outgoing, kept)
            try:
                return await self._run(exchange)
            except Denied:
                # Origins close what they kept when they like, also just now.
                if not exchange.repeatable:
                    raise
        self._origin = await self._connect(outgoing.origin)
        self._origin_is = outgoing.origin
        return await self._run(self._new_exchange(head, body, outgoing, self._origin))

    def _new_exchange(
        self, head: RequestHead, body: Body, outgoing: Outgoing, origin: Stream
    ) -> _Exchange:
        return _Exchange(
            head, body, outgoing, self._client, origin, self._heads, self._redaction, self._limits
        )

    async def _run(self, exchange: _Exchange) -> bool:
        try:
            reusable = await exchange.run()
        except BaseException:
            self._drop_origin()
            raise
        if not reusable:
            self._drop_origin()
        return exchange.client_reusable

    def _kept_for(self, outgoing: Outgoing) -> Stream | None:
        if self._origin and (self._origin_is != outgoing.origin or not self._origin.quiet):
            self._drop_origin()
        return self._origin

    def _drop_origin(self) -> None:
        if self._origin is not None:
            self._origin.abort()
            self._origin = None


class _Exchange:
    """One request and its answer, both on their way at once."""

    def __init__(
        self,
        head: RequestHead,
        body: Body,
        outgoing: Outgoing,
        client: Stream,
        origin: Stream,
        heads: HeadReader,
        redaction: Redaction | None,
        limits: ProxyLimits,
    ) -> None:
        self._head, self._body, self._outgoing = head, body, outgoing
        self._client, self._origin, self._heads = client, origin, heads
        self._redaction, self._limits = redaction, limits
        self._down = head.machine
        self._up = h11.Connection(h11.CLIENT, max_incomplete_event_size=limits.head_bytes)
        self._answered = False
        self._pending = b""
        self._silent = True
        self.client_reusable = False

    @property
    def repeatable(self) -> bool:
        """Whether it changes nothing to make it again: it got no answer, and is only a question."""
        asks = self._outgoing.method in _QUESTIONS and not self._head.has_body
        return asks and self._silent

    async def run(self) -> bool:
        """Make it; whether the connection to the origin can serve another."""
        request = self._up.send(
            h11.Request(
                method=self._outgoing.method,
                target=self._outgoing.target,
                headers=self._outgoing.headers,
            )
        )
        held = self._outgoing.body
        if held is not None:
            sent = self._up.send(h11.Data(data=held)) or b""
            sent += self._up.send(h11.EndOfMessage()) or b""
            await self._origin.send((request or b"") + sent)
            await self._answer()
        elif self._head.has_body:
            await self._origin.send(request or b"")
            await self._both_ways()
        else:
            self._down.next_event()  # the end of the request
            await self._origin.send((request or b"") + (self._up.send(h11.EndOfMessage()) or b""))
            await self._answer()
        if self._down.our_state is h11.DONE and self._down.their_state is h11.DONE:
            self._heads.read_ahead = self._down.trailing_data[0] + self._heads.read_ahead
            self.client_reusable = True
        done = self._up.our_state is h11.DONE and self._up.their_state is h11.DONE
        # What an origin says unasked must not be taken for the next answer.
        return done and not self._up.trailing_data[0]

    async def _both_ways(self) -> None:
        upload = asyncio.create_task(self._upload())
        try:
            await self._answer()
        except Denied:
            # Where the upload failed, that is why the origin gave no answer.
            if upload.done() and not upload.cancelled() and (error := upload.exception()):
                raise error from None
            raise
        finally:
            upload.cancel()
            await asyncio.gather(upload, return_exceptions=True)

    async def _upload(self) -> None:
        """Send the body on; whatever goes wrong, the origin gets no end of it."""
        try:
            while (piece := await self._body.next()) is not None:
                await self._origin.send(self._up.send(h11.Data(data=piece)) or b"")
            await self._origin.send(self._up.send(h11.EndOfMessage()) or b"")
        except (Denied, OSError):
            self._origin.abort()
            raise

    async def _answer(self) -> None:
        try:
            await self._pass_answer()
        except (h11.RemoteProtocolError, _OriginFailed):
            if self._answered:
                raise ConnectionResetError("the origin broke off its answer") from None
            raise Denied(502, f"{self._outgoing.origin} gave no usable answer") from None

    async def _pass_answer(self) -> None:
        body: RedactedStream | None = None
        while True:
            event = await self._next_of_origin()
            if isinstance(event, h11.Response):
                self._check_size(event)
                body = RedactedStream(self._redaction) if self._redaction else None
                self._pending += self._down.send(self._cleaned(event)) or b""
            elif isinstance(event, h11.Data):
                self._show(body.feed(bytes(event.data)) if body else bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                self._show(body.rest() if body else b"")
                self._pending += self._down.send(h11.EndOfMessage()) or b""
                await self._flush()
                return
            elif not (isinstance(event, h11.InformationalResponse) and event.status_code != 101):
                raise _OriginFailed

    def _show(self, data: bytes) -> None:
        if data:
            self._pending += self._down.send(h11.Data(data=data)) or b""

    async def _flush(self) -> None:
        """Send on what the last bytes of the origin came to, in one piece."""
        if self._pending:
            self._answered = True
            pending, self._pending = self._pending, b""
            await self._client.send(pending)

    async def _next_of_origin(self) -> object:
        event: object
        while (event := self._up.next_event()) is h11.NEED_DATA:
            await self._flush()
            try:
                data = await self._origin.receive(self._limits.silence_seconds)
            except OSError:  # a timeout and what TLS complains of are
                raise _OriginFailed from None
            self._silent = self._silent and not data
            self._up.receive_data(data)
        return event

    def _check_size(self, response: h11.Response) -> None:
        size = sum(len(name) + len(value) for name, value in response.headers)
        limits = self._limits
        if size > limits.head_bytes or len(response.headers) > limits.header_count:
            raise _OriginFailed

    def _cleaned(self, response: h11.Response) -> h11.Response:
        """The head of an answer, without what is of the connection, and without secrets."""
        headers = [(name, value) for name, value in response.headers if name not in HOP_BY_HOP]
        if self._redaction is None:
            return h11.Response(
                status_code=response.status_code, headers=headers, reason=response.reason
            )
        has_body = response.status_code not in _BODYLESS and self._outgoing.method != b"HEAD"
        coded = [value.lower() for name, value in headers if name == b"content-encoding"]
        if has_body and any(value != b"identity" for value in coded):
            raise Denied(
                502,
                f"{self._outgoing.origin} encoded its answer although it was asked not to, "
                "so that it cannot be searched for secrets",
            )
        covered = [
            (self._redaction.cover(name), self._redaction.cover(value)) for name, value in headers
        ]
        return h11.Response(
            status_code=response.status_code,
            headers=covered,
            reason=self._redaction.cover(response.reason),
        )


class _OriginFailed(Exception):
    """The origin gave no answer, or none that can be passed on."""
