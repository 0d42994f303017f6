"""What files hold and what they are called: bytes, overwrites that shrink, awkward names."""

from __future__ import annotations

import gzip

from hypothesis import strategies as st

contents = st.binary(max_size=300)

CONTENTS = (
    bytes(range(256)),
    b"\xef\xbb\xbfone\r\ntwo\rthree\x00\n\n",
    # Both forms of one letter, and what a shell, printf or a template would take for its own.
    "\u00e9e\u0301 100%s %d $HOME `id` !! \\n \\\\ \\x41 '\"\t{}".encode(),
    b"no final line feed",
    gzip.compress(b"packed, and to stay so", mtime=0),
    b"",
)
"""One of each kind that a path made for text changes."""

LENGTHS = (1, 127 * 1024, 129 * 1024, 3 * 1024 * 1024, 10_000_000)
"""Around the longest argument of a Linux command, and up to the largest file of the contract."""

overwrites = st.tuples(st.binary(min_size=1, max_size=100), st.binary(max_size=100)).map(
    lambda pair: (max(pair, key=len), min(pair, key=len))
)
"""A content, and one that is not longer."""

_PARTS = st.text(
    # No control or format characters, which a sandbox may refuse in a name.
    st.characters(categories=("L", "M", "N", "P", "S", "Zs"), exclude_characters="/"),
    min_size=1,
    max_size=40,
).filter(lambda name: name not in (".", ".."))

names = st.lists(_PARTS, min_size=1, max_size=3).map("/".join)

NAMES = (
    " space around ",
    "-n",
    "~",
    "$HOME",
    "*",
    "back\\slash",
    'quote\'s "and" `tick`',
    "%41;x&y|z#",
    "...",
    "\u00e9\u4e2d\U0001f600",
    "many/parents/that/are/missing/-rf/file",
    "n" * 255,
)
"""Names that a shell, a URL, a template or a tidy mind takes for something else."""

FIRST = ("-n", "--", "~", "~root", "C:name", "@name", "#name", "[x]")
"""Names that a path may begin with, which is where some programs look for their own signs."""

ALIKE = (
    *("name", "Name", " name", "name ", "e\u0301", "\u00e9", "a+b", "a b", "a%20b", "name."),
    *("C:name", "n?me", "na*", "[n]ame", "[!a]ame"),
)
"""Names of one folder that are files of their own."""
