"""What background processes write, in which pieces, and from where it is read."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st


@dataclass(frozen=True, slots=True)
class Written:
    """Output in pieces, and where a later reader begins.

    Attributes:
        pieces: What is written at once, in bytes; a piece may end within a character.
        start: Which character a reader that comes later begins with.
    """

    pieces: tuple[bytes, ...]
    start: int

    @property
    def data(self) -> bytes:
        """All of it."""
        return b"".join(self.pieces)


def _cut(text: str, length: int, start: int) -> Written:
    data = text.encode()
    pieces = [data[at : at + length] for at in range(0, len(data), length)]
    return Written(tuple(pieces), start % max(1, len(text)))


written = st.builds(
    _cut,
    st.text("a\u00e9\u20ac\U0001f600\r\n", min_size=1, max_size=60),
    st.integers(1, 9),
    st.integers(0, 59),
)

WRITTEN = (
    # Several answers long, with characters of three bytes across every edge.
    _cut("\u20aca" * 9_000, 4_099, 17_000),
    # What is no text is longer when it is encoded again.
    Written((b"one \xff\xfe two \xc3", b"\xa9 three\xff\r\n", b"four"), 0),
)
