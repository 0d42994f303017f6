"""The cloud's network: a router behind the subject's host, and a wire to each instance.

The router decides by the wire that a packet comes in on, so that nothing that runs in an
instance can change what it may reach. The same routes are in the instance as well, for the
sake of a quick answer. What is let through takes the lab's wire, past its sniffers.

Each function that uses netlink runs in a process of its own: the library cannot be used beside
a running event loop.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from conformance.lab import addresses, kernel
from conformance.lab.network import RTNH_F_ONLINK, add_neighbour, device, quieten, raise_end

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_UPLINK = "up0"
_INSIDE = "eth0"
_GATEWAYS = (addresses.CLOUD_IPV4, addresses.CLOUD_IPV6)
_SUBJECT = (addresses.SUBJECT_IPV4, addresses.SUBJECT_IPV6)
_INSTANCES = (addresses.INSTANCES_IPV4, addresses.INSTANCES_IPV6)
_EVERYTHING = ("0.0.0.0/0", "::/0")
_FAMILIES = (socket.AF_INET, socket.AF_INET6)
_PROHIBIT = 8
_RULE_PRIORITY = 100
_FIRST_TABLE = 1000
MOST_INSTANCES = 60_000


def own_addresses(number: int) -> tuple[str, str]:
    """Give the addresses of an instance, one a family."""
    return tuple(str(ip_network(range_)[number + 1]) for range_ in _INSTANCES)  # type: ignore[return-value] # two


def enter_router() -> None:
    """Move this process into a network namespace of its own that forwards packets."""
    kernel.unshare(kernel.CLONE_NEWNET)
    kernel.raise_loopback()
    _forward()


def _forward() -> None:
    for name in ("all", "default"):
        quieten(name)
    for path in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
        with suppress(FileNotFoundError):  # a kernel without IPv6
            Path("/proc/sys/net", path).write_text("1", encoding="ascii")


def join(router_pid: int, subject: int, internet: int) -> None:
    """Join the router with the subject's namespace, and tell the internet of the instances.

    Args:
        router_pid: a process in the router's namespace.
        subject: descriptor of the subject's namespace.
        internet: descriptor of the internet's.

    Raises:
        OSError: a namespace cannot be entered.
        NetlinkError: the kernel refused a link, an address or a route.
    """
    router = os.open(f"/proc/{router_pid}/ns/net", os.O_RDONLY)
    kernel.setns(subject, kernel.CLONE_NEWNET)
    for path in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
        with suppress(FileNotFoundError):
            Path("/proc/sys/net", path).write_text("1", encoding="ascii")
    with IPRoute() as here:
        here.link(
            "add",
            ifname=addresses.CLOUD_DEVICE,
            kind="veth",
            peer={"ifname": _UPLINK, "net_ns_pid": router_pid},
        )
        end, mac = device(here, addresses.CLOUD_DEVICE)
        kernel.setns(router, kernel.CLONE_NEWNET)
        with IPRoute() as there:
            up, up_mac = device(there, _UPLINK)
            raise_end(there, up, _GATEWAYS)
            for address in _SUBJECT:
                add_neighbour(there, up, address, mac)
        kernel.setns(subject, kernel.CLONE_NEWNET)
        raise_end(here, end, ())
        for range_, gateway in zip(_INSTANCES, _GATEWAYS, strict=True):
            add_neighbour(here, end, gateway, up_mac)
            here.route("add", dst=range_, gateway=gateway, oif=end, flags=RTNH_F_ONLINK)
    kernel.setns(internet, kernel.CLONE_NEWNET)
    with IPRoute() as far:
        wire, _ = device(far, addresses.INTERNET_DEVICE)
        for range_, gateway in zip(_INSTANCES, _SUBJECT, strict=True):
            far.route("add", dst=range_, gateway=gateway, oif=wire, flags=RTNH_F_ONLINK)


def attach(number: int, ranges: Sequence[str]) -> None:
    """Move this process, which is in the router's namespace, into one for an instance.

    Args:
        number: the instance's.
        ranges: what it may reach.

    Raises:
        OSError: the kernel refused the namespace.
        NetlinkError: it refused a link, an address or a route.
    """
    with IPRoute() as router:
        kernel.unshare(kernel.CLONE_NEWNET)
        kernel.raise_loopback()
        for name in ("all", "default"):
            quieten(name)
        end = f"i{number}"
        peer = {"ifname": _INSIDE, "net_ns_pid": os.getpid()}
        router.link("add", ifname=end, kind="veth", peer=peer)
        index, mac = device(router, end)
        own = own_addresses(number)
        with IPRoute() as inside:
            inner, inner_mac = device(inside, _INSIDE)
            raise_end(inside, inner, own)
            for gateway in _GATEWAYS:
                add_neighbour(inside, inner, gateway, mac)
            for family in _FAMILIES:
                inside.rule("add", family=family, table=_FIRST_TABLE, priority=_RULE_PRIORITY)
            _let(inside, inner, _FIRST_TABLE, _GATEWAYS, ranges)
        raise_end(router, index, ())
        for address in own:
            add_neighbour(router, index, address, inner_mac)
            router.route("add", dst=f"{address}/{_bits(address)}", oif=index)
        for family in _FAMILIES:
            router.rule(
                "add", family=family, table=_FIRST_TABLE + number, iifname=end,
                priority=_RULE_PRIORITY,
            )  # fmt: skip
        _let_through(router, number, ranges)


def enforce(number: int, instance: int, ranges: Sequence[str]) -> None:
    """Have an instance reach these ranges and no others from now on.

    Args:
        number: the instance's.
        instance: descriptor of its network namespace.
        ranges: what it may reach.

    Raises:
        OSError: the namespace cannot be entered.
        NetlinkError: the kernel refused a route.
    """
    with IPRoute() as router:
        _flush(router, _FIRST_TABLE + number)
        _let_through(router, number, ranges)
    kernel.setns(instance, kernel.CLONE_NEWNET)
    with IPRoute() as inside:
        inner, _ = device(inside, _INSIDE)
        _flush(inside, _FIRST_TABLE)
        _let(inside, inner, _FIRST_TABLE, _GATEWAYS, ranges)


def detach(number: int) -> None:
    """Forget the rules of an instance that has ended; its wire went with it."""
    with IPRoute() as router:
        for family in _FAMILIES:
            with suppress(NetlinkError):  # it never came so far
                router.rule(
                    "del", family=family, table=_FIRST_TABLE + number, priority=_RULE_PRIORITY,
                    iifname=f"i{number}",
                )  # fmt: skip
        _flush(router, _FIRST_TABLE + number)


def _flush(handle: IPRoute, table: int) -> None:
    # Meanwhile nothing is let through: no other table has a way out.
    for family in _FAMILIES:
        handle.flush_routes(table=table, family=family)


def _let_through(router: IPRoute, number: int, ranges: Sequence[str]) -> None:
    links = router.link_lookup(ifname=_UPLINK)
    # What lies beside an instance is none of the internet: the host of the cloud's customer
    # stands in for a machine elsewhere, and other instances are reached through the mesh.
    for neighbours in (*_SUBJECT, *_INSTANCES):
        _prohibit(router, neighbours, _FIRST_TABLE + number)
    # Without a lab there is no way out, whatever the policy says.
    _let(router, links[0] if links else 0, _FIRST_TABLE + number, _SUBJECT, ranges)


def _let(
    handle: IPRoute, index: int, table: int, gateways: tuple[str, str], ranges: Sequence[str]
) -> None:
    for everything in _EVERYTHING:
        _prohibit(handle, everything, table)
    for range_, gateway in _by_family(ranges, gateways):
        if index:
            handle.route(
                "add", dst=range_, gateway=gateway, oif=index, table=table, flags=RTNH_F_ONLINK,
                family=_FAMILIES[":" in gateway],
            )  # fmt: skip


def _prohibit(handle: IPRoute, range_: str, table: int) -> None:
    # Of the least weight, so that a policy of the same range comes before it.
    family = _FAMILIES[":" in range_]
    handle.route("add", dst=range_, family=family, type=_PROHIBIT, table=table, priority=4_000_000)


def _by_family(ranges: Sequence[str], gateways: tuple[str, str]) -> Iterator[tuple[str, str]]:
    for range_ in dict.fromkeys(str(ip_network(text, strict=False)) for text in ranges):
        yield range_, gateways[":" in range_]


def _bits(address: str) -> int:
    return ip_address(address).max_prefixlen
