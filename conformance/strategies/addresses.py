"""Private addresses in every spelling that some client takes for them."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from hypothesis import strategies as st

from conformance import oracle
from conformance.probes.clients import Scheme

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.probes.places import Family

_LOOPBACK = ("127.0.0.0", "::1")


def _between(first: str, last: str) -> st.SearchStrategy[str]:
    kind = ipaddress.IPv6Address if ":" in first else ipaddress.IPv4Address
    low, high = int(kind(first)), int(kind(last))
    edges = st.sampled_from([low, min(low + 1, high), max(low, high - 1), high])
    return st.one_of(edges, st.integers(low, high)).map(lambda number: str(kind(number)))


private_ipv4 = st.one_of(
    st.sampled_from(["10.0.0.1", "169.254.169.254", "192.168.1.1", "172.17.0.1"]),
    *(_between(*ends) for ends in oracle.PRIVATE_IPV4 if ends[0] not in _LOOPBACK),
)
"""Private IPv4 addresses of other machines."""

private_ipv6 = st.one_of(
    st.just("fd00::1"),
    *(_between(*ends) for ends in oracle.PRIVATE_IPV6 if ends[0] not in ("::1", "::")),
)
"""Private IPv6 addresses of other machines."""


def _parts(address: str) -> list[int]:
    return [int(part) for part in address.split(".")]


def _carried(prefix: int, address: str, shift: int = 0, *, inverted: bool = False) -> str:
    inner = int(ipaddress.IPv4Address(address)) ^ (0xFFFFFFFF if inverted else 0)
    return f"[{ipaddress.IPv6Address(prefix | inner << shift)}]"


def _short(address: str) -> str:
    first, second, third, fourth = _parts(address)
    return f"{first}.{second}.{third << 8 | fourth}"


def _shorter(address: str) -> str:
    first, second, third, fourth = _parts(address)
    return f"{first}.{second << 16 | third << 8 | fourth}"


_NAT64 = 0x64FF9B << 96
_LOCAL_NAT64 = 0x64FF9B0001 << 80
_TEREDO_SERVER = 0x20010000 << 96 | 0x0B4D0001 << 64

_IPV4_SPELLINGS: dict[str, Callable[[str], str]] = {
    "dotted decimal": str,
    "decimal": lambda text: str(int(ipaddress.IPv4Address(text))),
    "hexadecimal": lambda text: hex(int(ipaddress.IPv4Address(text))),
    "hexadecimal parts": lambda text: ".".join(map(hex, _parts(text))),
    "octal": lambda text: f"0{int(ipaddress.IPv4Address(text)):o}",
    "octal parts": lambda text: ".".join(f"0{part:o}" for part in _parts(text)),
    "three parts": _short,
    "two parts": _shorter,
    "trailing dot": lambda text: text + ".",
    "percent-encoded": lambda text: "".join(f"%{ord(digit):02x}" for digit in text),
    "full-width": lambda text: "".join(
        chr(ord(digit) + 0xFEE0) if digit != "." else "\u3002" for digit in text
    ),
    "mapped": lambda text: f"[::ffff:{text}]",
    "mapped in hexadecimal": lambda text: _carried(0xFFFF << 32, text),
    "compatible": lambda text: f"[::{text}]",
    "NAT64": lambda text: _carried(_NAT64, text),
    "local NAT64": lambda text: _carried(_LOCAL_NAT64, text),
    "6to4": lambda text: _carried(0x2002 << 112, text, 80),
    "Teredo": lambda text: _carried(_TEREDO_SERVER, text, inverted=True),
}
_IPV6_SPELLINGS: dict[str, Callable[[str], str]] = {
    "compressed": lambda text: f"[{text}]",
    "exploded": lambda text: f"[{ipaddress.IPv6Address(text).exploded}]",
    "upper case": lambda text: f"[{ipaddress.IPv6Address(text).exploded.upper()}]",
}


_CANONICAL = ("dotted decimal", "compressed")
_ADDRESSES = (*_CANONICAL, "mapped", "compatible", "NAT64", "local NAT64", "6to4", "Teredo")


@dataclass(frozen=True, slots=True)
class Literal:
    """A private address, and how a URL spells it."""

    address: str
    kind: str

    @property
    def is_canonical(self) -> bool:
        """Whether it is spelled as people do."""
        return self.kind in _CANONICAL

    @property
    def is_address(self) -> bool:
        """Whether it is an address of its own and not only another spelling of one."""
        return self.kind in _ADDRESSES

    @property
    def host(self) -> str:
        """The host part of the URL."""
        table = _IPV6_SPELLINGS if ":" in self.address else _IPV4_SPELLINGS
        return table[self.kind](self.address)

    @property
    def dialled(self) -> tuple[str, ...]:
        """The addresses that a connection to it may go to."""
        if not self.host.startswith("["):
            return (self.address,)
        written = str(ipaddress.IPv6Address(self.host[1:-1]))
        return (self.address,) if written == self.address else (self.address, written)


LITERALS = (
    *(Literal("10.0.0.1", kind) for kind in _IPV4_SPELLINGS),
    *(Literal(ends[0], "dotted decimal") for ends in oracle.PRIVATE_IPV4 if ends[0] != "127.0.0.0"),
    *(Literal("169.254.169.254", kind) for kind in ("dotted decimal", "mapped", "NAT64")),
    Literal("100.64.0.1", "mapped"),
    *(Literal("fd00::1", kind) for kind in _IPV6_SPELLINGS),
    *(Literal(address, "compressed") for address in ("fe80::1", "fec0::1")),
)
"""One private address in each spelling, and one of each range."""

private_literals = st.one_of(
    st.builds(Literal, private_ipv4, st.sampled_from(list(_IPV4_SPELLINGS))),
    st.builds(Literal, private_ipv6, st.sampled_from(list(_IPV6_SPELLINGS))),
).filter(lambda literal: all(map(oracle.is_private, literal.dialled)))

LOOPBACK_HOSTS = (
    "127.0.0.1",
    "[::1]",
    "localhost",
    "0.0.0.0",  # noqa: S104 - a destination; the kernel takes it for loopback
    "[::]",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "127.0.0.1.",
    "%31%32%37.0.0.1",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "0",
)
"""Ways to write the host's own loopback addresses in a URL."""

loopback_hosts = st.sampled_from(LOOPBACK_HOSTS)


@dataclass(frozen=True, slots=True)
class LoopbackPlace:
    """A place on the host's own loopback, and what a client there speaks; port 0 is any."""

    address: str
    port: int
    scheme: Scheme


LOOPBACK_PLACES = (
    LoopbackPlace("127.0.0.1", 0, "https"),
    LoopbackPlace("::1", 0, "https"),
    LoopbackPlace("127.0.0.53", 53, "https"),
    LoopbackPlace("127.0.0.1", 0, "tcp"),
    LoopbackPlace("127.0.0.1", 0, "udp"),
)
"""One place of each family and protocol, and one where name servers listen."""

loopback_places = st.builds(
    LoopbackPlace,
    st.one_of(
        st.sampled_from(["127.0.0.1", "::1"]),
        st.builds("127.{}.{}.{}".format, *[st.integers(1, 254)] * 3),
    ),
    st.sampled_from([0, 22, 25, 53, 80, 443, 2375, 3128, 5432, 6379, 8080, 11434]),
    st.sampled_from(get_args(Scheme)[:-1]),
)
"""Places on the host's own loopback, at ports of services that are found there."""


@dataclass(frozen=True, slots=True)
class Detour:
    """A way to the address of a listed name that does not go by that name.

    Attributes:
        family: Of the address.
        kind: Another name of it, or how the address is spelled.
        after_use: Whether a permitted request comes first.
    """

    family: Family
    kind: str
    after_use: bool

    @property
    def by_name(self) -> bool:
        """Whether it goes by another name."""
        return self.kind == "another name"

    @property
    def is_canonical(self) -> bool:
        """Whether every client takes it, and not only one that reads odd spellings."""
        return self.by_name or self.kind in _CANONICAL

    def host(self, address: str) -> str:
        """The host part of the URL."""
        table = _IPV6_SPELLINGS if ":" in address else _IPV4_SPELLINGS
        return table[self.kind if self.kind in table else next(iter(table))](address)


DETOURS = (
    Detour(4, "dotted decimal", after_use=True),
    Detour(4, "another name", after_use=True),
    Detour(6, "compressed", after_use=True),
    Detour(4, "dotted decimal", after_use=False),
    Detour(4, "mapped", after_use=False),
)
"""An address and another name of it, before and after the listed name was used."""

detours = st.builds(
    Detour,
    st.sampled_from((4, 6)),
    st.sampled_from(["another name", *_IPV4_SPELLINGS, *_IPV6_SPELLINGS]),
    st.booleans(),
)


OPENED = (
    "10.0.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "fd00::1",
    "a name",
    "127.0.0.1",
    "::1",
    "localhost",
)
"""Private addresses that something can listen at, one of them by a name of its own."""
