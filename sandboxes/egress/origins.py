"""The way out: a name is resolved once, judged by its addresses, and one of these is dialled."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from sandboxes.egress.addresses import is_private
from sandboxes.egress.denied import Denied
from sandboxes.egress.tls import TlsWire
from sandboxes.egress.wire import Wire

if TYPE_CHECKING:
    from pathlib import Path

    from sandboxes.contract import HostEntry
    from sandboxes.egress.limits import ProxyLimits

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Gives the IP addresses of a name; the port is for information."""

Dial = Callable[[str, int], Awaitable[socket.socket]]
"""Connects to an IP address and port, and gives the connected socket, not blocking."""


async def resolve(name: str, port: int) -> Sequence[str]:
    """Ask the system's resolver."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


async def dial(address: str, port: int) -> socket.socket:
    """Connect from where this process is."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, (address, port))
    except BaseException:
        connection.close()
        raise
    return connection


class Origins:
    """Connects to origins.

    Args:
        resolve: How names become addresses.
        dial: How an address is connected to.
        block_private_addresses: Whether an origin may have addresses of the public
            internet only.
        ca_bundle: Certificates that are trusted beside the system's.
        limits: How long.

    Raises:
        ssl.SSLError: The bundle holds no certificates.
        OSError: It cannot be read.
    """

    def __init__(
        self,
        *,
        resolve: Resolve,
        dial: Dial,
        block_private_addresses: bool,
        ca_bundle: Path | None,
        limits: ProxyLimits,
    ) -> None:
        self._resolve, self._dial = resolve, dial
        self._block_private = block_private_addresses
        self._limits = limits
        # A bundle that is unusable is refused now, and not when the first origin is met.
        self._given = None if ca_bundle is None else ssl.create_default_context(cafile=ca_bundle)

    @cached_property
    def _context(self) -> ssl.SSLContext:
        # Late: to read the system's certificates is most of what a session would begin with.
        context = self._given or ssl.create_default_context()
        if self._given is not None:
            context.load_default_certs()
        context.hostname_checks_common_name = False
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        context.set_alpn_protocols(["http/1.1"])
        return context

    async def connect(self, origin: HostEntry) -> Wire:
        """Connect to an origin that the policy lets through.

        Raises:
            Denied: It has a private address, has none, or does not answer.
        """
        try:
            async with asyncio.timeout(self._limits.dial_seconds):
                return await self._first_of(await self._addresses(origin), origin)
        except TimeoutError:
            raise Denied(504, f"{origin} did not answer in time") from None

    async def connect_tls(self, origin: HostEntry) -> TlsWire:
        """Connect to an origin, and make sure that it is the one.

        Raises:
            Denied: As `connect`, or its certificate is not valid for it.
        """
        wire = await self.connect(origin)
        stream = TlsWire(wire, self._context, server_hostname=origin.host)
        try:
            async with asyncio.timeout(self._limits.dial_seconds):
                await stream.handshake(self._limits.dial_seconds)
        except ssl.SSLCertVerificationError as error:
            wire.abort()
            raise Denied(
                502, f"the certificate of {origin} is not valid: {error.verify_message}"
            ) from None
        except (ssl.SSLError, OSError):  # a timeout is an OSError
            wire.abort()
            raise Denied(502, f"{origin} did not agree on TLS") from None
        except BaseException:
            wire.abort()
            raise
        return stream

    async def _addresses(self, origin: HostEntry) -> Sequence[str]:
        if origin.is_address:
            addresses: Sequence[str] = [origin.host]
        else:
            try:
                addresses = await self._resolve(origin.host, origin.port)
            except (OSError, UnicodeError):
                addresses = ()
        if not addresses:
            raise Denied(502, f"{origin} has no address")
        # One of them is enough: which one is dialled must not be up to luck or to DNS.
        if self._block_private and any(map(is_private, addresses)):
            raise Denied(403, f"{origin} has a private address, and these are blocked")
        return addresses

    async def _first_of(self, addresses: Sequence[str], origin: HostEntry) -> Wire:
        for address in addresses:
            try:
                connection = await self._dial(address, origin.port)
            except OSError:
                continue
            try:
                _, wire = await asyncio.get_running_loop().create_connection(
                    lambda: Wire(self._limits.silence_seconds), sock=connection
                )
            except BaseException:
                connection.close()
                raise
            return wire
        raise Denied(502, f"{origin} cannot be connected to")
