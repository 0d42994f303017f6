"""The seal: which namespaces a process is in, and that they have no way out but the lab."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.lab import addresses
from conformance.lab.errors import SealBroken

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.lab.plan import Facts

_KINDS = ("net", "mnt", "pid", "ipc", "uts")
_RTF_REJECT = 0x0200


def namespace_ids(process: str = "/proc/self") -> dict[str, str]:
    """Give the ids of the namespaces that `process`, a folder of /proc, is in."""
    return {kind: os.readlink(f"{process}/ns/{kind}") for kind in _KINDS}


def verify_seal(facts: Facts, *, own_devices: Sequence[str] = ()) -> None:
    """Check that each thread of this process is sealed.

    Args:
        facts: the lab's facts; in a mode without namespaces there is nothing to check.
        own_devices: beginnings of names of devices that were made inside on purpose.

    Raises:
        SealBroken: a thread is in another namespace, or a device or route is not the lab's.
    """
    if facts.mode != "sealed":
        return
    for kind in _KINDS:
        if facts.namespaces[kind] == facts.host_namespaces[kind]:
            raise SealBroken(
                f"the lab's {kind} namespace is the host's own; start it through run_in_lab"
            )
    for task in os.listdir("/proc/self/task"):
        try:
            spaces = namespace_ids(f"/proc/self/task/{task}")
        except (FileNotFoundError, ProcessLookupError):
            continue  # the thread has ended since
        for kind, found in spaces.items():
            if found != facts.namespaces[kind]:
                raise SealBroken(
                    f"thread {task} is in {found}, not in the lab's {facts.namespaces[kind]}; "
                    "start the process from inside the lab"
                )
    foreign = [*_foreign_devices(own_devices), *_foreign_routes(own_devices)]
    if foreign:
        raise SealBroken(
            f"the lab's namespace has {foreign[0]} beside its own; "
            "remove it, so that no packet has another way out"
        )


def _foreign_devices(own: Sequence[str]) -> Iterator[str]:
    lines = Path("/proc/self/net/dev").read_text(encoding="ascii").splitlines()[2:]
    for line in lines:
        name = line.partition(":")[0].strip()
        if not _is_own(name, own):
            yield f"the device {name}"


def _is_own(device: str, own: Sequence[str]) -> bool:
    return device in ("lo", addresses.SUBJECT_DEVICE) or device.startswith(tuple(own))


def _foreign_routes(own: Sequence[str]) -> Iterator[str]:
    for device, destination, gateway in (*_ipv4_routes(), *_ipv6_routes()):
        if device == "lo" or (device != addresses.SUBJECT_DEVICE and _is_own(device, own)):
            continue
        if (device, destination, gateway) not in _OUR_ROUTES:
            yield f"the route {destination} via {gateway} on {device}"


_OUR_ROUTES = {
    (addresses.SUBJECT_DEVICE, "0.0.0.0/0", addresses.GATEWAY_IPV4),
    (addresses.SUBJECT_DEVICE, "::/0", addresses.GATEWAY_IPV6),
    (addresses.SUBJECT_DEVICE, f"{addresses.SUBJECT_IPV6}/128", "::"),
    (addresses.SUBJECT_DEVICE, "ff00::/8", "::"),
}


def _ipv4_routes() -> Iterator[tuple[str, str, str]]:
    lines = Path("/proc/self/net/route").read_text(encoding="ascii").splitlines()[1:]
    for line in lines:
        device, destination, gateway, flags, _, _, _, mask, *_ = line.split()
        if int(flags, 16) & _RTF_REJECT:
            continue
        bits = int(mask, 16).bit_count()
        yield device, f"{_ipv4(destination)}/{bits}", _ipv4(gateway)


def _ipv4(number: str) -> str:
    return socket.inet_ntoa(int(number, 16).to_bytes(4, "little"))


def _ipv6_routes() -> Iterator[tuple[str, str, str]]:
    path = Path("/proc/self/net/ipv6_route")
    lines = path.read_text(encoding="ascii").splitlines() if path.exists() else []
    for line in lines:
        destination, bits, _, _, gateway, _, _, _, flags, device = line.split()
        if int(flags, 16) & _RTF_REJECT:
            continue
        yield device, f"{_ipv6(destination)}/{int(bits, 16)}", _ipv6(gateway)


def _ipv6(number: str) -> str:
    return socket.inet_ntop(socket.AF_INET6, bytes.fromhex(number))
