"""UDP servers that answer from the address that was asked, whichever it was."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from conformance.lab.addresses import plain
from conformance.lab.journal import PAYLOAD_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.lab.servers.names import Resolver
    from conformance.lab.servers.records import Journal
    from conformance.lab.servers.registry import Registry

_BYTES = 65535
_CONTROL_BYTES = 256
_IPV6_PKTINFO = getattr(socket, "IPV6_PKTINFO", 50)


class DatagramServer:
    """Reads one socket; a resolver on it makes it a name server.

    Args:
        handle: a bound socket that does not block and tells the destination.
        journal: where datagrams are recorded.
        registry: the sites.
        resolver: who answers, or `None`: the site's token is the answer.
        on_close: told of the socket before it is closed.
    """

    def __init__(
        self,
        handle: socket.socket,
        journal: Journal,
        registry: Registry,
        resolver: Resolver | None = None,
        *,
        on_close: Callable[[socket.socket], None],
    ) -> None:
        self._socket = handle
        self._journal = journal
        self._registry = registry
        self._resolver = resolver
        self._on_close = on_close
        self._port = handle.getsockname()[1]

    def close(self) -> None:
        """Stop and let go of the port."""
        self._on_close(self._socket)
        self._socket.close()

    def drain(self) -> None:
        """Take all that has come."""
        while True:
            try:
                data, control, _, source = self._socket.recvmsg(_BYTES, _CONTROL_BYTES)
            except OSError:  # empty, or an earlier answer could not be delivered
                return
            self._take(data, control, source)

    def _take(self, data: bytes, control: list[tuple[int, int, bytes]], source: tuple) -> None:  # type: ignore[type-arg]
        local = (_destination(self._socket, control), self._port)
        peer = (source[0], source[1])
        if self._resolver is not None:
            answer = self._resolver.answer(data, local, peer, "udp")
            if answer is not None:
                self._later(answer[1], lambda: self._send(answer[0], control, source))
            return
        self._journal.record("datagram", local, peer, "udp", payload=data[:PAYLOAD_LIMIT])
        site = self._registry.serving(plain(local[0]), local[1], "", data.decode("latin-1"))
        if site is not None and site.behaviour != "silent":
            self._send(site.token.encode() + b"\n", control, source)

    def _later(self, delay: float, action: Callable[[], None]) -> None:
        if delay:
            asyncio.get_running_loop().call_later(delay, action)
        else:
            action()

    def _send(self, data: bytes, control: list[tuple[int, int, bytes]], source: tuple) -> None:  # type: ignore[type-arg]
        info = [item for item in control if item[:2] == (socket.IPPROTO_IPV6, _IPV6_PKTINFO)]
        # The device in it is where the datagram came in; the way back is the kernel's to find.
        info = [(level, kind, value[:16] + bytes(4)) for level, kind, value in info]
        with suppress(OSError):  # the asker may be gone
            self._socket.sendmsg([data], info, 0, source)


def _destination(handle: socket.socket, control: list[tuple[int, int, bytes]]) -> str:
    for level, kind, value in control:
        if (level, kind) == (socket.IPPROTO_IPV6, _IPV6_PKTINFO):
            return socket.inet_ntop(socket.AF_INET6, value[:16])
    return str(handle.getsockname()[0])
