"""The body of one request, as it comes from the client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import h11

from sandboxes.egress.denied import Denied

if TYPE_CHECKING:
    from sandboxes.egress.heads import HeadReader, RequestHead
    from sandboxes.egress.limits import ProxyLimits
    from sandboxes.egress.wire import Stream


class Body:
    """Reads the body of a request, which its client may send while it is passed on.

    Args:
        head: The request.
        client: Who sends it.
        heads: What read the head, and may have read further.
        limits: How long.
    """

    def __init__(
        self, head: RequestHead, client: Stream, heads: HeadReader, limits: ProxyLimits
    ) -> None:
        self._machine = head.machine
        self._client, self._heads, self._limits = client, heads, limits
        self._begun = False

    async def next(self) -> bytes | None:
        """Wait for a piece; None at the end.

        Raises:
            Denied: It is malformed, cut short or too slow.
            OSError: The client went away.
        """
        try:
            if not self._begun:
                self._begun = True
                await self._begin()
            return await self._piece()
        except h11.RemoteProtocolError:
            raise Denied(400, "the body of the request is malformed") from None

    async def whole(self, most: int) -> bytes:
        """Wait for all of it, before anything of the request is sent on.

        Args:
            most: How many bytes it may have.

        Raises:
            Denied: It is longer, malformed, cut short or too slow.
            OSError: The client went away.
        """
        content = bytearray()
        try:
            async with asyncio.timeout(self._limits.head_seconds):
                while (piece := await self.next()) is not None:
                    content += piece
                    if len(content) > most:
                        raise Denied(413, f"the body has more than {most} bytes; send less")
        except TimeoutError:
            raise _slow() from None
        return bytes(content)

    async def _begin(self) -> None:
        if self._machine.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[])
            await self._client.send(self._machine.send(go_on) or b"")
        ahead, self._heads.read_ahead = self._heads.read_ahead, b""
        if ahead:
            self._machine.receive_data(ahead)

    async def _piece(self) -> bytes | None:
        while (event := self._machine.next_event()) is h11.NEED_DATA:
            self._machine.receive_data(await self._more())
        if isinstance(event, h11.Data):
            return bytes(event.data)
        if isinstance(event, h11.EndOfMessage):
            # Trailers end here: they were judged by nobody.
            return None
        raise Denied(400, "the body of the request is cut short")

    async def _more(self) -> bytes:
        try:
            return await self._client.receive(self._limits.silence_seconds)
        except TimeoutError:
            raise _slow() from None


def _slow() -> Denied:
    return Denied(408, "the body of the request is too slow")
