"""Bytes that pass as they are, once the first of them have named the right host."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sandboxes.contract import HostEntry, InvalidHostEntry
from sandboxes.egress.client_hello import (
    DECODE_ERROR,
    MISSING_EXTENSION,
    UNRECOGNIZED_NAME,
    NotTls,
    RecordGate,
    fatal_alert,
    read_client_hello,
)

if TYPE_CHECKING:
    from sandboxes.egress.client_hello import ClientHello
    from sandboxes.egress.wire import Wire


class RefusedHello(Exception):
    """A client's first words are not those of a TLS client of the host that it asked for.

    Attributes:
        reason: In one line.
        alert: What a TLS client can read.
    """

    def __init__(self, host: HostEntry, reason: str, alert: int) -> None:
        reason = f"a tunnel to {host}: {reason}"
        super().__init__(reason)
        self.reason = reason
        self.alert = fatal_alert(alert)


async def hello_for(host: HostEntry, client: Wire, first: bytes, seconds: float) -> bytes:
    """Read the ClientHello, and make sure that it is meant for a host.

    Args:
        host: Where the client asked to go.
        client: The client.
        first: What was read from it already.
        seconds: Time for the whole hello.

    Returns:
        All that the client has sent so far, the hello first.

    Raises:
        RefusedHello: It is none, or meant for another host, or does not say for which.
        TimeoutError: It did not come in time.
    """
    data = first
    async with asyncio.timeout(seconds):
        while True:
            try:
                hello = read_client_hello(data)
            except NotTls as error:
                raise RefusedHello(host, str(error), DECODE_ERROR) from None
            if hello is not None:
                _check(hello, host)
                return data
            more = await client.receive(seconds)
            if not more:
                raise RefusedHello(host, "the ClientHello is cut short", DECODE_ERROR)
            data += more


def _check(hello: ClientHello, host: HostEntry) -> None:
    if hello.encrypted:
        # The name that counts would be in the part that cannot be read.
        raise RefusedHello(host, "the client hides the server name (ECH)", UNRECOGNIZED_NAME)
    if host.is_address:
        if hello.server_name is not None:
            raise RefusedHello(host, "an address was asked for, and a name sent", UNRECOGNIZED_NAME)
        return
    if hello.server_name is None:
        raise RefusedHello(host, "the client sends no server name", MISSING_EXTENSION)
    try:
        named = HostEntry.parse(hello.server_name)
    except InvalidHostEntry:
        raise RefusedHello(host, "the server name is malformed", UNRECOGNIZED_NAME) from None
    if named.host != host.host or ":" in hello.server_name:
        raise RefusedHello(host, "the server name is not the host asked for", UNRECOGNIZED_NAME)


async def pass_on(
    client: Wire, origin: Wire, first: bytes, seconds: float, gate: RecordGate | None
) -> None:
    """Pass bytes both ways until both sides have ended, or neither says a thing for so long.

    Args:
        client: The client.
        origin: The origin.
        first: What the client has sent already.
        seconds: How long both may be silent.
        gate: What the client's bytes must look like; None where they are free.

    Raises:
        NotTls: The client's bytes do not look like that.
        OSError: A side broke off, took nothing in time, or both were silent.
    """
    silence = _Silence(seconds)

    async def upwards() -> None:
        data = first or await silence.receive(client)
        while data:
            if gate is not None:
                gate.check(data)
            await origin.send(data)
            data = await silence.receive(client)
        await origin.finish()

    async def downwards() -> None:
        while data := await silence.receive(origin):
            await client.send(data)
        await client.finish()

    ways = [asyncio.create_task(upwards()), asyncio.create_task(downwards())]
    try:
        await asyncio.gather(*ways)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


class _Silence:
    """Lets one direction be silent as long as the other is not."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._clock = asyncio.get_running_loop().time
        self._last = self._clock()

    async def receive(self, stream: Wire) -> bytes:
        while True:
            try:
                data = await stream.receive(self._seconds)
            except TimeoutError:
                if self._clock() - self._last >= self._seconds:
                    raise
                continue
            self._last = self._clock()
            return data
