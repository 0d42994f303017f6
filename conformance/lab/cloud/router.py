"""The router of the cloud's network, behind the subject's host; its wires to instances: `wires`."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from pyroute2 import IPRoute

from conformance.lab import addresses, kernel
from conformance.lab.cloud.wires import GATEWAYS, INSTANCES, SUBJECT, UPLINK
from conformance.lab.network import RTNH_F_ONLINK, add_neighbour, device, raise_end
from conformance.lab.quiet import quieten


def enter_router() -> None:
    """Move this process into a network namespace of its own that forwards packets."""
    kernel.unshare(kernel.CLONE_NEWNET)
    kernel.raise_loopback()
    for name in ("all", "default"):
        quieten(name)
    _forward()


def _forward() -> None:
    """Have this network namespace pass packets on."""
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
    # In a process of its own: the library cannot be used beside a running event loop.
    router = os.open(f"/proc/{router_pid}/ns/net", os.O_RDONLY)
    kernel.setns(subject, kernel.CLONE_NEWNET)
    _forward()
    with IPRoute() as here:
        here.link(
            "add",
            ifname=addresses.CLOUD_DEVICE,
            kind="veth",
            peer={"ifname": UPLINK, "net_ns_pid": router_pid},
        )
        end, mac = device(here, addresses.CLOUD_DEVICE)
        kernel.setns(router, kernel.CLONE_NEWNET)
        with IPRoute() as there:
            up, up_mac = device(there, UPLINK)
            raise_end(there, up, GATEWAYS)
            for address in SUBJECT:
                add_neighbour(there, up, address, mac)
        kernel.setns(subject, kernel.CLONE_NEWNET)
        raise_end(here, end, ())
        for range_, gateway in zip(INSTANCES, GATEWAYS, strict=True):
            add_neighbour(here, end, gateway, up_mac)
            here.route("add", dst=range_, gateway=gateway, oif=end, flags=RTNH_F_ONLINK)
    kernel.setns(internet, kernel.CLONE_NEWNET)
    with IPRoute() as far:
        wire, _ = device(far, addresses.INTERNET_DEVICE)
        for range_, gateway in zip(INSTANCES, SUBJECT, strict=True):
            far.route("add", dst=range_, gateway=gateway, oif=wire, flags=RTNH_F_ONLINK)
