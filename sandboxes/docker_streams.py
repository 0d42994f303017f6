"""The two streams of a program that an engine runs, taken apart and read to a mark."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from sandboxes.output import KEPT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandboxes.docker_engine import Attached

STDOUT, STDERR = 1, 2

_HEADER = struct.Struct(">BxxxL")
# A mark is its token, a blank, a short text and a line feed; more than this is no mark.
_LONGEST_MARK = 65_536


class Frames:
    """Takes the frames apart in which an engine sends both streams through one connection."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._stream = 0
        self._left = 0

    def pieces(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Give what came of each stream, in order; frames may end in later data."""
        at = 0
        while at < len(data):
            if not self._left:
                taken = data[at : at + _HEADER.size - len(self._head)]
                self._head += taken
                at += len(taken)
                if len(self._head) == _HEADER.size:
                    self._stream, self._left = _HEADER.unpack(self._head)
                    self._head.clear()
                continue
            piece = data[at : at + self._left]
            at += len(piece)
            self._left -= len(piece)
            yield self._stream, piece


class MarkedStream:
    """One stream, with lines of ours in it that begin with a token nobody can guess.

    Args:
        token: The token.
        marks: How many such lines there will be; what comes after the last one is left out.
        kept: How many bytes are kept; the rest is counted.

    Attributes:
        data: What came between the marks.
        dropped: How many bytes came and were not kept.
        marks: The text of each mark.
    """

    def __init__(self, token: str, marks: int = 1, kept: int = KEPT_BYTES) -> None:
        self._token = token.encode()
        self._wanted = marks
        self._kept = kept
        self._tail = b""
        self.data = bytearray()
        self.dropped = 0
        self.marks: list[str] = []

    @property
    def ended(self) -> bool:
        """Whether the last mark came."""
        return len(self.marks) == self._wanted

    def feed(self, piece: bytes) -> None:
        """Take in what came."""
        rest = self._tail + piece
        self._tail = b""
        while not self.ended:
            at = rest.find(self._token)
            end = rest.find(b"\n", at) if at >= 0 else -1
            if at < 0 or (end < 0 and len(rest) - at > _LONGEST_MARK):
                # The beginning of a token may be at the end.
                sure = max(0, len(rest) - len(self._token) + 1)
                self._keep(rest[:sure])
                self._tail = rest[sure:]
                return
            if end < 0:
                self._keep(rest[:at])
                self._tail = rest[at:]
                return
            self._keep(rest[:at])
            self.marks.append(rest[at + len(self._token) : end].decode(errors="replace").strip())
            rest = rest[end + 1 :]

    def finish(self) -> None:
        """Take what looked like the beginning of a mark for output: nothing more comes."""
        self._keep(self._tail)
        self._tail = b""

    def _keep(self, piece: bytes) -> None:
        room = self._kept - len(self.data)
        self.data += piece[:room] if room < len(piece) else piece
        self.dropped += max(0, len(piece) - room)


class Streams:
    """Both streams of a program, each read to its marks.

    Args:
        token: What each mark begins with.
        marks: How many stdout will have, and how many stderr.
        kept: How many bytes of each are kept.
    """

    def __init__(self, token: str, marks: tuple[int, int] = (1, 1), kept: int = KEPT_BYTES) -> None:
        self.stdout = MarkedStream(token, marks[0], kept)
        self.stderr = MarkedStream(token, marks[1], kept)
        self._by_number = {STDOUT: self.stdout, STDERR: self.stderr}

    @property
    def ended(self) -> bool:
        """Whether both are at their ends."""
        return self.stdout.ended and self.stderr.ended

    def feed(self, number: int, piece: bytes) -> None:
        """Take in what came of one of them."""
        if number in self._by_number:
            self._by_number[number].feed(piece)


class Dialogue:
    """A connection to a program in a container: what it is told, and its streams apart."""

    def __init__(self, attached: Attached) -> None:
        self._attached = attached
        self._frames = Frames()

    def send(self, data: bytes) -> None:
        """Write to its standard input.

        Raises:
            OSError: Nobody reads it any more.
        """
        self._attached.send(data)

    def receive(self, seconds: float, streams: Streams) -> bool | None:
        """Take in what it says next; False at its end, and None where nothing came in time."""
        received = self._attached.receive(seconds)
        if not received:
            return None if received is None else False
        for number, piece in self._frames.pieces(received):
            streams.feed(number, piece)
        return True

    def close(self) -> None:
        """Hang up; the program goes on."""
        self._attached.close()
