"""Entries of an allow list, right and wrong ones."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from conformance.oracle import HTTPS_PORT, Origin

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Entry:
    """A text of an allow list, and what it names by the way it was built."""

    text: str
    origin: Origin


LETTERS = string.ascii_lowercase
_EDGE = st.sampled_from(LETTERS + string.digits)
_labels = st.one_of(
    st.text(LETTERS, min_size=1, max_size=8),
    st.builds(
        lambda first, middle, last: first + middle + last,
        _EDGE,
        st.text(LETTERS + string.digits + "-", max_size=12),
        _EDGE,
    ),
)
# "--" in places three and four is reserved for A-labels.
plain_labels = _labels.filter(lambda label: label[2:4] != "--")
_top_labels = st.text(LETTERS, min_size=2, max_size=6)

names = st.builds(
    lambda labels, top: ".".join([*labels, top]),
    st.lists(plain_labels, min_size=1, max_size=3),
    _top_labels,
)
one_word_names = st.text(LETTERS, min_size=1, max_size=8)
"""Host names without a dot, of which each letter is one too."""

ports = st.one_of(st.sampled_from([443, 8443, 80, 22, 1, 65535]), st.integers(1, 65535))


def _written(host: str, port: int | None) -> Entry:
    shown = f"[{host}]" if ":" in host else host
    text = shown if port is None else f"{shown}:{port}"
    return Entry(text, Origin(host, HTTPS_PORT if port is None else port))


hosts = st.one_of(
    names,
    st.ip_addresses(v=4).map(str),
    # The text of a mapped address is not the same everywhere.
    st.ip_addresses(v=6).map(str).filter(lambda text: not text.startswith("::ffff:")),
)
"""Host names, IPv4 and IPv6 addresses, in normal form."""

entries = st.builds(_written, hosts, st.one_of(st.none(), ports))
"""Right entries in canonical spelling."""

HOSTS = ("packages.example.org", "203.0.113.10", "2001:db8::1")
"""One of each kind of host."""

ENTRIES = (
    *(_written(host, port) for host in HOSTS for port in (None, 1, 8443, 65535)),
    _written("localhost", 8000),
    _written("7-zip.xn--bcher-kva.example", None),
    # As long as a label and a name can be.
    _written(f"{'l' * 63}.example.org", None),
    _written(f"{'a.' * 126}b", 8443),
)
"""One of each kind of right entry."""

MIXED_ENTRIES = tuple(
    _written(host, port)
    for host, port in (("first.example.org", 8443), ("second.example", None), ("third.test", 22))
)
"""Names of which each has a port of its own."""

_long_names = st.builds(
    lambda first, rest: f"{first}.{rest}", st.text(LETTERS, min_size=2, max_size=6), names
)
long_name_entries = st.builds(_written, _long_names, st.one_of(st.none(), ports))
"""Right entries of which every look-alike is a right entry too."""

name_entries = st.builds(_written, names, st.one_of(st.none(), ports))
"""Right entries that hold a name."""


@dataclass(frozen=True, slots=True)
class WrongEntry:
    """A text that is no entry, and what is wrong with it."""

    text: str
    fault: str


_SCHEMES = ("https", "http", "ftp", "HTTPS", "git+ssh", "file")
_PATHS = ("/", "/index", "/a/b", "//", "/*")


def _with_wildcard(entry: Entry, place: int) -> str:
    host, colon, port = entry.text.partition(":")
    labels = host.split(".")
    wild: tuple[Callable[[], str], ...] = (
        lambda: "*." + host,
        lambda: ".".join(["*", *labels[1:]]),
        lambda: "*" + host,
        lambda: host + "*",
        lambda: ".".join([*labels[:-1], "*"]),
        lambda: "*",
        lambda: "**." + host,
    )
    return wild[place % len(wild)]() + colon + port


wrong_entries = st.one_of(
    st.builds(
        lambda scheme, entry: WrongEntry(f"{scheme}://{entry.text}", "scheme"),
        st.sampled_from(_SCHEMES),
        entries,
    ),
    st.builds(
        lambda entry, path: WrongEntry(entry.text + path, "path"), entries, st.sampled_from(_PATHS)
    ),
    st.builds(
        lambda entry, place: WrongEntry(_with_wildcard(entry, place), "wildcard"),
        name_entries,
        st.integers(0, 6),
    ),
)
"""Texts with a scheme, a path or a wildcard, each built around a right entry."""

SCHEME_PATH_WILDCARD = (
    *(WrongEntry(f"{scheme}://packages.example.org", "scheme") for scheme in ("https", "http")),
    *(WrongEntry(f"packages.example.org{path}", "path") for path in ("/", "/a/b", ":443/a")),
    *(WrongEntry(text, "wildcard") for text in ("*", "*.example.org", "packages.*.org")),
    WrongEntry("https://packages.example.org:443/a", "scheme"),
)
"""One of each kind that the documents name."""
