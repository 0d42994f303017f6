"""The wire: a veth from the subject's namespace to one that answers for every address.

`local default` (IPv4) and `local ::/0` (IPv6) make the kernel of the internet's
namespace take any destination for its own. The IPv6 route is in the main table: in
the local one it would come before the route back to the subject.
"""

from __future__ import annotations

import os
import socket

from pyroute2 import IPRoute

from conformance.lab import addresses, kernel
from conformance.lab.quiet import quieten

_RTN_LOCAL = 2
_RT_TABLE_MAIN = 254
_RT_TABLE_LOCAL = 255
RTNH_F_ONLINK = 4
_RT_SCOPE_HOST = 254
_NUD_PERMANENT = 0x80
_IFA_F_NODAD = 0x02
_IN6_ADDR_GEN_MODE_NONE = 1


def build(internet_pid: int) -> None:
    """Join this process's network namespace with that of process `internet_pid`.

    Leaves the calling process in the internet's namespace, so run it in a process of its own.

    Raises:
        OSError: a namespace cannot be entered.
        pyroute2.NetlinkError: the kernel refused a link, an address or a route.
    """
    quieten("all")
    quieten("default")
    with IPRoute() as here:
        here.link(
            "add",
            ifname=addresses.SUBJECT_DEVICE,
            kind="veth",
            peer={"ifname": addresses.INTERNET_DEVICE, "net_ns_pid": internet_pid},
        )
        subject, subject_mac = device(here, addresses.SUBJECT_DEVICE)
        namespace = os.open(f"/proc/{os.getpid()}/ns/net", os.O_RDONLY)
        internet_mac = _build_internet(internet_pid, subject_mac)
        kernel.setns(namespace, kernel.CLONE_NEWNET)
        os.close(namespace)
        raise_end(here, subject, (addresses.SUBJECT_IPV4, addresses.SUBJECT_IPV6))
        gateways = (addresses.GATEWAY_IPV4, addresses.GATEWAY_IPV6)
        for gateway in gateways:
            add_neighbour(here, subject, gateway, internet_mac)
        for destination, gateway in zip(("0.0.0.0/0", "::/0"), gateways, strict=True):
            here.route("add", dst=destination, gateway=gateway, oif=subject, flags=RTNH_F_ONLINK)


def _build_internet(pid: int, subject_mac: str) -> str:
    namespace = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    kernel.setns(namespace, kernel.CLONE_NEWNET)
    os.close(namespace)
    quieten("all")
    quieten("default")
    with IPRoute() as there:
        internet, internet_mac = device(there, addresses.INTERNET_DEVICE)
        loopback, _ = device(there, "lo")
        raise_end(there, internet, (addresses.GATEWAY_IPV4, addresses.GATEWAY_IPV6))
        for address in (addresses.SUBJECT_IPV4, addresses.SUBJECT_IPV6):
            bits = 128 if ":" in address else 32
            there.route("add", dst=f"{address}/{bits}", oif=internet)
            add_neighbour(there, internet, address, subject_mac)
        there.route(
            "add",
            dst="0.0.0.0/0",
            oif=loopback,
            type=_RTN_LOCAL,
            table=_RT_TABLE_LOCAL,
            scope=_RT_SCOPE_HOST,
        )
        there.route(
            "add",
            dst="::/0",
            family=socket.AF_INET6,
            oif=loopback,
            type=_RTN_LOCAL,
            table=_RT_TABLE_MAIN,
        )
    return internet_mac


def device(handle: IPRoute, name: str) -> tuple[int, str]:
    """Give the index and the link-layer address of a network device."""
    (link,) = handle.get_links(ifname=name)
    return int(link["index"]), str(link.get("address"))


def raise_end(handle: IPRoute, index: int, own: tuple[str, ...]) -> None:
    """Bring up one end of a wire, with addresses of its own and nothing on-link."""
    # Without a link-local address nothing is on-link: even fe80::/10 has to take the gateway.
    # /32 and /128 for the same reason: no neighbour could swallow a packet while it is sought.
    handle.link(
        "set",
        index=index,
        IFLA_AF_SPEC={"attrs": [("AF_INET6", {"attrs": [("IFLA_INET6_ADDR_GEN_MODE", 1)]})]},
    )
    handle.link("set", index=index, state="up")
    for address in own:
        if ":" in address:
            handle.addr("add", index=index, address=address, prefixlen=128, flags=_IFA_F_NODAD)
        else:
            handle.addr("add", index=index, address=address, prefixlen=32)


def add_neighbour(handle: IPRoute, index: int, address: str, mac: str) -> None:
    """Say who has an address at the other end, so that nobody needs to ask."""
    handle.neigh("add", dst=address, lladdr=mac, ifindex=index, state=_NUD_PERMANENT)
