"""How a service of the lab serves: customers at its doors, and the checks at a control socket."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.lab.errors import LabError

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Awaitable, Callable, Coroutine

    Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]
    Answer = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]

_LINE_BYTES = 1 << 26
_HEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class Door:
    """Where customers come in.

    Args:
        listener: a socket that listens.
        handler: serves one connection to its end.
        limit: so many bytes are read ahead.
        tls: the certificates, where nobody before it speaks TLS.
    """

    listener: socket.socket
    handler: Handler
    limit: int = _HEAD_BYTES
    tls: ssl.SSLContext | None = None


async def serve(control: socket.socket, answer: Answer, *doors: Door) -> None:
    """Serve until cancelled; all connections end then.

    Args:
        control: a unix socket that listens for the checks: a line of JSON each, with what is
            to be done under `do`.
        answer: does it, given the other fields; a `LabError` of its is told to the check.
        *doors: for customers.
    """
    callers: set[asyncio.Task[None]] = set()

    def taking(handler: Handler) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(handler(reader, writer))
            callers.add(task)
            task.add_done_callback(callers.discard)

        return take

    async def asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _converse(reader, writer, answer)

    servers = [
        await asyncio.start_server(
            taking(door.handler), sock=door.listener, limit=door.limit, ssl=door.tls
        )
        for door in (*doors, Door(control, asked, _LINE_BYTES))
    ]
    try:
        await asyncio.gather(*(server.serve_forever() for server in servers))
    finally:
        for server in servers:
            server.close()
        for task in list(callers):
            task.cancel()
        await asyncio.gather(*callers, return_exceptions=True)


async def _converse(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer
) -> None:
    try:
        while line := await reader.readline():
            request = json.loads(line)
            try:
                found = await answer(request.pop("do"), request)
            except LabError as failure:
                found = {"error": failure.reason}
            writer.write(json.dumps(found).encode() + b"\n")
            await writer.drain()
    except (OSError, ValueError):
        pass  # the asker is gone, or is none of ours
    finally:
        writer.close()


async def until_cancelled(work: Awaitable[None]) -> None:
    """Let a service's process end well when it is told to."""
    with suppress(asyncio.CancelledError):
        await work
