"""Where sites listen: on every address in a sealed lab, on ports of their own in a loopback one."""

from __future__ import annotations

import itertools
import socket
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from conformance.lab import addresses
from conformance.lab.errors import LabError
from conformance.lab.servers import listening

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.lab.servers.datagrams import DatagramServer
    from conformance.lab.servers.registry import Registry
    from conformance.lab.servers.streams import Role, Streams

# Both families always: who dials "localhost" takes whichever comes first.
_LOOPBACKS = {4: ("127.0.0.1", "::1"), 6: ("::1", "127.0.0.1")}
_PORT_ATTEMPTS = 20
_LISTENING_SITES = 400

HostSockets = list[tuple[socket.socket, "Role | None"]]


def open_host_sockets() -> HostSockets:
    """Open the services of the subject's own host; a role of `None` means datagrams."""
    found: HostSockets = []
    for address in _LOOPBACKS[4]:
        for worker in range(addresses.HOST_WORKERS):
            https, http, other = _host_ports(worker)
            found.append((listening.listen_at(address, https), "https"))
            found.append((listening.listen_at(address, http), "http"))
            found.append((listening.listen_at(address, other), "tcp"))
            found.append((listening.datagrams_at(address, other), None))
    return found


def _host_ports(worker: int) -> tuple[int, int, int]:
    return (
        addresses.HOST_HTTPS_PORT + worker,
        addresses.HOST_HTTP_PORT + worker,
        addresses.HOST_OTHER_PORT + worker,
    )


def _ports(https: int, http: int, other: int, udp: int) -> dict[str, int]:
    return {"https_port": https, "http_port": http, "other_port": other, "udp_port": udp}


class SealedPlaces:
    """Every address answers on the usual ports.

    Args:
        registry: where fresh addresses come from.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def open(self, family: int) -> tuple[tuple[str, ...], dict[str, int]]:
        """Give fresh addresses, none for family 0, and the usual ports."""
        ports = _ports(443, 80, addresses.OTHER_TCP_PORT, addresses.OTHER_UDP_PORT)
        return (self._registry.fresh_addresses(family) if family else ()), ports

    def on_host(self, worker: int, family: int) -> tuple[tuple[str, ...], dict[str, int]]:
        """Give the worker's own services on the subject's loopback.

        Raises:
            LabError: there are more workers than services.
        """
        if worker >= addresses.HOST_WORKERS:
            raise LabError(f"the lab has services for {addresses.HOST_WORKERS} workers; run fewer")
        https, http, other = _host_ports(worker)
        return _LOOPBACKS[family], _ports(https, http, other, other)


class LoopbackPlaces:
    """Each site has ports of its own; the sites that are longest there stop listening.

    Args:
        streams: what takes connections.
        datagrams: gives a server for a UDP socket.
    """

    def __init__(
        self, streams: Streams, datagrams: Callable[[socket.socket], DatagramServer]
    ) -> None:
        self._streams = streams
        self._new_datagrams = datagrams
        self._open: deque[Callable[[], object]] = deque()

    def open(self, family: int) -> tuple[tuple[str, ...], dict[str, int]]:
        """Listen on fresh ports of the loopback addresses."""
        return self.on_host(0, 6 if family == 6 else 4)

    def on_host(self, worker: int, family: int) -> tuple[tuple[str, ...], dict[str, int]]:
        """Listen on fresh ports of the loopback addresses."""
        del worker  # the ports are the site's alone
        found = tuple(address for address in _LOOPBACKS[family] if _is_usable(address))
        closers: list[Callable[[], object]] = []
        numbers = []
        for role in ("https", "http"):
            for listener in (listeners := _at_one_port(found, listening.listen_at)):
                self._streams.add(listener, role)
                closers.append(partial(self._streams.remove, listener))
            numbers.append(listeners[0].getsockname()[1])
        # A place is an address and a port, whatever the protocol: a number for datagrams
        # alone could be that of another site's listener, which would then serve this one.
        both = _at_one_port(found, listening.listen_at, listening.datagrams_at)
        for listener in both[: len(found)]:
            self._streams.add(listener, "tcp")
            closers.append(partial(self._streams.remove, listener))
        closers += [self._new_datagrams(handle).close for handle in both[len(found) :]]
        other = both[0].getsockname()[1]
        self._open.append(lambda: [close() for close in closers])
        while len(self._open) > _LISTENING_SITES:
            self._open.popleft()()
        return found, _ports(numbers[0], numbers[1], other, other)


def _is_usable(address: str) -> bool:
    try:
        listening.datagrams_at(address, 0).close()
    except OSError:
        return False
    return True


def _at_one_port(
    found: tuple[str, ...], *kinds: Callable[[str, int], socket.socket]
) -> list[socket.socket]:
    """Open a socket of each kind at each address, all at the same free port.

    Raises:
        LabError: no port was free at all of them.
    """
    for _ in range(_PORT_ATTEMPTS):
        handles: list[socket.socket] = []
        number = 0
        try:
            for open_at, address in itertools.product(kinds, found):
                handles.append(open_at(address, number))
                number = handles[0].getsockname()[1]
        except OSError:  # free at the first address, taken at the second
            for handle in handles:
                handle.close()
        else:
            return handles
    raise LabError(f"no port is free at {' and '.join(found)}; close what listens there")
