"""The pure model: what entries name, what a policy opens, which addresses are private.

It shares no code with the value types of `sandboxes.contract`, so that a fault of
theirs cannot excuse itself here.
"""

from __future__ import annotations

import ipaddress
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

Mode = Literal["none", "all", "allow"]
MODES: tuple[Mode, ...] = ("none", "all", "allow")

HTTPS_PORT = 443


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """A host in normal form, and a TCP port: what one entry of an allow list names."""

    host: str
    port: int = HTTPS_PORT

    @property
    def bare(self) -> str:
        """The host alone, as an entry writes it."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def full(self) -> str:
        """Host and port, also where the port could be left out."""
        return f"{self.bare}:{self.port}"

    def __str__(self) -> str:
        return self.bare if self.port == HTTPS_PORT else self.full


def named(entry: str) -> Origin:
    """Read a right entry of an allow list: what it names, in normal form.

    Only what is right is read rightly: nothing is validated here.

    Args:
        entry: A host name or IP address with an optional `:port`.
    """
    host, port = entry, ""
    if "]" in entry:
        host, _, port = entry.removeprefix("[").partition("]")
    elif entry.count(":") == 1:
        host, _, port = entry.partition(":")
    return Origin(_normal(host), int(port.removeprefix(":") or HTTPS_PORT))


def _normal(host: str) -> str:
    if ":" in host:
        return str(ipaddress.IPv6Address(host))
    return ".".join(map(_a_label, host.removesuffix(".").split(".")))


def _a_label(label: str) -> str:
    # IDNA 2008 maps nothing: a sharp s stays one, and is no double s.
    folded = unicodedata.normalize("NFC", label.lower())
    if folded.isascii():
        return folded
    return f"xn--{folded.encode('punycode').decode('ascii')}"


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
    by_prefix = number >> 32 in (0xFFFF, _NAT64) or number >> 80 == _LOCAL_NAT64
    # `::0.x.y.z` is no way to write 0.x.y.z: a compatible address holds one of a machine.
    compatible = number >> 32 == 0 and number >> 24 > 0
    if by_prefix or compatible:
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


@dataclass(frozen=True, slots=True, order=True)
class Block:
    """A run of addresses of one family, both ends included."""

    bits: int
    first: int
    last: int


_MAPPED = 0xFFFF << 32


def block(entry: str) -> Block:
    """Read a right entry of an egress policy: an address, or a range with its length.

    Host bits that are set are left out of account: the range that was meant is given.

    Args:
        entry: An IPv4 or IPv6 address, with an optional `/length`.
    """
    address, _, length = entry.partition("/")
    bits = 128 if ":" in address else 32
    size = 1 << bits - int(length or bits)
    first = _number(address) // size * size
    return Block(bits, first, first + size - 1)


def covers_a_family(blocks: Iterable[Block]) -> bool:
    """Whether blocks together hold every IPv4 or every IPv6 address.

    A mapped IPv4 address counts for the IPv4 one, whichever block holds it; so what holds
    every IPv6 address holds every IPv4 one too.
    """
    offsets = {32: 0, 128: _MAPPED}
    runs = [(one.first - offsets[one.bits], one.last - offsets[one.bits]) for one in blocks]
    wanted = 0
    for first, last in sorted(runs):
        if first > wanted:
            break
        wanted = max(wanted, last + 1)
    return wanted > _LOW32
