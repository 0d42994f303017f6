"""What a command wrote: drained at once, kept up to a bound, and read as text."""

from __future__ import annotations

import asyncio
import codecs
import os
from typing import TYPE_CHECKING

from sandboxes.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Sequence

KEPT_BYTES = 64 * 1024 * 1024
"""Of each stream; what comes after these is counted and dropped, so that a flood ends."""

_PIECE = 65_536
# Between two pieces that nobody wants: a flood in the background has no whole processor.
_REST_SECONDS = 0.01
# No pipe holds more, unless an administrator raised the system's bound.
_LARGEST_PIPE = 1024 * 1024


def decoded(data: bytes) -> str:
    """Read bytes as UTF-8, replacing what is none."""
    # In pieces, because each holds the interpreter lock, and so the event loop.
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    pieces = [decoder.decode(data[at : at + _PIECE]) for at in range(0, len(data), _PIECE)]
    return "".join([*pieces, decoder.decode(b"", final=True)])


async def decoded_both(stdout: bytes, stderr: bytes) -> tuple[str, str]:
    """Read both streams as text; megabytes in a thread, since they take milliseconds."""

    def both() -> tuple[str, str]:
        return decoded(stdout), decoded(stderr)

    return await in_thread(both) if len(stdout) + len(stderr) > _PIECE else both()


def with_notes(stderr: str, notes: Sequence[str]) -> str:
    """Add lines of the sandbox's own to what a command wrote."""
    for note in notes:
        separator = "" if not stderr or stderr.endswith("\n") else "\n"
        stderr = f"{stderr}{separator}{note}\n"
    return stderr


class Drain:
    """The reading end of a pipe, emptied as fast as it fills.

    Attributes:
        writing_end: What the command gets; close it when it has it.
        data: The first `kept` bytes that came.
        dropped: How many came after these.
        ended: Done when nobody has the writing end any more.
    """

    def __init__(self, kept: int = KEPT_BYTES) -> None:
        self._loop = asyncio.get_running_loop()
        reading, self.writing_end = os.pipe()
        # An object, so that one that nobody closes is closed with it.
        self._file = os.fdopen(reading, "rb", buffering=0)
        os.set_blocking(reading, False)
        self._kept = kept
        self._forgetting = False
        self.data = bytearray()
        self.dropped = 0
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._listen()

    def _listen(self) -> None:
        if not self._file.closed:
            self._loop.add_reader(self._file.fileno(), self._read)

    def close_writing_end(self) -> None:
        """Let go of the command's end; once is enough, twice is harmless."""
        if self.writing_end >= 0:
            os.close(self.writing_end)
            self.writing_end = -1

    def _read(self) -> int:
        """Read a piece; 0 where there is none now, or will be none."""
        try:
            piece = self._file.read(_PIECE)
        except OSError:  # pragma: no cover - a pipe has no errors of its own
            piece = b""
        if piece is None:
            return 0
        if not piece:
            self.close()
            return 0
        if self._forgetting:
            self._loop.remove_reader(self._file.fileno())
            self._loop.call_later(_REST_SECONDS, self._listen)
        room = self._kept - len(self.data)
        self.data += piece[:room] if room < len(piece) else piece
        self.dropped += max(0, len(piece) - room)
        return len(piece)

    def catch_up(self) -> None:
        """Read what a command that has ended left in the pipe, whoever else writes on."""
        read = 0
        while not self._file.closed and read < _LARGEST_PIPE:
            piece = self._read()
            if not piece:
                return
            read += piece

    def taken(self) -> tuple[bytes, int]:
        """Give what came and how much was dropped; what comes now is read and forgotten.

        The reading goes on: a process in the background must not fail for want of it.
        """
        found = bytes(self.data), self.dropped
        self.data = bytearray()
        self._kept = 0
        self._forgetting = True
        return found

    def close(self) -> None:
        """Stop reading."""
        self.close_writing_end()
        if not self._file.closed:
            self._loop.remove_reader(self._file.fileno())
            self._file.close()
        if not self.ended.done():
            self.ended.set_result(None)
