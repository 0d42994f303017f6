"""Words that a shell and all on the way to it must leave alone, and ways to write them."""

from __future__ import annotations

import re
import shlex

from hypothesis import strategies as st

_PIECES = (
    *("'", '"', "\\", "`", "$", "$HOME", "$(exit 3)", "${x}", "!", "!!", "#", ";", "&", "|", ">"),
    *("*", "?", "{a,b}", "~", "%s", "%", "\n", "\r\n", "\t", " ", "-n", "--", "EOF", "a", "\\n"),
    *("é", "e\u0301", "漢", "\U0001f600", "\u00a0", "\u2028", "\ufeff"),
)
words = st.lists(st.sampled_from(_PIECES), max_size=12).map("".join) | st.text(
    st.characters(exclude_categories=["Cc", "Cs"], include_characters="\t\n\r"), max_size=20
)

CONTROLS = tuple(map(chr, (*range(0x01, 0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0))))
"""Control characters but NUL, tab and line ends: a sandbox may refuse a command for these."""

WORDS = (
    "it's",
    'a "word" of $HOME and `x` and $(x) and \\ and \\n',
    "line\n  line\n\nline\n",
    "naïve 漢 \U0001f600 e\u0301",
    " before and after ",
    "back\\",
    "a\r\nb\tc",
    "*",
    "%s%%",
    "-n",
    "!x",
    "a !! b",
    "\ufeff",
    "a\nEOF\nb",
    "",
)
"""One of each kind."""

SHAPES = (
    *("single quotes", "double quotes", "a here-document", "a variable", "on the last line"),
    *("a space at the end", "indented lines"),
)
"""The ways in which `command` writes a word."""

_END = "END-of-the-word"


def command(shape: str, word: str, file: str) -> tuple[str, str]:
    """Give a command that puts a word written in this way into a file, and what is then in it."""
    quoted = shlex.quote(word) if word else "''"
    if shape == "single quotes":
        return f"printf '%s' {quoted} > {file}", word
    if shape == "double quotes":
        escaped = re.sub(r'([\\"$`])', r"\\\1", word)
        return f"printf '%s' \"{escaped}\" > {file}", word
    if shape == "a here-document":
        return f"cat > {file} <<'{_END}'\n{word}\n{_END}\n", f"{word}\n"
    if shape == "a variable":
        return f"x={quoted}\nprintf '%s' \"$x\" > {file}", word
    if shape == "a space at the end":
        return f"> {file} printf '%s' {quoted}\\ ", f"{word} "
    if shape == "indented lines":
        lines = f"\n  and {word}"
        return f"  x={shlex.quote(lines)}\n  printf '%s' \"$x\" > {file}", lines
    # Whatever a sandbox adds to a command must not end up in its comment.
    return f"\n\n  printf '%s' {quoted} > {file} # and a comment", word


# A single argument of a program has its bound a little above this.
LONG = 100_000


def long_command(fill: str, file: str) -> tuple[str, str]:
    """Give a command of 100 kB, and what it puts into a file: almost all of that."""
    word = fill * ((LONG - 100) // len(shlex.quote(fill).encode()))
    return f"printf '%s' {shlex.quote(word)} > {file}", word
