"""Messages to the kernel about links, addresses, routes and rules, many in one call.

pyroute2 does the same and much more; an instance of the lab's cloud needs thirty messages, and
every sandbox waits for them.
"""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PROHIBIT = 8

_HEAD = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_LINK = struct.Struct("=BxHiII")
_ADDRESS = struct.Struct("=BBBBI")
_NEIGHBOUR = struct.Struct("=BxxxiHBB")
_ROUTE = struct.Struct("=BBBBBBBBI")
_NUMBER = struct.Struct("=i")

_ERROR, _DONE = 2, 3
_NEW_LINK, _NEW_ADDRESS, _NEW_NEIGHBOUR = 16, 20, 28
_NEW_ROUTE, _DELETE_ROUTE, _GET_ROUTE = 24, 25, 26
_NEW_RULE, _DELETE_RULE = 32, 33
_REQUEST, _ACKNOWLEDGE, _DUMP = 1, 4, 0x300
_CREATE = 0x400 | 0x200  # and be the first
_SOL_NETLINK, _SHORT_ANSWERS, _STRICT_CHECK = 270, 10, 12
_AT_ONCE = 100  # more answers would not fit into what a socket holds
_BYTES = 1 << 16

_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_LINKINFO, _IFLA_NET_NS_PID, _IFLA_AF_SPEC = 1, 3, 18, 19, 26
_INFO_KIND, _INFO_DATA, _VETH_PEER, _ADDR_GEN_MODE = 1, 2, 1, 8
_UP, _NO_DUPLICATES, _PERMANENT, _ONLINK = 1, 2, 0x80, 4
_STATIC, _SCOPE_LINK, _UNICAST, _TO_TABLE = 4, 253, 1, 1
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PRIORITY, _RTA_TABLE = 1, 4, 5, 6, 15
_FRA_IIFNAME, _FRA_PRIORITY, _FRA_TABLE = 3, 6, 15


class Message(NamedTuple):
    """One request, without its head."""

    kind: int
    flags: int
    body: bytes


@dataclass(frozen=True, slots=True)
class End:
    """One end of a wire: its name, its index and its link-layer address."""

    name: str
    index: int
    mac: bytes


def wire(near: End, far: End, process: int) -> Message:
    """Ask for a veth from here to the network namespace of a process."""
    peer = _described(far) + _attribute(_IFLA_NET_NS_PID, _NUMBER.pack(process))
    data = _attribute(_INFO_DATA, _attribute(_VETH_PEER, peer))
    info = _attribute(_IFLA_LINKINFO, _attribute(_INFO_KIND, b"veth") + data)
    return Message(_NEW_LINK, _CREATE, _described(near) + info)


def _described(end: End) -> bytes:
    head = _LINK.pack(0, 0, end.index, 0, 0)
    name = _attribute(_IFLA_IFNAME, end.name.encode() + b"\0")
    return head + name + _attribute(_IFLA_ADDRESS, end.mac)


def raised(index: int) -> Iterator[Message]:
    """Bring a link up; without a link-local address nothing is on it by itself."""
    family = _attribute(socket.AF_INET6, _attribute(_ADDR_GEN_MODE, b"\1"))
    none = _attribute(_IFLA_AF_SPEC, family)
    yield Message(_NEW_LINK, 0, _LINK.pack(0, 0, index, 0, 0) + none)
    yield Message(_NEW_LINK, 0, _LINK.pack(0, 0, index, _UP, _UP))


def address(index: int, text: str) -> Message:
    """Give a link an address that has no neighbours."""
    family, data = _packed(text)
    body = _ADDRESS.pack(family, 8 * len(data), _NO_DUPLICATES, 0, index)
    return Message(_NEW_ADDRESS, _CREATE, body + _attribute(1, data) + _attribute(2, data))


def neighbour(index: int, text: str, mac: bytes) -> Message:
    """Say who has an address at the other end, so that nobody needs to ask."""
    family, data = _packed(text)
    body = _NEIGHBOUR.pack(family, index, _PERMANENT, 0, 0)
    return Message(_NEW_NEIGHBOUR, _CREATE, body + _attribute(1, data) + _attribute(2, mac))


def route(
    range_: str, *, table: int = 254, index: int = 0, gateway: str = "", priority: int = 0
) -> Message:
    """Ask for a route: by a gateway, on a link alone, or, where there is no link, shut."""
    network = ip_network(range_)
    family = socket.AF_INET6 if network.version == 6 else socket.AF_INET
    scope = _SCOPE_LINK if index and not gateway else 0
    kind, flags = (_UNICAST, _ONLINK if gateway else 0) if index else (PROHIBIT, 0)
    body = _ROUTE.pack(family, network.prefixlen, 0, 0, 0, _STATIC, scope, kind, flags)
    body += _attribute(_RTA_DST, network.network_address.packed)
    for name, number in ((_RTA_TABLE, table), (_RTA_OIF, index), (_RTA_PRIORITY, priority)):
        if number:
            body += _attribute(name, _NUMBER.pack(number))
    if gateway:
        body += _attribute(_RTA_GATEWAY, _packed(gateway)[1])
    return Message(_NEW_ROUTE, _CREATE, body)


def rule(
    family: int, table: int, priority: int, device: str = "", *, delete: bool = False
) -> Message:
    """Have a table asked for all packets, or for those that come in by a device."""
    body = _ROUTE.pack(family, 0, 0, 0, 0, 0, 0, _TO_TABLE, 0)
    body += _attribute(_FRA_TABLE, _NUMBER.pack(table))
    body += _attribute(_FRA_PRIORITY, _NUMBER.pack(priority))
    if device:
        body += _attribute(_FRA_IIFNAME, device.encode() + b"\0")
    return Message(_DELETE_RULE, 0, body) if delete else Message(_NEW_RULE, _CREATE, body)


def _packed(text: str) -> tuple[int, bytes]:
    one = ip_address(text)
    return (socket.AF_INET6 if one.version == 6 else socket.AF_INET), one.packed


def _attribute(kind: int, data: bytes) -> bytes:
    head = _ATTRIBUTE.pack(_ATTRIBUTE.size + len(data), kind)
    return head + data + bytes(-len(data) % 4)


class Netlink:
    """A way to the kernel, in the network namespace in which it was made."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.bind((0, 0))
        self._socket.setsockopt(_SOL_NETLINK, _SHORT_ANSWERS, 1)

    def __enter__(self) -> Self:
        """Be closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._socket.close()

    def ask(self, messages: Iterable[Message], *, missing: bool = False) -> None:
        """Send requests in this order.

        Args:
            messages: what is asked for.
            missing: whether what is not there may be missing.

        Raises:
            OSError: the kernel refused one of them; later ones may have been granted.
        """
        every = list(messages)
        for first in range(0, len(every), _AT_ONCE):
            self._ask(every[first : first + _AT_ONCE], missing=missing)

    def _ask(self, sent: list[Message], *, missing: bool) -> None:
        flags = _REQUEST | _ACKNOWLEDGE
        packed = [
            _HEAD.pack(_HEAD.size + len(body), kind, flags | more, number, 0) + body
            for number, (kind, more, body) in enumerate(sent)
        ]
        self._socket.send(b"".join(packed))
        refused = 0
        left = len(sent)
        while left:
            for kind, body in self._received():
                if kind != _ERROR:
                    continue
                left -= 1
                number = -_NUMBER.unpack_from(body)[0]
                if number and not (missing and number in _MISSING):
                    refused = refused or number
        if refused:
            raise OSError(refused, os.strerror(refused), "netlink")

    def flush(self, table: int) -> None:
        """Delete all routes of a table.

        Raises:
            OSError: the kernel refused.
        """
        self._socket.setsockopt(_SOL_NETLINK, _STRICT_CHECK, 1)
        for family in (socket.AF_INET, socket.AF_INET6):
            body = _ROUTE.pack(family, 0, 0, 0, 0, 0, 0, 0, 0)
            body += _attribute(_RTA_TABLE, _NUMBER.pack(table))
            head = _HEAD.pack(_HEAD.size + len(body), _GET_ROUTE, _REQUEST | _DUMP, 0, 0)
            self._socket.send(head + body)
            found = list(self._dumped())
            self.ask((Message(_DELETE_ROUTE, 0, one) for one in found), missing=True)

    def _dumped(self) -> Iterator[bytes]:
        while True:
            for kind, body in self._received():
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    number = -_NUMBER.unpack_from(body)[0]
                    if number in _MISSING:  # there is no such table
                        return
                    raise OSError(number, os.strerror(number), "netlink")
                yield body

    def _received(self) -> Iterator[tuple[int, bytes]]:
        data = self._socket.recv(_BYTES)
        while len(data) >= _HEAD.size:
            size, kind, *_ = _HEAD.unpack_from(data)
            yield kind, data[_HEAD.size : size]
            data = data[(size + 3) // 4 * 4 :]


# ENOENT, ESRCH, EADDRNOTAVAIL
_MISSING = frozenset({2, 3, 99})
