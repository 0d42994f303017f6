"""A small internet on loopback: origins that log every byte, and a proxy before them.

Names resolve to public addresses that only `World.dial` knows, which leads them to servers
of the test's own: no packet leaves.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trustme

from sandboxes.contract import HeaderBinding, Network
from sandboxes.egress import EgressProxy, ProxyLimits

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Sequence

SECRET = "s3cret-Value/of+the=test"
API = "api.test"
OTHER = "other.test"
BINDING = HeaderBinding(
    host=API, header="X-Api-Key", secret_name="key", path_prefix="/v1", prefix="Key "
)
BOUND = f"Key {SECRET}".encode()
LISTED = Network.allow(hosts=(API, OTHER))
QUICK = ProxyLimits(head_seconds=0.3, dial_seconds=0.5, idle_seconds=0.3, silence_seconds=0.5)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
# Each wait ends here, and then the test has failed; how long things take is not judged.
PATIENCE = 20


def run(test: Coroutine[Any, Any, None]) -> None:
    """Run a test that waits, with an end to its waiting."""

    async def bounded() -> None:
        async with asyncio.timeout(60):
            await test

    asyncio.run(bounded())


@dataclass
class Exchange:
    """One request as an origin got it, to the byte."""

    head: bytes
    body: bytes

    @property
    def line(self) -> bytes:
        return self.head.split(b"\r\n")[0]

    def values(self, name: bytes) -> list[bytes]:
        found = re.findall(rb"(?im)^%s:[ \t]*(.*?)\r$" % re.escape(name), self.head)
        return [bytes(value) for value in found]


@dataclass
class Origin:
    """A server that logs what it gets, and answers as it is told.

    `answers` maps the start of a path to the answer; `b"echo"` sends the head back. So many
    connections as `hangs_up` says are closed at their second request.
    """

    name: str
    port: int = 0
    seen: list[Exchange] = field(default_factory=list)
    raw: bytearray = field(default_factory=bytearray)
    connections: int = 0
    answers: dict[bytes, bytes] = field(default_factory=dict)
    hangs_up: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        hangs_up, requests = self.connections <= self.hangs_up, 0
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while True:
                head = await self._until(reader, b"\r\n\r\n")
                body = await self._body(reader, head)
                self.seen.append(Exchange(head, body))
                requests += 1
                if hangs_up and requests == 2:
                    break
                writer.write(self._answer(head))
                await writer.drain()
                if b"connection: close" in (head + self._answer(head)).lower():
                    break
        writer.close()

    async def _until(self, reader: asyncio.StreamReader, end: bytes) -> bytes:
        data = await reader.readuntil(end)
        self.raw += data
        return data

    async def _body(self, reader: asyncio.StreamReader, head: bytes) -> bytes:
        if length := re.search(rb"(?i)\r\ncontent-length: *(\d+)", head):
            data = await reader.readexactly(int(length[1]))
            self.raw += data
            return data
        if not re.search(rb"(?i)\r\ntransfer-encoding: *chunked", head):
            return b""
        body = b""
        while size := int(await self._until(reader, b"\r\n"), 16):
            chunk = await reader.readexactly(size + 2)
            self.raw += chunk
            body += chunk[:-2]
        await self._until(reader, b"\r\n")
        return body

    def _answer(self, head: bytes) -> bytes:
        path = head.split(b" ")[1]
        answer = next((a for start, a in self.answers.items() if path.startswith(start)), OK)
        if answer == b"echo":
            return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(head), head)
        return answer


@dataclass
class Reply:
    """What a client got: a status and a body, or the way in which it was cut off."""

    status: int = 0
    body: bytes = b""
    head: bytes = b""
    cut: str = ""


class Client:
    """One connection through the proxy, with no opinion on what it sends."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def reply(self) -> Reply:
        """Read one answer, or find out how the connection ended."""
        try:
            async with asyncio.timeout(PATIENCE):
                head = await self.reader.readuntil(b"\r\n\r\n")
                while head.startswith(b"HTTP/1.1 100"):
                    head = await self.reader.readuntil(b"\r\n\r\n")
                status = int(head.split(b" ")[1])
                if status == 200 and b"established" in head:
                    return Reply(status, b"", head)
                if length := re.search(rb"(?i)\r\ncontent-length: *(\d+)", head):
                    return Reply(status, await self.reader.readexactly(int(length[1])), head)
                if b"transfer-encoding" not in head.lower():
                    return Reply(status, b"", head)
                body = b""
                while size := int(await self.reader.readuntil(b"\r\n"), 16):
                    body += (await self.reader.readexactly(size + 2))[:-2]
                await self.reader.readuntil(b"\r\n")
                return Reply(status, body, head)
        except (OSError, asyncio.IncompleteReadError) as error:
            return Reply(cut=type(error).__name__)

    async def rest(self) -> bytes:
        """Read to the end of the connection."""
        data = b""
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            async with asyncio.timeout(PATIENCE):
                while more := await self.reader.read(65536):
                    data += more
        return data

    async def start_tls(self, context: ssl.SSLContext, name: str | None) -> None:
        await self.writer.start_tls(context, server_hostname=name)

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


class World:
    """Origins, the proxy, and ways to talk to it."""

    def __init__(self) -> None:
        self.ca = trustme.CA()
        self.origins: dict[str, Origin] = {}
        self.addresses: dict[str, Sequence[str]] = {}
        self.routes: dict[tuple[str, int], int] = {}
        self.asked: list[str] = []
        self.dialled: list[tuple[str, int]] = []
        self._stack = contextlib.ExitStack()
        self.opened = {API}
        self.proxy: EgressProxy
        self.address: tuple[str, int]

    def closing(self, server: asyncio.Server) -> None:
        """Close a server of a test's own with the world."""
        self._stack.callback(server.close)

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    async def resolve(self, name: str, port: int) -> Sequence[str]:
        self.asked.append(name)
        if name not in self.addresses:
            raise socket.gaierror("no such name in this world")
        return self.addresses[name]

    async def dial(self, address: str, port: int) -> socket.socket:
        self.dialled.append((address, port))
        if (address, port) not in self.routes:
            raise ConnectionRefusedError("nothing listens there in this world")
        connection = socket.socket()
        connection.setblocking(False)
        there = ("127.0.0.1", self.routes[address, port])
        await asyncio.get_running_loop().sock_connect(connection, there)
        return connection

    def trusting(self, pem: bytes) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=pem.decode())
        context.check_hostname = True
        return context

    @property
    def session_ca(self) -> bytes:
        """The first certificate alone: the bundle's, which follows, is the origins'."""
        end = b"-----END CERTIFICATE-----\n"
        return self.proxy.ca_pem.split(end)[0] + end

    async def connect(self) -> Client:
        return Client(*await asyncio.open_connection(*self.address))

    async def plain(self, raw: bytes) -> Reply:
        """Send bytes to the proxy itself, and read one answer."""
        client = await self.connect()
        await client.send(raw)
        reply = await client.reply()
        await client.close()
        return reply

    async def tunnel(
        self, host: str, *, port: int = 443, sni: str | None = "", opened: bool | None = None
    ) -> Client:
        """Open a tunnel and speak TLS in it, with the name of the host unless told otherwise.

        Raises:
            ssl.SSLError, OSError: The tunnel or its TLS was refused.
        """
        client = await self.connect()
        await client.send(
            b"CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % ((host.encode(), port) * 2)
        )
        reply = await client.reply()
        if reply.status != 200:
            await client.close()
            raise ConnectionRefusedError(f"{reply.status} {reply.body.decode()}")
        opened = host in self.opened if opened is None else opened
        context = self.trusting(self.session_ca if opened else self.ca.cert_pem.bytes())
        if sni is None:
            context.check_hostname = False
        try:
            await client.start_tls(context, host if sni == "" else sni)
        except BaseException:
            client.writer.transport.abort()
            raise
        return client

    async def ask(self, host: str, raw: bytes, **tunnel: Any) -> Reply:
        """Send bytes through a tunnel to a host, and read one answer."""
        client = await self.tunnel(host, **tunnel)
        await client.send(raw)
        reply = await client.reply()
        await client.close()
        return reply

    @property
    def api(self) -> Origin:
        return self.origins[API]

    @property
    def other(self) -> Origin:
        return self.origins[OTHER]


def request(path: str = "/v1/x", *lines: str, host: str = API, method: str = "GET") -> bytes:
    """The bytes of a request."""
    head = [f"{method} {path} HTTP/1.1", f"Host: {host}", *lines]
    return "\r\n".join([*head, "", ""]).encode("latin-1")


@contextlib.asynccontextmanager
async def world(
    network: Network = LISTED,
    *,
    bindings: Sequence[Any] = (BINDING,),
    secrets: dict[str, str] | None = None,
    limits: ProxyLimits | None = None,
    certificates: dict[str, Callable[[trustme.CA], trustme.LeafCert]] | None = None,
    hosts: Sequence[str] = (API, OTHER),
    **options: Any,
) -> AsyncIterator[World]:
    """Start origins, on 443 with TLS and on 80 without, and a proxy."""
    here = World()
    listener = socket.create_server(("127.0.0.1", 0))
    here.address = listener.getsockname()
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(here)
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        bundle = Path(folder, "ca.pem")
        here.ca.cert_pem.write_to_path(bundle)
        for number, name in enumerate(hosts, 1):
            origin = here.origins[name] = Origin(name)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            make = (certificates or {}).get(name, lambda ca, name=name: ca.issue_cert(name))
            make(here.ca).configure_cert(context)
            address = f"9.9.9.{number}"
            here.addresses[name] = [address]
            for port, tls in ((443, context), (80, None)):
                server = await asyncio.start_server(origin.serve, "127.0.0.1", 0, ssl=tls)
                here.closing(server)
                here.routes[address, port] = server.sockets[0].getsockname()[1]
        here.proxy = await stack.enter_async_context(
            EgressProxy(
                network,
                listen=listener,
                bindings=bindings,
                secrets={"key": SECRET} if secrets is None else secrets,
                ca_bundle=bundle,
                resolve=options.pop("resolve", here.resolve),
                dial=options.pop("dial", here.dial),
                limits=limits,
                **options,
            )
        )
        yield here
