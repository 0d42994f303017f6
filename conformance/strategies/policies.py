"""Allow lists of any size, order and spelling, and the targets that commands try under them.

All of it is said of numbered hosts, which a check takes from the laboratory: what is
listed and what is wanted then differ in one thing or another, and in nothing by accident.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from hypothesis import strategies as st

from conformance.oracle import HTTPS_PORT, PRIVATE_IPV4, Origin, is_private

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Naming = Literal["name", "IPv4", "IPv6"]
Kin = Literal[
    "itself", "sub-domain", "sibling", "longer", "extended", "numbers", "hexadecimal", "umlaut",
    "sharp s", "double s", "long", "twin",
]  # fmt: skip
EntrySpelling = Literal["plain", "port", "upper", "dot", "U-label", "exploded"]
UrlSpelling = Literal["plain", "port", "upper", "dot", "exploded", "decimal"]
Among = Literal["before", "behind", "around"]
CANONICAL: tuple[UrlSpelling, ...] = ("plain", "port")

_KIN: dict[Kin, str] = {
    "itself": "{name}",
    "sub-domain": "shop.{name}",
    "sibling": "mail.{name}",
    "longer": "my{name}",
    "extended": "{name}x",
    # Names that begin as private addresses do.
    "numbers": "10.{name}",
    "hexadecimal": "fd00.{name}",
    "umlaut": "xn--bcher-kva.{name}",
    # Older rules took the one for the other.
    "sharp s": "xn--strae-oqa.{name}",
    "double s": "strasse.{name}",
    # Names that differ behind as many characters as a table of names may hold.
    "long": "l" * 63 + ".{name}",
    # Another name of the very address.
    "twin": "twin-{name}",
}
MOST_ENTRIES = 260


def name_of(kin: Kin, name: str) -> str:
    """Give the name of a relative of a host."""
    return _KIN[kin].format(name=name)


@dataclass(frozen=True, slots=True)
class Spot:
    """Something that an entry can name and a request can go to."""

    host: int = 0
    kin: Kin = "itself"
    by: Naming = "name"
    port: int = HTTPS_PORT

    def __str__(self) -> str:
        by = "" if self.by == "name" else f" by {self.by}"
        port = "" if self.port == HTTPS_PORT else f":{self.port}"
        return f"{self.kin} {self.host}{by}{port}"


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of an allow list."""

    spot: Spot
    spelling: EntrySpelling = "plain"

    def text(self, origin: Origin) -> str:
        """Write it; what this kind of host has no such spelling for is written plainly."""
        host, colon = origin.host, ":" in origin.host
        port = "" if origin.port == HTTPS_PORT else f":{origin.port}"
        if self.spelling == "upper":
            host = host.upper()
        elif self.spelling == "exploded" and colon:
            host = ipaddress.IPv6Address(host).exploded
        elif self.spelling == "U-label":
            host = _unicode(host)
        elif self.spelling == "dot" and self.spot.by == "name":
            host += "."
        elif self.spelling == "port":
            port = f":{origin.port}"
        return (f"[{host}]" if colon else host) + port

    def __str__(self) -> str:
        return f"{self.spot}{_with(self.spelling)}"


def _with(spelling: str) -> str:
    return "" if spelling == "plain" else f" ({spelling})"


def _unicode(name: str) -> str:
    return ".".join(
        label[4:].encode().decode("punycode") if label.startswith("xn--") else label
        for label in name.split(".")
    )


@dataclass(frozen=True, slots=True)
class Target:
    """A request, and the session that it is made in."""

    spot: Spot
    spelling: UrlSpelling = "plain"
    scheme: Literal["https", "http"] = "https"
    session: int = 0

    @property
    def is_canonical(self) -> bool:
        """Whether its URL is written as people do."""
        return self.spelling in CANONICAL

    def authority(self, origin: Origin) -> str:
        """Write the host and port of its URL."""
        host, colon = origin.host, ":" in origin.host
        default = HTTPS_PORT if self.scheme == "https" else 80
        port = "" if origin.port == default and self.spelling != "port" else f":{origin.port}"
        if self.spelling == "upper":
            host = host.upper()
        elif self.spelling == "exploded" and colon:
            host = ipaddress.IPv6Address(host).exploded
        elif self.spelling == "decimal" and self.spot.by == "IPv4":
            host = str(int(ipaddress.IPv4Address(host)))
        elif self.spelling == "dot" and not colon:
            host += "."
        return (f"[{host}]" if colon else host) + port

    def __str__(self) -> str:
        scheme = "" if self.scheme == "https" else f"{self.scheme} to "
        session = " in the second" if self.session else ""
        return f"{scheme}{self.spot}{_with(self.spelling)}{session}"


@dataclass(frozen=True, slots=True)
class Case:
    """One or two allow lists, a session under each, and what is tried in them, in this order.

    Attributes:
        lists: What each session lists.
        targets: What is tried.
        others: How many more entries each list has, which nobody goes to.
        place: Where those stand.
    """

    lists: tuple[tuple[Entry, ...], ...]
    targets: tuple[Target, ...]
    others: int = 0
    place: Among = "around"

    def spots(self) -> Iterable[Spot]:
        """Give everything that it speaks of."""
        yield from (entry.spot for entries in self.lists for entry in entries)
        yield from (target.spot for target in self.targets)

    def texts(self, written: list[str]) -> list[str]:
        """Give a whole list: these entries and those that nobody goes to."""
        others = unused(self.others)
        cut = {"before": len(others), "behind": 0, "around": len(others) // 2}[self.place]
        return [*others[:cut], *written, *others[cut:]]

    def _repr_pretty_(self, printer: object, cycle: bool) -> None:
        # Hypothesis' own would take a page of a certificate.
        printer.text(repr(str(self)))  # type: ignore[attr-defined]  # of Hypothesis' private type

    def __str__(self) -> str:
        lists = "; by the second: ".join(", ".join(map(str, entries)) for entries in self.lists)
        others = f", {self.others} others {self.place}" if self.others else ""
        return f"listed: {lists}{others}; tried: {', '.join(map(str, self.targets))}"


def _other(number: int) -> str:
    return (
        f"other-{number}.example",
        f"11.91.{number // 4}.7",
        f"Other-{number}.Example.:8443",
        f"[2a11:91::{number:x}]:8443",
    )[number % 4]


def unused(count: int) -> list[str]:
    """Give entries that nobody goes to, of each kind in turn."""
    return [_other(number) for number in range(count)]


# The laboratory answers HTTPS at the first two; at the others the packet is seen. No
# port has a meaning of its own here: what filters think of those is asked elsewhere.
_ports = st.one_of(
    st.sampled_from((HTTPS_PORT, HTTPS_PORT, 8443)),
    st.sampled_from((5432, 18443, 65535)),
    st.integers(10000, 65535),
)
_hosts = st.integers(0, 2)
_places: st.SearchStrategy[Among] = st.sampled_from(get_args(Among))
_by: st.SearchStrategy[Naming] = st.sampled_from(get_args(Naming))
_kin: st.SearchStrategy[Kin] = st.sampled_from(get_args(Kin))
_listed_kin = _kin.filter(lambda kin: kin != "twin")  # its certificate is the other name's

_listed_spots = st.one_of(
    st.builds(Spot, _hosts, _listed_kin, st.just("name"), _ports),
    st.builds(Spot, _hosts, st.just("itself"), _by, _ports),
)
_entries = st.builds(Entry, _listed_spots, st.sampled_from(get_args(EntrySpelling)))
_lists = st.lists(_entries, min_size=1, max_size=4).map(tuple)


def _changed(spot: Spot) -> st.SearchStrategy[Spot]:
    """Spots that differ from this one in one thing."""
    return st.one_of(
        _ports.map(lambda port: replace(spot, port=port)),
        _kin.map(lambda kin: replace(spot, kin=kin, by="name")),
        _by.map(lambda by: replace(spot, by=by, kin="itself")),
        _hosts.map(lambda host: replace(spot, host=host)),
    )


@st.composite
def _cases(draw: st.DrawFn) -> Case:
    lists = tuple(draw(st.lists(_lists, min_size=1, max_size=2)))
    listed = st.sampled_from([entry.spot for entries in lists for entry in entries])
    spots = st.one_of(listed, listed.flatmap(_changed))
    secure = st.builds(
        Target,
        spots,
        st.sampled_from(get_args(UrlSpelling)),
        st.just("https"),
        st.integers(0, len(lists) - 1),
    )
    plain = listed.map(
        lambda spot: Target(
            replace(spot, port=80 if spot.port == HTTPS_PORT else 8080), "plain", "http"
        )
    )
    targets = draw(st.lists(st.one_of(secure, secure, secure, plain), min_size=2, max_size=6))
    others = draw(st.sampled_from((0, 1, 10, 46)))
    place = draw(_places)
    return Case(lists, tuple(targets), others, place)


cases = _cases()

_A, _B, _C = (Spot(number) for number in range(3))
_NEAR_A = (
    *(replace(_A, kin=kin) for kin in get_args(Kin)[1:]),
    *(replace(_A, by=by) for by in get_args(Naming)[1:]),
    *(replace(_A, port=port) for port in (8443, 4430, 44)),
    _B,
)


def _lists_of(*lists: Iterable[Spot | Entry]) -> tuple[tuple[Entry, ...], ...]:
    return tuple(
        tuple(one if isinstance(one, Entry) else Entry(one) for one in entries) for entries in lists
    )


def _tried(*spots: Spot | Target) -> tuple[Target, ...]:
    return tuple(one if isinstance(one, Target) else Target(one) for one in spots)


_SPELLED = (
    Entry(_A, "upper"),
    Entry(_B, "dot"),
    Entry(_C, "port"),
    Entry(replace(_A, kin="umlaut"), "U-label"),
    Entry(replace(_C, kin="sharp s"), "U-label"),
    Entry(replace(_B, kin="numbers", port=8443), "dot"),
    Entry(replace(_B, kin="hexadecimal"), "upper"),
    Entry(replace(_A, by="IPv6"), "upper"),
    Entry(replace(_B, by="IPv6", port=8443), "exploded"),
)

CASES = (
    # What is near a listed name, and the listed one before, between and after it.
    Case(
        _lists_of([_C, _A]),
        _tried(
            _A, *_NEAR_A[:6], _A, Target(replace(_A, port=80), "plain", "http"), *_NEAR_A[6:], _A
        ),
    ),
    # Addresses are listed and their names are tried, and other ports.
    Case(
        _lists_of(
            [replace(_A, by="IPv4"), replace(_B, by="IPv6", port=8443), replace(_C, port=8443)]
        ),
        _tried(
            replace(_A, by="IPv4"),
            _A,
            replace(_A, by="IPv4", port=8443),
            replace(_A, by="IPv6"),
            replace(_B, by="IPv6"),
            replace(_B, by="IPv6", port=8443),
            replace(_B, port=8443),
            _C,
            replace(_C, port=8443),
            Target(replace(_A, by="IPv4"), "decimal"),
            Target(replace(_B, by="IPv4"), "decimal"),
        ),
    ),
    # Each kind of spelling in the list.
    Case(
        (_SPELLED,),
        _tried(
            *(Target(entry.spot, CANONICAL[at % 2]) for at, entry in enumerate(_SPELLED)),
            replace(_C, kin="double s"),
        ),
    ),
    # As many entries as there may be, the one that is tried behind them all.
    Case(_lists_of([_A]), _tried(_B, _A), MOST_ENTRIES - 1, "before"),
    # Entries that hold one another.
    Case(
        _lists_of(
            [_A, *(replace(_A, kin=kin) for kin in ("sub-domain", "longer", "long"))],
        ),
        _tried(
            *(replace(_A, kin=kin) for kin in ("sibling", "sub-domain", "extended", "longer")),
            *(replace(_B, kin="long"), replace(_A, kin="long"), _A),
        ),
    ),
    # Ports of five digits, some of their digits, and two ports of one host.
    Case(
        _lists_of([replace(_A, port=18443), _A, replace(_B, port=65535), replace(_C, port=44310)]),
        _tried(
            replace(_A, port=18443),
            _A,
            replace(_B, port=65535),
            _C,
            replace(_A, port=8443),
            replace(_A, port=1844),
        ),
    ),
    # Another session beside: what it lists, what it refused, and its end.
    Case(
        _lists_of([_A], [_B, _C]),
        _tried(
            *(_A, _B, Target(_B, session=1), Target(_A, session=1)),
            *(_A, _B, Target(_C, session=1)),
            *(_A, _B, _C),
        ),
    ),
    # URLs that are spelled oddly.
    Case(
        _lists_of([_A, replace(_B, by="IPv6")]),
        _tried(
            *(
                Target(replace(_A, port=port), spelling)
                for spelling in ("upper", "dot")
                for port in (HTTPS_PORT, 8443)
            ),
            *(Target(_C, spelling) for spelling in ("upper", "dot", "port")),
            *(Target(replace(_B, by="IPv6", port=port), "exploded") for port in (HTTPS_PORT, 8443)),
            Target(replace(_C, by="IPv6"), "exploded"),
        ),
    ),
)
"""Each has ways to be wrong of its own."""


def _beside(first: str, last: str) -> Iterator[str]:
    """Public addresses right outside of a range; none that looks like a network or broadcast."""
    low, high = (int(ipaddress.IPv4Address(end)) for end in (first, last))
    for number in (low - 2, high + 2):
        if 0 < number < 2**32 and not is_private(near := str(ipaddress.IPv4Address(number))):
            yield near


# No loopback and no multicast: what cannot be another machine's is asked elsewhere.
_RANGES = tuple(
    ends for ends in PRIVATE_IPV4 if ends[0].split(".")[0] not in ("0", "127", "224", "240")
)
PUBLIC = (*(near for ends in PRIVATE_IPV4 for near in _beside(*ends)), "2003::2", "2001:200::2")
"""Neighbours of private ranges."""
PRIVATE = (*(end for ends in _RANGES for end in ends), "fc00::1", "fdff::1")
"""Both ends of private ranges."""


def _near(ends: tuple[str, str]) -> st.SearchStrategy[str]:
    low, high = (int(ipaddress.IPv4Address(end)) for end in ends)
    return st.integers(low - 2**16, high + 2**16).map(
        lambda number: str(ipaddress.IPv4Address(number))
    )


addresses = st.one_of(
    st.sampled_from(PUBLIC + PRIVATE),
    st.sampled_from(_RANGES).flatmap(_near),
).filter(lambda text: is_private(text) or ipaddress.ip_address(text).is_global)
"""Private addresses, and those beside private ranges."""
