"""One host in several spellings, and hosts that only some comparisons take for one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from conformance.oracle import HTTPS_PORT
from conformance.strategies.hosts import names

if TYPE_CHECKING:
    import ipaddress

PORT = 8443
"""Each spelling has it, so that a missing port is in play nowhere."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two entries, and what is between them."""

    first: str
    second: str
    kind: str


def _pair(first: str, second: str, kind: str) -> Pair:
    return Pair(f"{first}:{PORT}", f"{second}:{PORT}", kind)


_NAME = "packages.example.org"
# U+00FC is one letter, u and U+0308 are the same one in two.
_SAME = (
    (_NAME, "Packages.EXAMPLE.org", "case"),
    (_NAME, f"{_NAME}.", "trailing dot"),
    (_NAME, "PACKAGES.Example.Org.", "case and trailing dot"),
    ("b\xfccher.example", "xn--bcher-kva.example", "A-label"),
    ("B\xdcCHER.example", "xn--bcher-kva.example", "A-label and case"),
    ("b\xfccher.example", "XN--BCHER-KVA.example.", "A-label, case and trailing dot"),
    ("bu\u0308cher.example", "xn--bcher-kva.example", "A-label and decomposed letter"),
    # IDNA of 2003 wrote a double s, and another sigma.
    ("fa\xdf.example", "xn--fa-hia.example", "A-label of a sharp s"),
    (
        "\u03b2\u03cc\u03bb\u03bf\u03c2.example",
        "xn--nxasmm1c.example",
        "A-label of a final sigma",
    ),
    ("example.\u4e2d\u56fd", "example.xn--fiqs8s", "A-label of a top-level domain"),
    ("[2001:db8::1]", "[2001:DB8::1]", "IPv6 in upper case"),
    ("[2001:db8::1]", "[2001:0db8:0000:0000:0000:0000:0000:0001]", "IPv6 in full"),
    ("[2001:db8::1:0:0:1]", "[2001:db8:0:0:1::1]", "IPv6 shortened elsewhere"),
    ("[2001:db8::cb00:710a]", "[2001:db8::203.0.113.10]", "IPv6 with a dotted end"),
)
_APART = (
    ("fa\xdf.example", "fass.example", "sharp s and double s"),
    (
        "\u03b2\u03cc\u03bb\u03bf\u03c2.example",
        "\u03b2\u03cc\u03bb\u03bf\u03c3.example",
        "two sigmas",
    ),
    ("b\xfccher.example", "bucher.example", "letter without its accent"),
    ("[2001:db8::1]", "[2001:db8:0:1::]", "IPv6 with other zeros"),
)
PAIRS = tuple(_pair(*each) for each in (*_SAME, *_APART))
"""Pairs that are one host, and pairs that are two; the model tells which."""


def _cased(text: str, upper: int) -> str:
    return "".join(
        letter.upper() if upper >> place & 1 else letter for place, letter in enumerate(text)
    )


# Letters that neither a mapping nor the rules for right-to-left scripts touch.
_LETTERS = "\xe0\xe4\xe9\xf1\xf8\xfc\u010d\u0142\u0436\u044f\u03b1\u03c9"
_words = st.text("abcxyz" + _LETTERS, min_size=1, max_size=8)


def _encoded(word: str) -> str:
    return word if word.isascii() else f"xn--{word.encode('punycode').decode('ascii')}"


def _spelt(address: ipaddress.IPv4Address | ipaddress.IPv6Address, way: int) -> str:
    return (f"[{address}]", f"[{address.exploded}]", f"[{address}]".upper())[way]


_addresses = st.ip_addresses(v=6)
_ways = st.integers(0, 2)
pairs = st.one_of(
    st.builds(
        lambda name, upper, dot: _pair(name, _cased(name, upper) + dot, "case and dot"),
        names,
        st.integers(0, 1 << 40),
        st.sampled_from(["", "."]),
    ),
    st.builds(
        lambda word, name: _pair(f"{word}.{name}", f"{_encoded(word)}.{name}", "A-label"),
        _words,
        names,
    ),
    st.builds(
        lambda address, first, second: _pair(
            _spelt(address, first), _spelt(address, second), "IPv6"
        ),
        _addresses,
        _ways,
        _ways,
    ),
)


def _whole(start: str, end: str) -> Pair:
    return Pair(f"{start}:{end}", f"[{start}]:{end}", "an IPv6 address, and one with a port")


WHOLE = (
    _whole("2001:db8::5", "8443"),
    _whole("2001:db8::5", "444"),
    _whole("::1", "80"),
    Pair("2001:db8:1:2:3:4:5:6", "[2001:db8:1:2:3:4:5::]:6", "an IPv6 address, and a shorter one"),
)
"""An address without brackets, and what it would be if its last group were a port."""

whole_addresses = st.builds(
    lambda group, port: _whole(f"2001:db8::{group:x}", str(port)),
    st.integers(1, 0xFFFF),
    st.integers(1, 9999).filter(lambda port: port != HTTPS_PORT),
)

_ODD = "ab1-_.:[]XK\u0130\u212a\uff0e\u3002\xad\u200d\xdf\u03c2\xfc\u0308\uff41\uff11\u2488xn"
odd_texts = st.text(_ODD, min_size=1, max_size=12)
"""Texts that one reading or another takes for an entry."""

ODD_TEXTS = (
    *(_NAME, f"{_NAME}.", "PACKAGES.example.org:443", "203.0.113.10", "203.0.113.10."),
    *("2001:db8::1", "[2001:DB8::1]", "::ffff:203.0.113.10", "b\xfccher.example", "fa\xdf.example"),
    *("bu\u0308cher.example", "B\xdcCHER.example.", "\u212aelvin.example", "\u0130.example"),
    *("xn--bcher-kva.example", "xn--a.example", "xn--example-.example", "_srv.example.org"),
    *("packages\uff0eexample", "packages\u3002example", "pack\xadages.example", "\uff41.example"),
)
"""Each a trap for a normal form of its own."""
