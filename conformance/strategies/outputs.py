"""What commands write: texts whose every character matters, and bytes that are no text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hypothesis import strategies as st

# Each of these is what some way to carry text loses, changes, or trips over.
_PIECES = (
    *("a", " ", "\t", "\n", "\n\n", "\r", "\r\n", "\v", "\f", "\x1b[0m", "\x07"),
    *("\ufeff", "é", "e\u0301", "\u212b", "ﬁ", "\u2028", "\u200b", "漢", "\U0001f600", "\x7f"),
    *("\\n", "%s", "$?", "exit 3", "0", "[truncated]"),
)
texts = st.lists(st.sampled_from(_PIECES), max_size=12).map("".join)

_LONG_LINE = "0123456789abcdef" * 8192

TEXTS = (
    "",
    "x",
    "\n",
    "no end",
    " before and after \n\n",
    "one\r\ntwo\rthree\r\n",
    "\ufeffmarked\n",
    "Ame\u0301lie and Am\u00e9lie, \u212b and \u00c5\n",
    # Longer than a pipe, and than what is read at a time.
    _LONG_LINE,
    "".join(f"{number:07d} é\n" for number in range(70_000)),
)
"""One of each kind."""

data = st.one_of(
    st.binary(max_size=64),
    st.lists(
        st.sampled_from(
            (b"a", b"\n", b"\0", b"\xff", b"\x80", b"\xc3", b"\xa9", b"\xe2\x82", b"\xed\xa0\x80")
        ),
        max_size=12,
    ).map(b"".join),
)

DATA = (
    bytes(range(256)),
    b"a\0b\0",
    "naïve café".encode("latin-1"),
    b"\xe2\x82\xac\xe2\x82",
    # At an odd place of whatever is read at a time, each character of three bytes is split.
    b"x" + "€".encode() * 60_000,
)
"""One of each kind."""


def replaced(text: str) -> str:
    """A text with what was replaced in one form: how many signs stand for it is open."""
    return re.sub("\ufffd+", "\ufffd", text)


def expected(written: bytes) -> str:
    """What comes back of these bytes: UTF-8, and a sign for what is none."""
    return replaced(written.decode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two texts part, for a message."""

    wanted: str
    got: str

    def __str__(self) -> str:
        pairs = enumerate(zip(self.wanted, self.got, strict=False))
        shorter = min(len(self.wanted), len(self.got))
        place = next((number for number, (one, other) in pairs if one != other), shorter)
        wanted, got = (text[place : place + 20] for text in (self.wanted, self.got))
        sizes = f"{len(self.got)} characters of {len(self.wanted)}"
        return f"{sizes}; at {place} {got!r} in place of {wanted!r}"
