"""What a header binding may be made of, and what it must refuse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from conformance.strategies import hosts

if TYPE_CHECKING:
    from collections.abc import Mapping

FIELDS: Mapping[str, str] = {
    "host": "packages.example.org",
    "header": "X-Api-Key",
    "secret_name": "key",
    "path_prefix": "/v1/",
    "prefix": "Bearer ",
    "suffix": "",
}
"""Fields that are right, each."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """A field that is not right among others that are.

    Attributes:
        field: Its name.
        text: What it holds.
    """

    field: str
    text: str

    @property
    def fields(self) -> dict[str, Any]:
        """All fields of the binding."""
        return {**FIELDS, self.field: self.text}


WRONG = (
    *(
        Wrong("host", text)
        for text in ("", "*", "*.example.org", "https://example.org", "example.org/v1", "a b")
    ),
    *(Wrong("host", text) for text in ("user@example.org", "example.org:0", "example.org:65536")),
    *(Wrong("header", text) for text in ("", " ", "X Key", "X-Key:", ":path", "X-Key\r\nX-Other")),
    *(Wrong("header", text) for text in ("X-K\xe9y", "X-Key\0", "X(Key)", 'X"Key"', "X-Key ")),
    *(Wrong("path_prefix", text) for text in ("", "v1", "./v1", "*", "https://example.org/v1")),
    *(
        Wrong(field, f"{start}{mark}{end}")
        for field, start in (("path_prefix", "/v1"), ("prefix", "a"), ("suffix", "a"))
        for mark in ("\r", "\n", "\0", "\r\n")
        for end in ("", "X-Other: 1")
    ),
)
"""One of each way to be wrong."""

_token = st.from_regex(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,24}", fullmatch=True)
_line = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=16)
_marks = st.sampled_from("\r\n\0")

wrong = st.one_of(
    st.builds(
        lambda token, bad, place: Wrong("header", token[:place] + bad + token[place:]),
        _token,
        st.sampled_from('\0\t\n\r "(),/:;<=>?@[\\]{}\x7f\xe9\u212a'),
        st.integers(0, 24),
    ),
    st.builds(
        lambda field, start, mark, end: Wrong(
            field, ("/" if field == "path_prefix" else "") + start + mark + end
        ),
        st.sampled_from(("path_prefix", "prefix", "suffix")),
        _line,
        _marks,
        _line,
    ),
    st.builds(Wrong, st.just("path_prefix"), _line.filter(lambda text: text[:1] != "/")),
)
"""Header names with a character that no token has, texts of several lines, bare prefixes."""

right = st.fixed_dictionaries(
    {
        "host": hosts.entries.map(lambda entry: entry.text),
        "header": _token,
        "secret_name": st.text("abcXYZ019-_.", min_size=1, max_size=12),
        "path_prefix": st.from_regex(r"/([a-z0-9._~-]{1,6}/?){0,3}", fullmatch=True).filter(
            lambda text: "/." not in text
        ),
        "prefix": _line,
        "suffix": _line,
    }
)
"""Bindings that are right."""

NO_LIFETIMES: tuple[object, ...] = (0, -1, -3600, 0.5, 3600.0, True, "60", None, float("inf"))
"""Lifetimes that are none."""

no_lifetimes = st.one_of(st.integers(max_value=0), st.floats(), st.text(max_size=4))
"""Numbers that are not positive or not whole, and texts."""

lifetimes = st.integers(1, 10**6)
"""Whole seconds."""
