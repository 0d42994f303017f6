"""Peers that are slow, silent, many, gone or greedy, and what is left when it closes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import socket
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from sandboxes.contract import Network
from sandboxes.egress import EgressProxy, ProxyLimits, wire
from sandboxes.egress.tunnel import _Silence
from tests.egress import hellos
from tests.egress.test_tunnels import connect
from tests.egress.world import (
    API,
    BINDING,
    LISTED,
    OTHER,
    PATIENCE,
    QUICK,
    SECRET,
    Client,
    World,
    request,
    run,
    world,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


async def never(*_: object) -> None:
    await asyncio.Event().wait()


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server that takes all and says nothing."""
    while await reader.read(65536):
        pass
    writer.close()


async def replaced(here: World, host: str, serve: object) -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)  # type: ignore[arg-type]  # any of ours
    here.closing(server)
    here.routes[here.addresses[host][0], 443] = server.sockets[0].getsockname()[1]


async def opened(here: World, host: str) -> Client:
    client = await here.connect()
    await client.send(connect(f"{host}:443"))
    assert (await client.reply()).status == 200
    return client


def test_a_client_that_says_half_a_request_is_told_so() -> None:
    async def attack() -> None:
        async with world(limits=QUICK) as here:
            for half in (b"C", b"CONNECT other.test:443 HTTP/1.1\r\nX: "):
                assert (await here.plain(half)).status == 408
            client = await here.tunnel(API)
            await client.send(b"GET /v1/x HTTP/1.1\r\n")
            assert (await client.reply()).status == 408
            await client.close()

    run(attack())


STALLS = {"nothing at all": (), "a tunnel": (b"",), "half a hello": (hellos.hello(OTHER)[:20],)}


@pytest.mark.parametrize("host", [OTHER, API])
@pytest.mark.parametrize("words", STALLS.values(), ids=STALLS)
def test_a_client_that_stalls_is_left(words: Sequence[bytes], host: str) -> None:
    async def attack() -> None:
        async with world(limits=QUICK) as here:
            client = await (opened(here, host) if words else here.connect())
            for word in words:
                await client.send(word)
            await client.rest()
            assert here.origins[host].raw == b""
            await client.close()

    run(attack())


def test_a_client_that_stops_in_its_handshake_is_left() -> None:
    async def attack() -> None:
        async with world(limits=QUICK) as here:
            client = await opened(here, API)
            await client.send(hellos.hello(API))
            assert (await client.rest()).startswith(b"\x16")  # the proxy's own hello
            assert here.dialled == []
            await client.close()

    run(attack())


def test_an_origin_that_stays_silent_is_given_up() -> None:
    async def attack() -> None:
        async with world(limits=QUICK) as here:
            here.api.answers[b"/"] = b""
            assert (await here.ask(API, request())).status == 502
            await replaced(here, API, silent)
            assert (await here.ask(API, request())).status == 502
            await replaced(here, OTHER, silent)
            client = await opened(here, OTHER)
            await client.send(hellos.hello(OTHER))
            assert await client.rest() == b""
            await client.close()

    run(attack())


@pytest.mark.parametrize("stuck", ["resolve", "dial"])
def test_a_name_or_address_that_never_answers_is_given_up(stuck: str) -> None:
    async def attack() -> None:
        options: dict[str, Any] = {stuck: never}
        async with world(limits=QUICK, **options) as here:
            assert (await here.plain(connect(f"{OTHER}:443"))).status == 504

    run(attack())


def test_one_direction_may_be_silent_while_the_other_is_not() -> None:
    class Slow:
        """Says something only after the other direction did."""

        def __init__(self) -> None:
            self.silence: _Silence
            self.waited = 0

        async def receive(self, seconds: float) -> bytes:
            self.waited += 1
            if self.waited == 3:
                return b"at last"
            clock = asyncio.get_running_loop().time()
            self.silence._last = clock if self.waited == 1 else clock - seconds
            raise TimeoutError

    async def use() -> None:
        slow = Slow()
        slow.silence = _Silence(1000)
        with pytest.raises(TimeoutError):
            await slow.silence.receive(cast("wire.Wire", slow))
        assert slow.waited == 2
        assert await slow.silence.receive(cast("wire.Wire", slow)) == b"at last"

    run(use())


def test_what_a_client_does_not_take_is_not_piled_up() -> None:
    sent = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(bytes(65536))
                await writer.drain()
                sent += 65536

    async def attack() -> None:
        async with world(Network.all(), bindings=(), limits=QUICK) as here:
            await replaced(here, OTHER, pour)
            reader, writer = await asyncio.open_connection(*here.address, limit=1024)
            writer.write(connect(f"{OTHER}:443"))
            await reader.readuntil(b"\r\n\r\n")
            # The proxy gives up at last, and cuts the origin, which ends `pour`.
            async with asyncio.timeout(PATIENCE):
                while len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110 - tasks of others
                    await asyncio.sleep(0.05)
            assert sent < 32 * 2**20  # what the kernel's buffers take, and ours
            writer.transport.abort()

    run(attack())


def test_last_words_wait_for_a_client_that_reads_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_LINGER_SECONDS", 0.01)

    async def use() -> None:
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        loop = asyncio.get_running_loop()
        _, sender = await loop.create_connection(lambda: wire.Wire(PATIENCE), sock=ours)
        await sender.send(bytes(60_000))  # less than what `send` waits for
        ending = asyncio.create_task(sender.linger())
        await asyncio.sleep(0.2)
        assert not ending.done()
        reader, writer = await asyncio.open_connection(sock=theirs)
        assert len(await reader.read()) == 60_000
        writer.close()
        await ending

    run(use())


def test_a_client_that_goes_takes_its_origin_with_it() -> None:
    gone = asyncio.Event()

    async def watch(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await silent(reader, writer)
        gone.set()

    async def attack() -> None:
        async with world() as here:
            await replaced(here, OTHER, watch)
            client = await opened(here, OTHER)
            await client.send(hellos.hello(OTHER))
            client.writer.transport.abort()
            async with asyncio.timeout(PATIENCE):
                await gone.wait()

    run(attack())


def test_more_clients_than_it_serves_are_told_so() -> None:
    async def attack() -> None:
        async with world(limits=ProxyLimits(connections=2)) as here:
            held = [await here.connect() for _ in range(2)]
            for client in held:
                await client.send(b"C")
            assert (await here.plain(connect(f"{OTHER}:443"))).status == 503
            for client in held:
                await client.close()

    run(attack())


def test_a_hundred_at_once_are_all_served() -> None:
    async def use() -> None:
        async with world() as here:
            hosts = [API, OTHER] * 50
            replies = await asyncio.gather(*(here.ask(host, request(host=host)) for host in hosts))
            assert [reply.status for reply in replies] == [200] * 100
            assert len(here.api.seen) == len(here.other.seen) == 50
            assert all(seen.values(b"X-Api-Key") for seen in here.api.seen)

    run(use())


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_nothing_is_left_when_it_closes(tmp_path: Path) -> None:
    async def use() -> None:
        before, tasks = open_files(), len(asyncio.all_tasks())
        path = tmp_path / "proxy"
        async with EgressProxy(
            LISTED, listen=path, bindings=(BINDING,), secrets={"key": SECRET}
        ) as proxy:
            idle = [await asyncio.open_unix_connection(path) for _ in range(5)]
            for _, writer in idle:
                writer.write(b"CONNECT ")
            refused = await asyncio.open_unix_connection(path)
            refused[1].write(connect("evil.test:443"))
            assert b"403" in await refused[0].readline()
            assert SECRET not in repr(proxy)
        assert not path.exists()
        for reader, one in (*idle, refused):
            with contextlib.suppress(ConnectionError):
                await reader.read()
            one.close()
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == tasks
        assert open_files() == before

    run(use())


def test_open_tunnels_end_with_it() -> None:
    async def use() -> None:
        async with contextlib.AsyncExitStack() as stack:
            here = await stack.enter_async_context(world())
            clients = [await here.tunnel(host) for host in (API, OTHER, API)]
            await clients[0].send(request())
            await clients[0].reply()
            await stack.aclose()
            for client in clients:
                await client.rest()
                await client.close()
            with pytest.raises(ConnectionRefusedError):
                await here.connect()

    run(use())


def test_memory_stays_flat_over_many_requests() -> None:
    async def use() -> None:
        async with world() as here:

            async def some(count: int) -> int:
                for _ in range(count):
                    assert (await here.ask(API, request())).status == 200
                    here.api.seen.clear()
                    here.api.raw.clear()
                    here.dialled.clear()
                    here.asked.clear()
                gc.collect()
                return tracemalloc.get_traced_memory()[0]

            tracemalloc.start()
            try:
                first = await some(30)
                assert await some(60) - first < 64 * 1024
            finally:
                tracemalloc.stop()

    run(use())


def test_the_secret_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def use() -> None:
        async with world(limits=QUICK) as here:
            here.api.answers[b"/v1/echo"] = b"echo"
            here.api.answers[b"/v1/bad"] = f"HTTP/1.1 200 {SECRET}\r\nX {SECRET}\r\n\r\n".encode()
            here.api.answers[b"/v1/cut"] = b"HTTP/1.1 200 \r\nContent-Length: 9\r\n\r\nx"
            for path in ("/v1/x", "/v1/echo", "/v1/bad", "/v1/cut", "/v1/../x", "/v1/x y"):
                await here.ask(API, request(path))
            del here.addresses[API]
            await here.ask(API, request())
            assert SECRET not in repr(vars(here.proxy))

    run(use())
    assert "refused: " in caplog.text
    assert SECRET not in caplog.text


def test_an_unforeseen_error_is_logged_by_its_type_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def broken(name: str, port: int) -> Sequence[str]:
        raise RuntimeError(SECRET)

    async def use() -> None:
        async with world(resolve=broken) as here:
            assert (await here.plain(connect(f"{OTHER}:443"))).cut

    run(use())
    assert "unforeseen RuntimeError" in caplog.text
    assert SECRET not in caplog.text
