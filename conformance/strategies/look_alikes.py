"""Names and addresses that only look like a listed one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from conformance.strategies.hosts import LETTERS

if TYPE_CHECKING:
    from collections.abc import Callable

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
    st.text(LETTERS, min_size=1, max_size=3),
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
