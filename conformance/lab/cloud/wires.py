"""The wires of the cloud's network, from its router to each instance.

The router decides by the wire that a packet comes in on, so that nothing that runs in an
instance can change what it may reach. The same routes are in the instance as well, for the
sake of a quick answer. What is let through takes the lab's wire, past its sniffers.
"""

from __future__ import annotations

import os
import socket
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from conformance.lab import addresses, kernel, netlink
from conformance.lab.netlink import End, Netlink
from conformance.lab.quiet import quieten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.lab.netlink import Message

UPLINK = "up0"
GATEWAYS = (addresses.CLOUD_IPV4, addresses.CLOUD_IPV6)
SUBJECT = (addresses.SUBJECT_IPV4, addresses.SUBJECT_IPV6)
INSTANCES = (addresses.INSTANCES_IPV4, addresses.INSTANCES_IPV6)
MOST_INSTANCES = 60_000

_EVERYTHING = ("0.0.0.0/0", "::/0")
_FAMILIES = (socket.AF_INET, socket.AF_INET6)
_RULE_PRIORITY = 100
_FIRST_TABLE = 1000
_FIRST_INDEX = 100_000
_INNER_INDEX = 1000  # some kernels have links of their own in each namespace
# Of the least weight, so that a policy of the same range comes before it.
_LAST = 4_000_000


def own_addresses(number: int) -> tuple[str, str]:
    """Give the addresses of an instance, one a family."""
    return tuple(str(ip_network(range_)[number + 1]) for range_ in INSTANCES)  # type: ignore[return-value] # two


def _ends(number: int) -> tuple[End, End]:
    """Give the ends of a wire: in the router and in the instance."""
    own = number.to_bytes(4, "big")
    return (
        End(f"i{number}", _FIRST_INDEX + number, b"\x02\x01" + own),
        End("eth0", _INNER_INDEX, b"\x02\x02" + own),
    )


def attach(number: int, ranges: Sequence[str]) -> None:
    """Move this process, which is in the router's namespace, into one for an instance.

    Args:
        number: the instance's.
        ranges: what it may reach.

    Raises:
        OSError: the kernel refused the namespace, a link, an address, a route or a rule.
    """
    outer, inner = _ends(number)
    way_out = _uplink()
    with Netlink() as router:
        kernel.unshare(kernel.CLONE_NEWNET)
        kernel.raise_loopback()
        for name in ("all", "default"):
            quieten(name)
        router.ask([netlink.wire(outer, inner, os.getpid())])
        with Netlink() as inside:
            inside.ask(_of_inside(number, ranges))
        router.ask(_of_router(number))
        router.ask(_let_through(number, way_out, ranges))


def _uplink() -> int:
    try:
        return socket.if_nametoindex(UPLINK)
    except OSError:  # without a lab there is no way out, whatever the policy says
        return 0


def _of_inside(number: int, ranges: Sequence[str]) -> Iterator[Message]:
    outer, inner = _ends(number)
    yield from netlink.raised(inner.index)
    for own in own_addresses(number):
        yield netlink.address(inner.index, own)
    for gateway in GATEWAYS:
        yield netlink.neighbour(inner.index, gateway, outer.mac)
    for family in _FAMILIES:
        yield netlink.rule(family, _FIRST_TABLE, _RULE_PRIORITY)
    yield from _let(inner.index, _FIRST_TABLE, GATEWAYS, ranges)


def _of_router(number: int) -> Iterator[Message]:
    outer, inner = _ends(number)
    yield from netlink.raised(outer.index)
    for own in own_addresses(number):
        yield netlink.neighbour(outer.index, own, inner.mac)
        yield netlink.route(f"{own}/{ip_address(own).max_prefixlen}", index=outer.index)
    for family in _FAMILIES:
        yield netlink.rule(family, _FIRST_TABLE + number, _RULE_PRIORITY, outer.name)


def enforce(number: int, instance: int, ranges: Sequence[str]) -> None:
    """Have an instance reach these ranges and no others from now on.

    Args:
        number: the instance's.
        instance: descriptor of its network namespace.
        ranges: what it may reach.

    Raises:
        OSError: the namespace cannot be entered, or the kernel refused a route.
    """
    with Netlink() as router:
        # Meanwhile nothing is let through: no other table has a way out.
        router.flush(_FIRST_TABLE + number)
        router.ask(_let_through(number, _uplink(), ranges))
    kernel.setns(instance, kernel.CLONE_NEWNET)
    with Netlink() as inside:
        inside.flush(_FIRST_TABLE)
        inside.ask(_let(_ends(number)[1].index, _FIRST_TABLE, GATEWAYS, ranges))


def detach(number: int) -> None:
    """Forget the rules of an instance that has ended; its wire went with it.

    Raises:
        OSError: the kernel refused.
    """
    table, name = _FIRST_TABLE + number, _ends(number)[0].name
    with Netlink() as router:
        rules = [
            netlink.rule(family, table, _RULE_PRIORITY, name, delete=True) for family in _FAMILIES
        ]
        router.ask(rules, missing=True)  # it may never have come so far
        router.flush(table)


def _let_through(number: int, uplink: int, ranges: Sequence[str]) -> Iterator[Message]:
    # What lies beside an instance is none of the internet: the host of the cloud's customer
    # stands in for a machine elsewhere, and other instances are reached through the mesh.
    for neighbours in (*SUBJECT, *INSTANCES):
        yield netlink.route(
            str(ip_network(neighbours)), table=_FIRST_TABLE + number, priority=_LAST
        )
    yield from _let(uplink, _FIRST_TABLE + number, SUBJECT, ranges)


def _let(
    index: int, table: int, gateways: tuple[str, str], ranges: Sequence[str]
) -> Iterator[Message]:
    for everything in _EVERYTHING:
        yield netlink.route(everything, table=table, priority=_LAST)
    if index:
        for range_ in dict.fromkeys(str(ip_network(text, strict=False)) for text in ranges):
            yield netlink.route(range_, table=table, index=index, gateway=gateways[":" in range_])
