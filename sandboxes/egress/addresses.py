"""Which addresses are not of the public internet, however they are written."""

from __future__ import annotations

import ipaddress

_IPV4 = tuple(
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_IPV6 = tuple(
    ipaddress.IPv6Network(text)
    for text in (
        "::/128",
        "::1/128",
        "64:ff9b:1::/48",  # NAT64 of one network's own: where it leads is not written in it
        "100::/64",
        "2001::/32",  # Teredo
        "2001:2::/48",
        "2001:10::/28",
        "2001:db8::/32",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    )
)
_SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")
# Mapped, compatible and NAT64: the IPv4 address is the last 32 bits.
_ENDS_IN_IPV4 = tuple(
    ipaddress.IPv6Network(text) for text in ("::ffff:0:0/96", "::/96", "64:ff9b::/96")
)


def is_private(address: str) -> bool:
    """Whether an address is private, loopback, or otherwise not of the public internet.

    Args:
        address: IPv4 or IPv6, without brackets; a zone makes it private.

    Raises:
        ValueError: It is no address.
    """
    parsed = ipaddress.ip_address(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return any(parsed in network for network in _IPV4)
    if parsed.scope_id is not None or any(parsed in network for network in _IPV6):
        return True
    if parsed in _SIX_TO_FOUR:
        return is_private(str(ipaddress.IPv4Address(int(parsed) >> 80 & 0xFFFFFFFF)))
    if any(parsed in network for network in _ENDS_IN_IPV4):
        return is_private(str(ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)))
    return False
