"""Entries of an egress policy: addresses, ranges, sets of them, and what is none."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from conformance.strategies.hosts import WrongEntry, names

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

BITS = {4: 32, 6: 128}
_MAPPED = 0xFFFF << 32


def text_of(version: int, number: int, length: int) -> str:
    """Write a range as `address/length`; nothing is masked."""
    kind = ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address
    return f"{kind(number)}/{length}"


def _mapped(number: int, length: int) -> str:
    return text_of(6, _MAPPED | number, 96 + length)


def _masked(number: int, bits: int, length: int) -> int:
    return number >> (bits - length) << (bits - length)


# Nothing unspecified, and no IPv6 range that holds all of the mapped addresses.
_ipv4 = st.integers(1 << 24, (1 << 32) - 1)
_ipv6 = st.integers(1 << 112, (1 << 128) - 1)
_ipv4_ranges = st.builds(
    lambda number, length: text_of(4, _masked(number, 32, length) or 1 << 31, length),
    _ipv4,
    st.integers(1, 32),
)
_ipv6_ranges = st.builds(
    lambda number, length: text_of(6, _masked(number, 128, length) or 1 << 127, length),
    _ipv6,
    st.integers(1, 128),
)

RANGES = (
    *("203.0.113.10", "10.0.0.0/8", "2001:db8::/32", "2001:db8::1"),
    *("203.0.113.10/32", "2001:db8::1/128", "128.0.0.0/1", "8000::/1"),
)
"""One of each kind of right entry; the first three are those of the documents."""

ranges = st.one_of(
    _ipv4.map(lambda number: str(ipaddress.IPv4Address(number))),
    _ipv6.map(lambda number: str(ipaddress.IPv6Address(number))),
    _ipv4_ranges,
    _ipv6_ranges,
)
"""Right entries: addresses, and ranges without host bits."""


_NAMES = ("packages.example.org", "localhost", "fd00", "203.0.113.10.example")
_URLS = ("https://203.0.113.10", "https://packages.example.org/", "http://[2001:db8::1]/")
_NO_RANGES = (
    *("", "203.0.113.10/33", "203.0.113.10/-1", "203.0.113.10/", "203.0.113.10/32/32"),
    *("2001:db8::/129", "203.0.113.10:443", "203.0.113.10/path", "203.0.113.*", "10.0.0/8"),
    "203.0.113.1-203.0.113.9",
)
# However it is written, it is every address.
_EVERYTHING = (
    *("0.0.0.0/0", "0.0.0.0/00", "0.0.0.0/0.0.0.0", "203.0.113.10/0", "203.0.113.10/0.0.0.0"),
    *("::/0", "0:0:0:0:0:0:0:0/0", "::/00", "2001:db8::/0", "::ffff:0.0.0.0/0"),
)
NO_RANGES = (
    *(WrongEntry(text, "is a name") for text in _NAMES),
    *(WrongEntry(text, "is a URL") for text in _URLS),
    *(WrongEntry(text, "is no address or range") for text in _NO_RANGES),
    *(WrongEntry(text, "is a /0 range") for text in _EVERYTHING),
)
"""What is no entry of an egress policy: each a way of its own."""

ONE_OF_EACH = tuple(
    WrongEntry(texts[0], fault)
    for texts, fault in ((_NAMES, "is a name"), (_URLS, "is a URL"), (_EVERYTHING, "is a /0 range"))
)
"""A text of each kind."""

no_ranges = st.one_of(
    names.map(lambda name: WrongEntry(name, "is a name")),
    st.builds(
        lambda scheme, host: WrongEntry(f"{scheme}://{host}", "is a URL"),
        st.sampled_from(["https", "http", "HTTPS"]),
        st.one_of(names, _ipv4.map(lambda number: str(ipaddress.IPv4Address(number)))),
    ),
    st.builds(
        lambda address, length: WrongEntry(f"{address}/{length}", "is a /0 range"),
        st.ip_addresses().map(str),
        st.sampled_from(["0", "00"]),
    ),
)


@dataclass(frozen=True, slots=True)
class HostBits:
    """A range with host bits that are set, and the range that was meant."""

    text: str
    meant: str


def _with_host_bits(version: int, number: int, length: int, extra: int) -> HostBits:
    bits = BITS[version]
    first = _masked(number, bits, length)
    host = extra % ((1 << bits - length) - 1) + 1
    return HostBits(text_of(version, first | host, length), text_of(version, first, length))


HOST_BITS = (
    HostBits("10.1.2.3/8", "10.0.0.0/8"),
    # What was meant stands inside what was written.
    HostBits("10.0.0.0/4", "0.0.0.0/4"),
    HostBits("203.0.113.11/31", "203.0.113.10/31"),
    HostBits("2001:db8::1/32", "2001:db8::/32"),
)
host_bits = st.one_of(
    st.builds(_with_host_bits, st.just(4), _ipv4, st.integers(1, 31), st.integers(0)),
    st.builds(_with_host_bits, st.just(6), _ipv6, st.integers(1, 127), st.integers(0)),
)


@st.composite
def _parts(draw: DrawFn, version: int) -> list[tuple[int, int]]:
    """A whole family in parts, each a number and a length; the lowest comes first."""
    bits = BITS[version]
    parts = [(0, 0)]
    for _ in range(draw(st.integers(1, 9))):
        number, length = parts.pop(draw(st.integers(0, len(parts) - 1)))
        parts += [(number, length + 1), (number | 1 << bits - length - 1, length + 1)]
    return sorted(parts)


@st.composite
def coverings(draw: DrawFn) -> list[str]:
    """Ranges that together are every IPv4 or every IPv6 address, some beside them, in any order.

    Some of the IPv4 ones may be written as mapped.
    """
    version = draw(st.sampled_from([4, 6]))
    texts = [
        _mapped(*part) if version == 4 and draw(st.booleans()) else text_of(version, *part)
        for part in draw(_parts(version))
    ]
    return draw(st.permutations([*texts, *draw(st.lists(ranges, max_size=2))]))


def _staircase() -> tuple[str, ...]:
    """A half, a quarter, an eighth, ..., and the last address of all."""
    last = (1 << 32) - 1
    steps = (text_of(4, _masked(last, 32, length - 1), length) for length in range(1, 33))
    return (*steps, text_of(4, last, 32))


COVERINGS = (
    ("0.0.0.0/1", "128.0.0.0/1"),
    ("8000::/1", "::/1"),
    ("128.0.0.0/1", "203.0.113.10", "64.0.0.0/2", "0.0.0.0/2"),
    # One is inside another, so that sizes and neighbours do not add up.
    ("0.0.0.0/1", "0.0.0.0/2", "128.0.0.0/1", "203.0.113.0/24"),
    ("::ffff:0:0/96",),
    ("::ffff:0:0/97", "::ffff:8000:0/97"),
    ("::ffff:0.0.0.0/97", "128.0.0.0/1"),
    ("::/64",),
    _staircase(),
)
"""Each a way of its own to be every address."""


@st.composite
def gaps(draw: DrawFn) -> list[str]:
    """Ranges of one family that leave a part of it out, however small, in any order."""
    version = draw(st.sampled_from([4, 6]))
    parts = draw(_parts(version))
    # Of IPv6 the lowest part holds the mapped addresses.
    parts.pop(draw(st.integers(0, len(parts) - 1)) if version == 4 else 0)
    return draw(st.permutations([text_of(version, *part) for part in parts]))


GAPS = (
    ("128.0.0.0/1", "8000::/1"),
    # As many addresses as a family has, and more, but not each of them.
    ("128.0.0.0/1", "128.0.0.0/2", "192.0.0.0/2"),
    ("8000::/1", "8000::/1", "4000::/2", "2000::/3"),
    _staircase()[:-1],
    ("::ffff:0:0/97", "64.0.0.0/2", "192.0.0.0/2"),
)
"""Each a way of its own to be taken for every address, and not to be."""
