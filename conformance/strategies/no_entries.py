"""Texts that are no entry of an allow list, though they have no scheme, path or wildcard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from conformance.strategies.hosts import (
    SCHEME_PATH_WILDCARD,
    Entry,
    WrongEntry,
    entries,
    hosts,
    names,
    wrong_entries,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME = "packages.example.org"

_USER_INFO = (f"user@{_NAME}", f"user:word@{_NAME}:443", f"{_NAME}@other.test", f"@{_NAME}")
_QUERIES = (f"{_NAME}?", f"{_NAME}:443?x=1", f"other.test?.{_NAME}")
_FRAGMENTS = (f"{_NAME}#", f"{_NAME}:443#x", f"other.test#.{_NAME}")
_WHITE_SPACE = (
    *(" " + _NAME, _NAME + " ", _NAME + "\n", "\t" + _NAME, _NAME + "\r", "packages .example.org"),
    *(f"{_NAME} :443", f"{_NAME}: 443", f"{_NAME}:443\n", f"other.test {_NAME}", " "),
    *(_NAME + "\xa0", "\u3000" + _NAME, f"other.test\u2028{_NAME}"),
)
_CONTROLS = (
    *(f"other.test\0.{_NAME}", f"{_NAME}\0", f"other\r\n.{_NAME}", f"\x01{_NAME}"),
    *(f"{_NAME}\x1f", "packages\x7f.example.org", f"{_NAME}\x85", f"{_NAME}:443\0"),
)
_EMPTY = ("", ".", "..", ":443", ".:443", f".{_NAME}", f"{_NAME}..", "packages..example.org", "[]")
_ODD_LABELS = (
    *("a,b.example.org", "a;b.example.org", "a|b.example.org", "a$b.example.org", "a'b.example"),
    *('a"b.example', "(a).example.org", "a!b.example.org", "a=b.example.org", "~a.example.org"),
    *("-a.example.org", "a-.example.org", "www.-a.example", "-", f"{_NAME}:443,{_NAME}"),
)
_ZONES = ("fe80::1%eth0", "[fe80::1%eth0]:443", "[fe80::1%25eth0]", "fe80::1%1")
_LONG_LABEL = "l" * 64
# 60 letters, but 66 once they are encoded.
_LONG_ENCODED = "\xfc" * 60
_LONG_NAME = f"{'a.' * 126}ab"
_LONG = (
    *(_LONG_LABEL, f"{_LONG_LABEL}.example.org", f"www.{_LONG_LABEL}", f"{_LONG_ENCODED}.example"),
    *(_LONG_NAME, f"{_LONG_NAME}.", f"{_LONG_NAME}:443", "a." * 200 + "example"),
)
# Some of these are numbers to one parser or another.
_NO_PORTS = (
    *("", "0", "00", "65536", "65979", "4294967739", "-1", "-443", "+443", "+1", "4_43"),
    *("0x1bb", "443.0", "443e0", "https", "443:443", ":443", "443,80", "443-445"),
    *("\u0664\u0664\u0663", "\uff14\uff14\uff13", "44\xb3"),
)
_NO_PORTS_OF_ADDRESSES = (
    *(f"203.0.113.10:{port}" for port in ("", "0", "65536", "+1")),
    *(f"[2001:db8::1]:{port}" for port in ("", "0", "65536", "-1", "\uff14\uff14\uff13")),
)
_NO_IPV4 = (
    *("0x7f.0.0.1", "0x7f000001", "0X7F000001", "0177.0.0.1", "017700000001", "127.0.0.01"),
    *("2130706433", "127.1", "127.0.1", "203.0.113.0x0a", "0", "256.0.0.1", "203.0.113.256"),
    *("\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021", "\u2460\u2461\u2466.0.0.1"),
    *("127.0.0.\u0661", "%31%32%37.0.0.1", "0x7f.1:443", "2130706433:443"),
)
_NO_IPV6 = (
    *("2001:db8:1:2:3:4:5:6:443", "2001:db8:1:2:3:4:5:6:8443", "2001:db8::1::443"),
    *("::ffff:203.0.113.10:443", "[2001:db8:1:2:3:4:5:6:443]", "[2001:db8::1]8443"),
    *("[2001:db8::1", "2001:db8::1]", "[2001:db8::1]other.test"),
)

_TEXTS: dict[str, tuple[str, ...]] = {
    "user info": _USER_INFO,
    "a query": _QUERIES,
    "a fragment": _FRAGMENTS,
    "white space": _WHITE_SPACE,
    "a control character": _CONTROLS,
    "an empty label or host": _EMPTY,
    "a label of other characters or with a hyphen at its end": _ODD_LABELS,
    "an address with a zone": _ZONES,
    "an over-long label or name": _LONG,
    "a port that is none from 1 to 65535": (
        *(f"{_NAME}:{port}" for port in _NO_PORTS),
        *_NO_PORTS_OF_ADDRESSES,
    ),
    "an IPv4 address that is not dotted decimal": _NO_IPV4,
    "an IPv6 address with a port that is not told apart": _NO_IPV6,
}
NO_ENTRIES = tuple(WrongEntry(text, fault) for fault, texts in _TEXTS.items() for text in texts)
"""Each kind in every way that some parser reads otherwise."""

ONE_OF_EACH = (
    *(WrongEntry(texts[0], fault) for fault, texts in _TEXTS.items()),
    *SCHEME_PATH_WILDCARD[::3],
)
"""A text of each kind."""

NO_QUESTIONS = (*NO_ENTRIES, *SCHEME_PATH_WILDCARD)
"""What is neither an entry nor a question."""


NO_TEXTS = (None, 443, 1.5, True, _NAME.encode(), [_NAME], (_NAME, 443))
"""What is no text, of which some has one that is an entry."""


def _inserted(entry: Entry, bad: str, place: int) -> str:
    cut = place % (len(entry.text) + 1)
    return entry.text[:cut] + bad + entry.text[cut:]


def _of_parts(address: int, place: int) -> str:
    """Write an IPv4 address in one of the other forms that `inet_aton` reads."""
    parts = list(address.to_bytes(4, "big"))
    joined = f"{parts[0]}.{int.from_bytes(bytes(parts[1:]), 'big')}"
    forms: tuple[Callable[[], str], ...] = (
        lambda: str(address),
        lambda: hex(address),
        lambda: f"0{address:o}",
        lambda: ".".join(map(hex, parts)),
        lambda: ".".join(f"0{part:o}" for part in parts),
        lambda: joined,
        lambda: f"{parts[0]}.{parts[1]}.{parts[2] << 8 | parts[3]}",
        lambda: "".join(chr(ord(each) + 0xFEE0) for each in ".".join(map(str, parts))),
    )
    return forms[place % len(forms)]()


def _bare(host: str) -> str:
    return f"[{host}]" if ":" in host else host


_wrong_ports = st.one_of(
    st.integers(max_value=0).map(str),
    st.integers(min_value=65536).map(str),
    st.integers(1, 65535).map(lambda port: f"+{port}"),
    # Digits of other scripts, which int() reads too.
    st.integers(1, 65535).map(lambda port: "".join(chr(0x660 + int(d)) for d in str(port))),
)
no_entries = st.one_of(
    st.builds(
        lambda entry, bad, place: WrongEntry(_inserted(entry, bad[1], place), bad[0]),
        entries,
        st.sampled_from(
            [
                *(("user info", text) for text in ("@", "user@")),
                *(("a query", text) for text in ("?", "?x=1")),
                *(("a fragment", text) for text in ("#", "#x")),
                *(("white space", text) for text in (" ", "\n", "\t", "\r\n", "\xa0")),
                *(("a control character", text) for text in ("\0", "\x01", "\x7f", "\x85")),
            ]
        ),
        st.integers(0, 300),
    ),
    st.builds(
        lambda name, place: WrongEntry(name.replace(".", "..", place) + "." * place, "empty label"),
        names.filter(lambda name: "." in name),
        st.integers(1, 3),
    ),
    st.builds(
        lambda name, length: WrongEntry(f"{'l' * length}.{name}", "an over-long label"),
        names,
        st.integers(64, 200),
    ),
    st.builds(
        lambda host, port: WrongEntry(f"{_bare(host)}:{port}", "a wrong port"), hosts, _wrong_ports
    ),
    st.builds(
        lambda address, place: WrongEntry(_of_parts(address, place), "no dotted decimal IPv4"),
        st.integers(1 << 24, (1 << 32) - 1),
        st.integers(0, 7),
    ),
    st.builds(
        lambda address, port: WrongEntry(f"{address.exploded}:{port}", "eight groups and a port"),
        st.ip_addresses(v=6),
        st.integers(1, 65535),
    ),
)
"""Each built around a right entry, so that only one thing is wrong with it."""

no_questions = st.one_of(no_entries, wrong_entries)
