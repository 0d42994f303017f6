"""One question of the proxy's own to an origin, and its whole answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import h11

from sandboxes.egress.authorizers import Answered
from sandboxes.egress.denied import Denied

if TYPE_CHECKING:
    from sandboxes.contract import HostEntry
    from sandboxes.egress.authorizers import Header
    from sandboxes.egress.limits import ProxyLimits
    from sandboxes.egress.origins import Origins
    from sandboxes.egress.wire import Stream

_MOST_BYTES = 1 << 20


async def ask(
    origins: Origins,
    limits: ProxyLimits,
    origin: HostEntry,
    target: str,
    headers: tuple[Header, ...],
) -> Answered:
    """Get a target over TLS, on a connection of its own; no redirect is followed.

    Raises:
        Denied: There is no usable answer in time.
    """
    failed = Denied(502, f"{origin} gave no usable answer to the proxy's own question")
    try:
        async with asyncio.timeout(limits.dial_seconds):
            stream = await origins.connect_tls(origin)
            try:
                return await _exchange(stream, limits, origin, target, headers)
            finally:
                stream.abort()
    except (OSError, h11.ProtocolError):  # a timeout is an OSError
        raise failed from None


async def _exchange(
    stream: Stream,
    limits: ProxyLimits,
    origin: HostEntry,
    target: str,
    headers: tuple[Header, ...],
) -> Answered:
    machine = h11.Connection(h11.CLIENT, max_incomplete_event_size=limits.head_bytes)
    own = [("Host", str(origin)), ("Accept-Encoding", "identity"), ("Connection", "close")]
    request = h11.Request(
        method="GET",
        target=target,
        headers=[*((name.encode(), value.encode()) for name, value in own), *headers],
    )
    await stream.send((machine.send(request) or b"") + (machine.send(h11.EndOfMessage()) or b""))
    status, body = 0, bytearray()
    while True:
        event = machine.next_event()
        if event is h11.NEED_DATA:
            machine.receive_data(await stream.receive(limits.dial_seconds))
        elif isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > _MOST_BYTES:
                raise ConnectionResetError("the answer is too long")
        elif isinstance(event, h11.EndOfMessage):
            return Answered(status, bytes(body))
        elif not isinstance(event, h11.InformationalResponse):
            raise ConnectionResetError("the origin hung up")
