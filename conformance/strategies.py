"""What is generated: entries, look-alikes of their names, URLs, scripts.

Strategies draw plain data. What needs a site of the laboratory is drawn as a recipe
(a `LookAlike`, a `Split`) that the check applies to the names of fresh sites.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from hypothesis import example
from hypothesis import strategies as st

from conformance.oracle import HTTPS_PORT, Origin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

F = TypeVar("F", bound="Callable[..., None]")


def each(name: str, values: Iterable[object]) -> Callable[[F], F]:
    """Make a generated check try each of these values as well, whatever its profile.

    For spaces that are small and where each point is a way to be wrong of its own.

    Args:
        name: The argument that takes the values.
        values: The values; the other arguments of the check are none or have one value.
    """

    def decorate(check: F) -> F:
        for value in reversed(list(values)):
            check = example(**{name: value})(check)
        return check

    return decorate


# --- entries of an allow list ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Entry:
    """A text of an allow list, and what it names by the way it was built."""

    text: str
    origin: Origin


_LETTERS = string.ascii_lowercase
_EDGE = st.sampled_from(_LETTERS + string.digits)
_labels = st.one_of(
    st.text(_LETTERS, min_size=1, max_size=8),
    st.builds(
        lambda first, middle, last: first + middle + last,
        _EDGE,
        st.text(_LETTERS + string.digits + "-", max_size=12),
        _EDGE,
    ),
)
# "--" in places three and four is reserved for A-labels.
plain_labels = _labels.filter(lambda label: label[2:4] != "--")
_top_labels = st.text(_LETTERS, min_size=2, max_size=6)

names = st.builds(
    lambda labels, top: ".".join([*labels, top]),
    st.lists(plain_labels, min_size=1, max_size=3),
    _top_labels,
)
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

ENTRIES = tuple(
    _written(host, port)
    for host in ("packages.example.org", "203.0.113.10", "2001:db8::1")
    for port in (None, 1, 8443, 65535)
)
"""One of each kind of right entry."""

MIXED_ENTRIES = tuple(
    _written(host, port)
    for host, port in (("first.example.org", 8443), ("second.example", None), ("third.test", 22))
)
"""Names of which each has a port of its own."""

_long_names = st.builds(
    lambda first, rest: f"{first}.{rest}", st.text(_LETTERS, min_size=2, max_size=6), names
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


# --- names that only look like a listed one ---------------------------------------

# Cyrillic letters that are drawn like Latin ones.
_HOMOGRAPHS = {"a": "\u0430", "c": "\u0441", "e": "\u0435", "o": "\u043e", "p": "\u0440"}


def _homograph(name: str, _: str) -> str:
    label, _dot, rest = name.partition(".")
    drawn = "".join(_HOMOGRAPHS.get(letter, letter) for letter in label)
    if drawn == label:
        drawn = "\u043e" + label
    return f"xn--{drawn.encode('punycode').decode('ascii')}.{rest}"


def _next_letter(name: str, _: str) -> str:
    last = name[0]
    return chr(ord(last) + 1 if last not in "z9" else ord(last) - 1) + name[1:]


_LOOK_ALIKES: dict[str, Callable[[str, str], str]] = {
    "sub-domain": lambda name, word: f"{word}.{name}",
    "prefix": lambda name, word: word + name,
    "prefix with hyphen": lambda name, word: f"{word}-{name}",
    "prefix with underscore": lambda name, word: f"{word}_{name}",
    "prefix with digit": lambda name, _: f"1{name}",
    "suffix": lambda name, word: name + word,
    "listed name as sub-domain": lambda name, word: f"{name}.{word}.test",
    "listed name inside": lambda name, word: f"{word}-{name}-{word}.{word}.test",
    "super-domain": lambda name, _: name.partition(".")[2],
    "other top-level domain": lambda name, word: f"{name.rpartition('.')[0]}.{word}x",
    "hyphen for dot": lambda name, _: name.replace(".", "-", 1),
    "dot left out": lambda name, _: name.replace(".", "", 1),
    "dot added": lambda name, _: f"{name[0]}.{name[1:]}",
    "neighbouring letter": _next_letter,
    "first letter left out": lambda name, _: name[1:],
    "homograph": _homograph,
}


@dataclass(frozen=True, slots=True)
class LookAlike:
    """A way to make another name out of a listed one.

    Attributes:
        kind: Which way.
        word: What it adds, where it adds something.
        position: Which of three listed names is taken.
    """

    kind: str
    word: str
    position: int = 1

    def of(self, name: str) -> str:
        """Give the other name; `name` begins with a label of two letters or more."""
        return _LOOK_ALIKES[self.kind](name, self.word)


def look_alikes_with(word: str) -> tuple[LookAlike, ...]:
    """Give one of each kind; `word` goes into those that add something."""
    return tuple(LookAlike(kind, word) for kind in _LOOK_ALIKES)


LOOK_ALIKES = (
    *look_alikes_with("evil"),
    # Entries joined to one pattern are anchored at its ends alone.
    *(LookAlike(kind, "evil", 0) for kind in ("suffix", "listed name as sub-domain")),
    *(LookAlike(kind, "evil", 2) for kind in ("prefix", "sub-domain")),
)

look_alikes = st.builds(
    LookAlike,
    st.sampled_from(list(_LOOK_ALIKES)),
    st.text(_LETTERS, min_size=1, max_size=3),
    st.integers(0, 2),
)


@dataclass(frozen=True, slots=True)
class NearAddress:
    """A listed address, and another one that is like it."""

    listed: str
    other: str


# Public ones, beside those that the laboratory gives to its sites.
NEAR_ADDRESSES = tuple(
    NearAddress(listed, other)
    for listed, others in {
        "11.90.3.25": ("11.90.3.2", "11.90.3.251", "1.90.3.25", "11.90.3.26", "11.90.4.25"),
        "2a11:90::25": ("2a11:90::2", "2a11:90::251", "2a11:90::26", "2a11:91::25"),
    }.items()
    for other in others
)
"""A digit more, a digit less, and neighbours in the same network and in the next."""

near_addresses = st.builds(
    lambda third, last: NearAddress(f"11.90.{third}.{last}", f"11.90.{third}.{last * 10 + 1}"),
    st.integers(1, 254),
    st.integers(2, 25),
)


# --- URLs that two parsers read differently ---------------------------------------

_SPLITS: dict[str, str] = {
    "user info": "https://{listed}@{other}{path}",
    "user info and port": "https://{listed}:443@{other}{path}",
    "user info with slash": "https://{listed}%2f@{other}{path}",
    "user info twice": "https://{listed}@{listed}@{other}{path}",
    "reversed user info": "https://{other}{path}@{listed}/",
    "query": "https://{other}{path}?https://{listed}/",
    "query before user info": "https://{other}?@{listed}{path}",
    "fragment": "https://{other}{path}#{listed}",
    "fragment before user info": "https://{other}#@{listed}{path}",
    "port and fragment": "https://{other}:443#@{listed}{path}",
    "backslash before at": "https://{other}\\@{listed}{path}",
    "backslash after listed": "https://{listed}\\@{other}{path}",
    "backslashes for slashes": "https:\\\\{other}\\@{listed}{path}",
    "one slash": "https:/{other}{path}",
    "no slash": "https:{other}{path}",
    "three slashes": "https:///{other}{path}",
    "encoded NUL": "https://{other}%00.{listed}{path}",
    "encoded NUL after listed": "https://{listed}%00.{other}{path}",
    "encoded dot": "https://{listed}%2e{other}{path}",
    "encoded at": "https://{listed}%40{other}{path}",
    "encoded slash": "https://{other}%2f.{listed}{path}",
    "encoded hash": "https://{other}%23.{listed}{path}",
    "encoded backslash": "https://{other}%5c.{listed}{path}",
    "double encoding": "https://{other}%252f@{listed}{path}",
    "tab": "https://{other}\t.{listed}{path}",
    "line feed": "https://{other}\n.{listed}{path}",
    "carriage return": "https://{other}\r\n@{listed}{path}",
    "space": "https://{other} .{listed}{path}",
    "space before at": "https://{listed} @{other}{path}",
    "semicolon": "https://{other};{listed}{path}",
    "comma": "https://{listed},{other}{path}",
    "upper case": "HTTPS://{OTHER}{path}",
    "trailing dot": "https://{other}.{path}",
    "full-width dot": "https://{listed}\uff0e{other}{path}",
    "full-width at": "https://{listed}\uff20{other}{path}",
    "full-width slash": "https://{other}\uff0f.{listed}{path}",
    "brackets": "https://[{other}]{path}",
    "bracket before at": "https://[{listed}]@{other}{path}",
    "dot segment": "https://{listed}/../../{other}{path}",
    "scheme twice": "https://https://{other}{path}",
    "listed scheme": "https://{other}{path}/https://{listed}/",
    "dollar": "https://{listed}$@{other}{path}",
    "colon": "https://{listed}:@{other}{path}",
    "port of words": "https://{listed}:{other}{path}",
    "bare host": "{other}{path}",
}


@dataclass(frozen=True, slots=True)
class Split:
    """A URL that holds a listed and another host so that parsers may disagree."""

    kind: str

    def url(self, *, listed: str, other: str, path: str) -> str:
        """Write it out; `path` begins with a slash."""
        text = _SPLITS[self.kind]
        return text.format(listed=listed, other=other, OTHER=other.upper(), path=path)


SPLITS = tuple(Split(kind) for kind in _SPLITS)

splits = st.sampled_from(SPLITS)


# --- small scripts ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Script:
    """A command that any shell runs alike, and what it must show."""

    text: str
    stdout: tuple[str, ...]
    stderr: tuple[str, ...]
    exit_code: int | None
    """None stands for any code but zero."""


_words = st.text(string.ascii_letters + string.digits, min_size=1, max_size=10)
_LAST: dict[str, int | None] = {
    "": 0,
    "true": 0,
    "false": 1,
    "no-such-command-anywhere": None,
    "cat /no/such/file": None,
    "(exit 3)": 3,
}
_endings = st.one_of(
    st.sampled_from(list(_LAST.items())),
    st.integers(0, 255).map(lambda code: (f"exit {code}", code)),
)


def _script(
    lines: list[tuple[str, bool]], ending: tuple[str, int | None], separator: str = "; "
) -> Script:
    # No word of one stream is a word of the other.
    told = [(f"err-{word}" if to_stderr else f"out-{word}", to_stderr) for word, to_stderr in lines]
    statements = [
        f"printf '%s\\n' {word}" + (" >&2" if to_stderr else "") for word, to_stderr in told
    ]
    last, code = ending
    return Script(
        text=separator.join([*statements, last] if last else statements) or "true",
        stdout=tuple(word for word, to_stderr in told if not to_stderr),
        stderr=tuple(word for word, to_stderr in told if to_stderr),
        exit_code=code,
    )


scripts = st.builds(
    _script,
    st.lists(st.tuples(_words, st.booleans()), max_size=4),
    _endings,
    st.sampled_from(["; ", "\n"]),
)

_BOTH = [("first", False), ("second", True)]
SCRIPTS = (
    _script(_BOTH, ("exit 5", 5)),
    _script(_BOTH, ("exit 6", 6), "\n"),
    # It takes longer than a caller that only looks once would wait.
    Script("sleep 1; printf 'late\\n'; exit 7", ("late",), (), 7),
    # What shells and time limits use themselves, and what is negative in eight bits.
    *(_script([], (f"exit {code}", code)) for code in (124, 126, 127, 128, 200, 255)),
    # No shell can read these.
    *(Script(text, (), (), None) for text in ("if", "(", "'")),
)
"""One of each kind of ending."""
