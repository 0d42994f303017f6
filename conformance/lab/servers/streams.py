"""TCP servers: every connection is taken and recorded, also those that never speak."""

from __future__ import annotations

import array
import asyncio
import fcntl
import select
import socket
import termios
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import h11

from conformance.lab.addresses import plain
from conformance.lab.journal import PAYLOAD_LIMIT
from conformance.lab.servers import hello, http, proxy

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from conformance.lab.servers.certificates import Certificates
    from conformance.lab.servers.doors import Doors
    from conformance.lab.servers.names import Resolver
    from conformance.lab.servers.records import Journal
    from conformance.lab.servers.registry import DefinedSite, Registry

Role = Literal["https", "http", "tcp", "silent", "honest", "yes", "dns"]

_CONNECTION_SECONDS = 30.0
_SLOW_SECONDS = 120.0
_HELLO_SECONDS = 2.0
_HANDSHAKE_SECONDS = 10.0
_HELLO_BYTES = 65536
_PAUSE_SECONDS = 0.005
_MOST_CONNECTIONS = 2000
_MOST_CHUNKS = 64
_SHUTDOWN_SECONDS = 2.0


@dataclass
class Connection:
    """One accepted connection.

    Args:
        handle: its socket, which does not block.
        role: what its port is for.
        local: address and port that were dialled.
        source: address and port that it came from.
        reading: whether the server means to read all that comes.
    """

    handle: socket.socket
    role: Role
    local: tuple[str, int]
    source: tuple[str, int]
    reading: bool = True

    def unread(self) -> bool:
        """Whether bytes wait that the server has still to take."""
        if not self.reading or self.handle.fileno() < 0:
            return False
        size = array.array("i", [0])
        fcntl.ioctl(self.handle, termios.FIONREAD, size)
        return size[0] > 0


class Streams:
    """All TCP servers of the lab.

    Args:
        journal: where everything is recorded.
        registry: the sites.
        certificates: who makes TLS contexts.
        resolver: who answers on the name server's port.
        may_dial: whether the honest proxy may open a connection to an address and port.
        doors: who takes connections to services of the lab's own.
    """

    def __init__(
        self,
        journal: Journal,
        registry: Registry,
        certificates: Certificates,
        resolver: Resolver,
        may_dial: Callable[[str, int], bool],
        doors: Doors,
    ) -> None:
        self._journal = journal
        self._registry = registry
        self._certificates = certificates
        self._resolver = resolver
        self._may_dial = may_dial
        self._doors = doors
        self._listeners: dict[int, tuple[socket.socket, Role]] = {}
        self._poll = select.poll()
        self._open: dict[asyncio.Task[None], Connection] = {}

    def add(self, listener: socket.socket, role: Role) -> None:
        """Begin to take the connections of `listener`."""
        listener.setblocking(False)
        number = listener.fileno()
        self._listeners[number] = (listener, role)
        self._poll.register(number, select.POLLIN)
        asyncio.get_running_loop().add_reader(number, self._accept_all, number)

    def remove(self, listener: socket.socket) -> None:
        """Close `listener`."""
        number = listener.fileno()
        asyncio.get_running_loop().remove_reader(number)
        self._poll.unregister(number)
        del self._listeners[number]
        listener.close()

    def drain(self) -> None:
        """Take every connection that is established and waits."""
        for number, _ in self._poll.poll(0):
            self._accept_all(number)

    def unread(self) -> bool:
        """Whether bytes wait on any connection that the servers have still to take."""
        return any(connection.unread() for connection in self._open.values())

    def _accept_all(self, number: int) -> None:
        listener, role = self._listeners[number]
        while True:
            try:
                handle, peer = listener.accept()
            except OSError:  # none left, or it was reset before it was taken
                return
            handle.setblocking(False)
            # asyncio does so only where it knows the protocol; without it an answer waits
            # 40 ms for the client to acknowledge the session ticket before it.
            with suppress(OSError):  # it was reset meanwhile
                handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            local = handle.getsockname()
            connection = Connection(
                handle, role, (plain(local[0]), local[1]), (plain(peer[0]), peer[1])
            )
            self._journal.record("accept", connection.local, connection.source)
            if len(self._open) >= _MOST_CONNECTIONS:
                handle.close()
                continue
            task = asyncio.get_running_loop().create_task(self._serve(connection))
            self._open[task] = connection
            task.add_done_callback(self._open.pop)

    async def _serve(self, connection: Connection) -> None:
        site = self._registry.serving(*connection.local)
        slow = site is not None and site.behaviour.startswith("slow")
        try:
            async with asyncio.timeout(_SLOW_SECONDS if slow else _CONNECTION_SECONDS):
                await self._dispatch(connection, site)
        except (OSError, TimeoutError, EOFError, ValueError, h11.ProtocolError):
            pass  # the peer's doing: what it sent is recorded, and nothing is owed to it
        finally:
            connection.handle.close()

    async def _dispatch(self, connection: Connection, site: DefinedSite | None) -> None:
        behaviour = site.behaviour if site is not None else ""
        if behaviour == "reset":
            _reset(connection.handle)
        elif connection.role == "silent":
            await self._stay_silent(connection)
        elif connection.role == "https":
            await self._serve_tls(connection, behaviour)
        elif behaviour == "silent":
            await self._stay_silent(connection)
        elif connection.role == "tcp":
            await self._serve_raw(connection, site)
        else:
            await self._serve_plain(connection)

    async def _stay_silent(self, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(_MOST_CHUNKS):
            data = await loop.sock_recv(connection.handle, _HELLO_BYTES)
            if not data:
                return
            self._record_bytes(connection, data)
        connection.reading = False
        await asyncio.sleep(_CONNECTION_SECONDS)

    async def _serve_raw(self, connection: Connection, site: DefinedSite | None) -> None:
        loop = asyncio.get_running_loop()
        token = site.token if site is not None else "no site"
        await loop.sock_sendall(connection.handle, token.encode() + b"\n")
        data = await loop.sock_recv(connection.handle, _HELLO_BYTES)
        if data:
            self._record_bytes(connection, data)
            # Clients exist that wait for this, and else for all of their patience.
            connection.handle.shutdown(socket.SHUT_WR)
            await self._stay_silent(connection)

    def _record_bytes(self, connection: Connection, data: bytes) -> None:
        self._journal.record(
            "request", connection.local, connection.source, payload=data[:PAYLOAD_LIMIT]
        )

    async def _serve_tls(self, connection: Connection, behaviour: str) -> None:
        first, found = await _peek_hello(connection)
        if found is None:
            data = connection.handle.recv(_HELLO_BYTES) if first else b""
            if data:
                self._record_bytes(connection, data)
            return
        self._journal.record(
            "hello", connection.local, connection.source, name=found.name, alpn=found.alpn, tls=True
        )
        if behaviour == "silent":
            connection.reading = False
            await asyncio.sleep(_CONNECTION_SECONDS)
            return
        context = self._certificates.context(*connection.local, found.name)
        door = self._doors.of(found.name)
        if door is not None:
            self._doors.take(door, connection.handle.dup(), context)
            return
        await self._serve_http(connection, context)

    async def _serve_plain(self, connection: Connection) -> None:
        stream = await self._opened(connection, None)
        try:
            if connection.role == "dns":
                await self._serve_names(stream)
            elif connection.role == "http":
                await http.serve(stream, self._journal, self._registry)
            else:
                honest = self._may_dial if connection.role == "honest" else None
                await proxy.serve(stream, self._journal, self._registry, honest)
        finally:
            await _closed(stream)

    async def _serve_http(self, connection: Connection, context: ssl.SSLContext) -> None:
        stream = await self._opened(connection, context)
        try:
            await http.serve(stream, self._journal, self._registry)
        finally:
            await _closed(stream)

    async def _opened(self, connection: Connection, tls: ssl.SSLContext | None) -> http.Stream:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=_HELLO_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        limits = (
            {"ssl_handshake_timeout": _HANDSHAKE_SECONDS, "ssl_shutdown_timeout": _SHUTDOWN_SECONDS}
            if tls
            else {}
        )
        # A copy for the transport, which closes what it is given; ours still tells what waits.
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol, connection.handle.dup(), ssl=tls, **limits
        )
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        return http.Stream(reader, writer, connection.local, connection.source, tls is not None)

    async def _serve_names(self, stream: http.Stream) -> None:
        while True:
            size = int.from_bytes(await stream.reader.readexactly(2), "big")
            data = await stream.reader.readexactly(size)
            answer = self._resolver.answer(data, stream.local, stream.source, "tcp")
            if answer is None:
                return
            await asyncio.sleep(answer[1])
            stream.writer.write(len(answer[0]).to_bytes(2, "big") + answer[0])
            await stream.writer.drain()


async def _peek_hello(connection: Connection) -> tuple[bytes, hello.ClientHello | None]:
    """Look at a hello without taking it; `None` where the first bytes are something else."""
    loop = asyncio.get_running_loop()
    handle = connection.handle
    await _readable(handle)
    deadline = loop.time() + _HELLO_SECONDS
    while True:
        data = handle.recv(_HELLO_BYTES, socket.MSG_PEEK)
        if not data or data[0] != hello.HANDSHAKE:
            return data, None
        try:
            return data, hello.parse(data)
        except ValueError:
            return data, None
        except hello.Incomplete:
            if loop.time() > deadline or len(data) >= _HELLO_BYTES or _has_ended(handle):
                return data, None
        await asyncio.sleep(_PAUSE_SECONDS)  # what is peeked at keeps the socket readable


def _has_ended(handle: socket.socket) -> bool:
    """Whether the peer will send no more; where the system cannot tell, time decides."""
    ended = getattr(select, "POLLRDHUP", 0)
    poll = select.poll()
    poll.register(handle, ended)
    return any(event & ended for _, event in poll.poll(0))


async def _readable(handle: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(handle, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(handle)


async def _closed(stream: http.Stream) -> None:
    stream.writer.close()
    with suppress(OSError, TimeoutError):
        await stream.writer.wait_closed()


def _reset(handle: socket.socket) -> None:
    linger = array.array("i", [1, 0])
    handle.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger.tobytes())
