"""Forward proxies that a sandbox might be talked into using: an honest one and a yes-sayer."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from conformance.lab.addresses import plain
from conformance.lab.journal import PAYLOAD_LIMIT
from conformance.lab.servers.http import HttpConnection, Stream, headers_of
from conformance.lab.servers.registry import host_only

if TYPE_CHECKING:
    from collections.abc import Callable

    import h11

    from conformance.lab.servers.records import Journal
    from conformance.lab.servers.registry import Registry

_CHUNK = 65536
_DEFAULT_PORTS = {"http": 80, "https": 443}


async def serve(
    stream: Stream,
    journal: Journal,
    registry: Registry,
    may_dial: Callable[[str, int], bool] | None,
) -> None:
    """Serve one connection.

    Args:
        stream: the connection.
        journal: where CONNECTs and requests are recorded.
        registry: the sites, whose names the proxy resolves by itself.
        may_dial: whether an address and port are the lab's; `None` for the proxy that says 200
            to everything and opens nothing.
    """
    connection = HttpConnection(stream, journal)
    request = await connection.next_request()
    if request is None:
        return
    is_tunnel = request.method == b"CONNECT"
    host, port = _destination(request.target.decode("latin-1"), is_tunnel)
    if is_tunnel:
        journal.record(
            "connect",
            stream.local,
            stream.source,
            name=host_only(host),
            method="CONNECT",
            path=f"{host}:{port}",
        )
    if may_dial is None:
        await _say_yes(connection, journal, is_tunnel=is_tunnel)
        return
    site = registry.by_name(host)
    address = site.addresses[0] if site is not None else host_only(host)
    try:
        address = plain(address)
    except ValueError:
        address = ""
    if not address or not may_dial(address, port):
        await connection.body()
        await connection.respond(502, b"not a place of the lab\n")
        return
    await _forward(connection, request, (address, port), is_tunnel=is_tunnel)


def _destination(target: str, is_tunnel: bool) -> tuple[str, int]:
    parts = urlsplit(f"//{target}" if is_tunnel else target)
    return parts.hostname or "", parts.port or _DEFAULT_PORTS.get(parts.scheme, 443)


async def _say_yes(connection: HttpConnection, journal: Journal, *, is_tunnel: bool) -> None:
    stream = connection.stream
    if not is_tunnel:
        await connection.body()
        await connection.respond(200, b"yes\n")
        return
    stream.writer.write(b"HTTP/1.1 200 Yes\r\n\r\n")
    data = connection.unparsed or await stream.reader.read(_CHUNK)
    if data:
        payload = data[:PAYLOAD_LIMIT]
        journal.record("request", stream.local, stream.source, payload=payload)


async def _forward(
    connection: HttpConnection, request: h11.Request, to: tuple[str, int], *, is_tunnel: bool
) -> None:
    client = connection.stream
    reader, writer = await asyncio.open_connection(*to)
    try:
        if is_tunnel:
            client.writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        else:
            writer.write(_origin_form(request))
        writer.write(connection.unparsed)
        async with asyncio.TaskGroup() as both:
            both.create_task(_pump(client.reader, writer))
            both.create_task(_pump(reader, client.writer))
    finally:
        writer.close()


def _origin_form(request: h11.Request) -> bytes:
    parts = urlsplit(request.target.decode("latin-1"))
    path = parts.path or "/"
    target = f"{path}?{parts.query}" if parts.query else path
    lines = [f"{request.method.decode('latin-1')} {target} HTTP/1.1"]
    hop = ("proxy-connection", "proxy-authorization", "connection")
    lines += [f"{name}: {value}" for name, value in headers_of(request) if name not in hop]
    return "\r\n".join([*lines, "connection: close", "", ""]).encode("latin-1")


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
