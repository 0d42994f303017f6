"""The servers put together and run in one event loop."""

from __future__ import annotations

import asyncio
import os
import resource
import select
import tempfile
from typing import TYPE_CHECKING

from conformance.lab import addresses, kernel
from conformance.lab.certs import Authorities
from conformance.lab.plan import BUNDLE_NAME, CONTROL_NAME, JOURNAL_NAME
from conformance.lab.servers import listening
from conformance.lab.servers.certificates import Certificates
from conformance.lab.servers.control import Control
from conformance.lab.servers.datagrams import DatagramServer
from conformance.lab.servers.doors import Doors
from conformance.lab.servers.names import Resolver
from conformance.lab.servers.places import LoopbackPlaces, SealedPlaces
from conformance.lab.servers.records import Journal
from conformance.lab.servers.registry import Registry
from conformance.lab.servers.sniffer import Sniffer
from conformance.lab.servers.streams import Streams

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from conformance.lab.plan import Mode
    from conformance.lab.servers.line import Line
    from conformance.lab.servers.places import HostSockets
    from conformance.lab.servers.streams import Role

_FILES = 8192
_EVERYWHERE: tuple[tuple[Role, tuple[int, ...]], ...] = (
    ("https", addresses.HTTPS_PORTS),
    ("http", addresses.HTTP_PORTS),
    ("tcp", addresses.TCP_PORTS),
    ("silent", (addresses.SILENT_PORT,)),
    ("dns", (addresses.DNS_PORT,)),
    ("honest", (addresses.HONEST_PROXY_PORT,)),
    ("yes", (addresses.YES_PROXY_PORT,)),
)


def serve(
    mode: Mode, folder: Path, line: Line, host: HostSockets, packets: list[socket.socket]
) -> None:
    """Serve for ever.

    Args:
        mode: the lab's.
        folder: the lab's folder.
        line: the conversation with the lab's builder.
        host: sockets of the subject's own host.
        packets: two packet sockets of the subject's namespace, for the wire and for `lo`.
    """
    _raise_file_limit()
    tempfile.tempdir = str(folder)  # keys pass through short-lived files
    asyncio.run(_Servers(mode, folder).run(line, host, packets))


def serve_canary(folder: Path, line: Line, address: str, pool: Iterator[str]) -> None:
    """Serve for ever in a container, on every address that its network namespace takes.

    Args:
        folder: the canary's folder.
        line: the conversation with who started it.
        address: the container's own address.
        pool: addresses for sites, all of them the container's.
    """
    _raise_file_limit()
    tempfile.tempdir = str(folder)
    # There is no IPv6 on an engine's default network.
    registry = Registry({4: pool, 6: pool})
    asyncio.run(_Servers("loopback", folder, registry).run_canary(line, address))


def _raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class _Servers:
    def __init__(self, mode: Mode, folder: Path, registry: Registry | None = None) -> None:
        self._mode = mode
        self._folder = folder
        self._authorities = Authorities()
        self._authorities.write_bundle(folder / BUNDLE_NAME)
        self._registry = registry or Registry()
        self._journal = Journal(self._registry, folder / JOURNAL_NAME)
        doors = Doors()
        self._resolver = Resolver(self._registry, self._journal, doors)
        self._datagrams: dict[int, DatagramServer] = {}
        self._poll = select.poll()
        self._streams = Streams(
            self._journal,
            self._registry,
            Certificates(self._authorities, self._registry),
            self._resolver,
            self._may_dial,
            doors,
        )

    async def run(self, line: Line, host: HostSockets, packets: list[socket.socket]) -> None:
        if self._mode == "sealed":
            self._serve_host(host)
            self._serve_everywhere()
            device = line.hear("network")["device"]
            sniffers = self._sniff(packets, (device, "lo"))
            proxies = self._proxies(addresses.GATEWAY_IPV4, addresses.HONEST_PROXY_PORT,
                                    addresses.YES_PROXY_PORT)  # fmt: skip
            places: SealedPlaces | LoopbackPlaces = SealedPlaces(self._registry)
            if os.geteuid() != 0:
                kernel.drop_capabilities()
        else:
            sniffers = []
            proxies = self._serve_proxies()
            places = LoopbackPlaces(self._streams, self._add_datagrams)
        await self._answer(line, proxies, places, sniffers)

    async def run_canary(self, line: Line, address: str) -> None:
        self._serve_everywhere()
        ports = (addresses.HONEST_PROXY_PORT, addresses.YES_PROXY_PORT)
        places = SealedPlaces(self._registry)
        await self._answer(line, self._proxies(address, *ports), places, [])

    async def _answer(
        self,
        line: Line,
        proxies: Mapping[str, str],
        places: SealedPlaces | LoopbackPlaces,
        sniffers: list[Sniffer],
    ) -> None:
        control = Control(
            self._journal,
            self._registry,
            places,
            sniffers,
            (self._streams.drain, self._drain_datagrams),
            self._streams.unread,
        )
        server = await control.listen(self._folder / CONTROL_NAME)
        line.say("ready", **proxies)
        line.close()
        await server.serve_forever()

    def _serve_host(self, host: HostSockets) -> None:
        for handle, role in host:
            if role is None:
                self._add_datagrams(handle)
            else:
                self._streams.add(handle, role)

    def _serve_everywhere(self) -> None:
        for role, ports in _EVERYWHERE:
            for port in ports:
                self._streams.add(listening.listen_everywhere(port), role)
        for port in addresses.UDP_PORTS:
            self._add_datagrams(listening.datagrams_everywhere(port))
        self._add_datagrams(listening.datagrams_everywhere(addresses.DNS_PORT), self._resolver)

    def _serve_proxies(self) -> Mapping[str, str]:
        ports = []
        for role in ("honest", "yes"):
            listener = listening.listen_at("127.0.0.1", 0)
            ports.append(listener.getsockname()[1])
            self._streams.add(listener, role)
        return self._proxies("127.0.0.1", *ports)

    @staticmethod
    def _proxies(address: str, honest: int, yes: int) -> Mapping[str, str]:
        return {"honest": f"http://{address}:{honest}", "yes": f"http://{address}:{yes}"}

    def _may_dial(self, address: str, port: int) -> bool:
        # Nothing leaves the internet's namespace; without one, only our own sites are dialled.
        # Its loopback is not the subject's: what came there would look like the subject's own.
        if self._mode == "sealed":
            return not addresses.is_loopback(address)
        return self._registry.serving(address, port) is not None

    def _sniff(self, packets: list[socket.socket], devices: tuple[str, str]) -> list[Sniffer]:
        loop = asyncio.get_running_loop()
        sniffers = []
        for handle, device in zip(packets, devices, strict=True):
            sniffer = Sniffer(handle, self._journal)
            sniffer.listen(device)
            loop.add_reader(handle, sniffer.drain)
            sniffers.append(sniffer)
        return sniffers

    def _add_datagrams(
        self, handle: socket.socket, resolver: Resolver | None = None
    ) -> DatagramServer:
        server = DatagramServer(
            handle, self._journal, self._registry, resolver, on_close=self._remove_datagrams
        )
        self._datagrams[handle.fileno()] = server
        self._poll.register(handle, select.POLLIN)
        asyncio.get_running_loop().add_reader(handle, server.drain)
        return server

    def _remove_datagrams(self, handle: socket.socket) -> None:
        asyncio.get_running_loop().remove_reader(handle)
        self._poll.unregister(handle)
        del self._datagrams[handle.fileno()]

    def _drain_datagrams(self) -> None:
        for number, _ in self._poll.poll(0):
            self._datagrams[number].drain()
