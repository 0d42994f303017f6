"""What the egress proxy adds to an HTTPS request on loopback: each group holds the direct one.

Origin, proxy and client are processes of their own. Compare within a run (the figures in
brackets), never between machines or days.
"""

from __future__ import annotations

import asyncio
import functools
import multiprocessing
import re
import socket
import ssl
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from sandboxes.contract import HeaderBinding, Network
from sandboxes.egress import EgressProxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    Timed = Callable[[Callable[[], None]], None]

TUNNEL, BOUND = "tunnel.test", "bound.test"
BINDING = HeaderBinding(host=BOUND, header="X-Api-Key", secret_name="key")
ADDRESS = "9.9.9.9"  # what names resolve to, and what `dial` takes for the origin
ROUNDS = 200
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(ANSWER)
    except (OSError, asyncio.IncompleteReadError):
        writer.close()


async def serve_origin(pem: Path, ready: Connection) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context, backlog=512)
    ready.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def to_loopback(origin_port: int, address: str, port: int) -> socket.socket:
    connection = socket.socket()
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", origin_port))
    return connection


async def to_one_address(name: str, port: int) -> list[str]:
    return [ADDRESS]


async def serve_proxy(bundle: Path, origin_port: int, ready: Connection) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    async with EgressProxy(
        Network.allow(hosts=(TUNNEL, BOUND)),
        listen=listener,
        bindings=(BINDING,),
        secrets={"key": "a-secret-value"},
        ca_bundle=bundle,
        resolve=to_one_address,
        dial=functools.partial(to_loopback, origin_port),
    ) as proxy:
        ready.send((listener.getsockname()[1], proxy.ca_pem))
        await asyncio.Event().wait()


def run_in_loop(serve: Callable[..., Any], *arguments: Any) -> None:
    asyncio.run(serve(*arguments))


@dataclass
class Way:
    """One way to the origin."""

    host: str
    origin_port: int
    proxy_port: int
    context: ssl.SSLContext
    proxied: bool

    def connect(self) -> ssl.SSLSocket:
        port = self.proxy_port if self.proxied else self.origin_port
        connection = socket.create_connection(("127.0.0.1", port), timeout=60)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.proxied:
            connection.sendall(b"CONNECT %s:443 HTTP/1.1\r\nHost: x\r\n\r\n" % self.host.encode())
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        return self.context.wrap_socket(connection, server_hostname=self.host)

    def ask(self, connection: ssl.SSLSocket) -> None:
        connection.sendall(b"GET /x HTTP/1.1\r\nHost: %s\r\n\r\n" % self.host.encode())
        said = b""
        while not said.endswith(b"ok"):
            more = connection.recv(4096)
            assert more
            said += more
        assert said.startswith(b"HTTP/1.1 200")

    def fresh(self) -> None:
        with self.connect() as connection:
            self.ask(connection)


@dataclass
class Setting:
    """The processes of a run, and the ways through them."""

    origin_port: int
    proxy_port: int
    proxy_pid: int
    context: ssl.SSLContext

    def way(self, host: str, *, proxied: bool = True) -> Way:
        return Way(host, self.origin_port, self.proxy_port, self.context, proxied)

    def proxy_kilobytes(self) -> int:
        status = Path(f"/proc/{self.proxy_pid}/status").read_text(encoding="ascii")
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found
        return int(found[1])


@pytest.fixture(scope="module")
def setting() -> Iterator[Setting]:
    started = multiprocessing.get_context("spawn")
    ca = trustme.CA()
    with tempfile.TemporaryDirectory() as folder:
        pem, bundle = Path(folder, "origin.pem"), Path(folder, "ca.pem")
        ca.issue_cert(TUNNEL, BOUND).private_key_and_cert_chain_pem.write_to_path(pem)
        ca.cert_pem.write_to_path(bundle)
        here, there = started.Pipe()
        origin = started.Process(target=run_in_loop, args=(serve_origin, pem, there), daemon=True)
        origin.start()
        origin_port = here.recv()
        arguments = (serve_proxy, bundle, origin_port, there)
        proxy = started.Process(target=run_in_loop, args=arguments, daemon=True)
        proxy.start()
        proxy_port, ca_pem = here.recv()
        assert proxy.pid is not None
        context = ssl.create_default_context(cadata=ca_pem.decode())
        yield Setting(origin_port, proxy_port, proxy.pid, context)
        for process in (proxy, origin):
            process.terminate()
            process.join(10)
            process.close()
        here.close()
        there.close()


@pytest.fixture
def timed(benchmark: Any) -> Timed:
    def measure(call: Callable[[], None]) -> None:
        benchmark.pedantic(call, rounds=ROUNDS, warmup_rounds=20)

    return measure


WAYS = {"direct": (TUNNEL, False), "tunnel": (TUNNEL, True), "interception": (BOUND, True)}


@pytest.mark.benchmark(group="fresh connection")
@pytest.mark.parametrize(("host", "proxied"), WAYS.values(), ids=WAYS)
def test_a_fresh_connection(timed: Timed, setting: Setting, host: str, proxied: bool) -> None:
    timed(setting.way(host, proxied=proxied).fresh)


@pytest.mark.benchmark(group="kept connection")
@pytest.mark.parametrize(("host", "proxied"), WAYS.values(), ids=WAYS)
def test_a_kept_connection(timed: Timed, setting: Setting, host: str, proxied: bool) -> None:
    way = setting.way(host, proxied=proxied)
    with way.connect() as connection:
        timed(functools.partial(way.ask, connection))


@pytest.mark.benchmark(group="200 at once")
@pytest.mark.parametrize(("host", "proxied"), WAYS.values(), ids=WAYS)
def test_two_hundred_at_once(benchmark: Any, setting: Setting, host: str, proxied: bool) -> None:
    way = setting.way(host, proxied=proxied)

    def all_at_once() -> None:
        with ThreadPoolExecutor(200) as threads:
            for done in [threads.submit(way.fresh) for _ in range(200)]:
                done.result()

    benchmark.pedantic(all_at_once, rounds=3)


@pytest.mark.benchmark(group="memory")
def test_memory_is_flat_over_ten_thousand_requests(benchmark: Any, setting: Setting) -> None:
    """A leak of one head for each request would be megabytes."""
    if not Path("/proc/self/status").exists():
        pytest.skip("memory is read from /proc")

    def some(connections: int) -> int:
        for number in range(connections):
            way = setting.way((TUNNEL, BOUND)[number % 2])
            with way.connect() as connection:
                for _ in range(20):
                    way.ask(connection)
        return setting.proxy_kilobytes()

    before = some(50)
    after = benchmark.pedantic(some, args=(500,), rounds=1)
    benchmark.extra_info["kilobytes grown"] = after - before
    assert after - before < 2048
