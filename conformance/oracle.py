"""The pure model: what a policy opens, and which addresses are private.

It shares no code with the value types of `sandboxes.contract`, so that a fault of
theirs cannot excuse itself here.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection

Mode = Literal["none", "all", "allow"]
MODES: tuple[Mode, ...] = ("none", "all", "allow")

HTTPS_PORT = 443


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """A host in normal form, and a TCP port: what one entry of an allow list names."""

    host: str
    port: int = HTTPS_PORT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == HTTPS_PORT else f"{host}:{self.port}"


def opens(mode: Mode, listed: Collection[Origin], wanted: Origin, *, tls: bool = True) -> bool:
    """Whether a policy opens a connection, leaving aside what address it leads to.

    Args:
        mode: The network mode.
        listed: What the entries of an allow list name; only `"allow"` looks at it.
        wanted: Where the connection goes.
        tls: Whether it speaks TLS; plain HTTP does not.
    """
    if mode == "none":
        return False
    return mode == "all" or (tls and wanted in listed)


# As first and last address: a table of numbers has no parser to share a fault with.
PRIVATE_IPV4: tuple[tuple[str, str], ...] = (
    ("127.0.0.0", "127.255.255.255"),
    ("10.0.0.0", "10.255.255.255"),
    ("172.16.0.0", "172.31.255.255"),
    ("192.168.0.0", "192.168.255.255"),
    ("169.254.0.0", "169.254.255.255"),
    ("100.64.0.0", "100.127.255.255"),
    ("0.0.0.0", "0.255.255.255"),  # noqa: S104 - the first of a range, nothing is bound
    ("192.0.0.0", "192.0.0.255"),
    ("198.18.0.0", "198.19.255.255"),
    ("224.0.0.0", "239.255.255.255"),
    ("240.0.0.0", "255.255.255.255"),
)
PRIVATE_IPV6: tuple[tuple[str, str], ...] = (
    ("::1", "::1"),
    ("::", "::"),
    ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
)


def _number(text: str) -> int:
    return int(ipaddress.ip_address(text))


_IPV4 = tuple((_number(first), _number(last)) for first, last in PRIVATE_IPV4)
_IPV6 = tuple((_number(first), _number(last)) for first, last in PRIVATE_IPV6)

_LOW32 = 0xFFFFFFFF
_SIX_TO_FOUR = 0x2002
_TEREDO = 0x20010000
_NAT64 = 0x0064FF9B << 64
_LOCAL_NAT64 = 0x0064FF9B0001


def written_ipv4(address: str) -> str | None:
    """Give the IPv4 address that an IPv6 one carries: mapped, compatible, 6to4, NAT64, Teredo.

    Args:
        address: An IPv4 or IPv6 address without brackets.

    Returns:
        The inner address, or None where there is none.
    """
    parsed = ipaddress.ip_address(address)
    if parsed.version == 4:
        return None
    number = int(parsed)
    by_prefix = number >> 32 in (0, 0xFFFF, _NAT64) or number >> 80 == _LOCAL_NAT64
    if by_prefix and number > 1:
        inner = number & _LOW32
    elif number >> 112 == _SIX_TO_FOUR:
        inner = number >> 80 & _LOW32
    elif number >> 96 == _TEREDO:
        inner = (number & _LOW32) ^ _LOW32  # a client's address is stored inverted
    else:
        return None
    return str(ipaddress.IPv4Address(inner))


def is_private(address: str) -> bool:
    """Whether the contract counts an address as private or loopback.

    Args:
        address: An IPv4 or IPv6 address without brackets.

    Raises:
        ValueError: It is none.
    """
    parsed = ipaddress.ip_address(address)
    if parsed.version == 4:
        return any(first <= int(parsed) <= last for first, last in _IPV4)
    inner = written_ipv4(address)
    if inner is not None:
        return is_private(inner)
    return any(first <= int(parsed) <= last for first, last in _IPV6)
