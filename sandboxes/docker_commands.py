"""Commands in a container: each ends with all that it started, at its limit or when told to.

Its shell (`inside/docker_command.sh`) runs below an init of its own, which adopts whatever
comes of the command; so an exec beside it (`inside/docker_end.sh`) finds all of it, in
sessions of its own and with no environment too.
"""

from __future__ import annotations

import threading
import time
import uuid
from typing import TYPE_CHECKING

from sandboxes.contract import SandboxError
from sandboxes.docker_programs import go
from sandboxes.docker_streams import Streams
from sandboxes.limits import TIMED_OUT
from sandboxes.output import KEPT_BYTES
from sandboxes.timeouts import GRACE_SECONDS, Ended

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sandboxes.docker_container import Container
    from sandboxes.docker_streams import Dialogue

# One argument may have 128 KiB on Linux, and all of them together, as a rule, 2 MB.
_PIECE_BYTES = 100_000
MOST_BYTES = 1_500_000
"""Longer commands do not fit between a shell and its system."""

# For an engine under load to begin with an exec; then 5 s of grace, and the killing.
_ENDING_SECONDS = 10.0
# From the moment that nothing of it lives to the end of its streams.
_OUTPUT_SECONDS = 0.5
# Until it is seen that somebody else ends it.
_WAIT_SECONDS = 2.0
_LOOKS, _LOOK_SECONDS = 5, 0.1
_KILLED = 137


def shell_words(shell: str, text: str) -> list[str]:
    """The words that have a shell run a text, of any length up to `MOST_BYTES`.

    Raises:
        ValueError: The text is longer, or no UTF-8.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            "command holds a lone surrogate, which the engine cannot be given; leave it out"
        ) from error
    if len(data) > MOST_BYTES:
        raise ValueError(
            f"command has {len(data)} bytes, and at most {MOST_BYTES} can be run; "
            "write it to a file, and run that"
        )
    if len(data) <= _PIECE_BYTES:
        # After -- a text that begins with a dash is a command too.
        return [shell, "-c", "--", text]
    pieces = list(_pieces(data))
    whole = "".join(f"${{{number}}}" for number in range(1, len(pieces) + 1))
    return [shell, "-c", f'set -- "{whole}"; eval "shift; $1"', shell, *pieces]


def _pieces(data: bytes) -> Sequence[str]:
    pieces, at = [], 0
    while at < len(data):
        end = min(at + _PIECE_BYTES, len(data))
        while end < len(data) and data[end] & 0xC0 == 0x80:  # not within a character
            end -= 1
        pieces.append(data[at:end].decode())
        at = end
    return pieces


class Command:
    """One command; `run` and `end` are called in different threads.

    Args:
        container: Where it runs.
        arguments: Its words; see `shell_words`.
        limit: Seconds until it is ended.
        grace_seconds: Between SIGTERM and SIGKILL.
        kept_bytes: How much of each stream is kept; the rest is counted and dropped.
    """

    def __init__(
        self,
        container: Container,
        arguments: Sequence[str],
        limit: float,
        *,
        grace_seconds: float = GRACE_SECONDS,
        kept_bytes: int = KEPT_BYTES,
    ) -> None:
        self._container = container
        self._arguments = arguments
        self._limit = limit
        self._grace = grace_seconds
        self._name, self._token = uuid.uuid4().hex, uuid.uuid4().hex
        self._streams = Streams(self._token, (2, 1), kept_bytes)
        self._lock = threading.Lock()
        self._ending: threading.Thread | None = None
        self._given_up = False
        self._known = threading.Event()
        self._left: list[str] = []
        self._late = False
        self._cut = False

    def run(self) -> Ended:
        """Run it to its end, or to its limit.

        Raises:
            SandboxError: It could not be started, or its container ended.
        """
        dialogue = self._container.run(
            "command",
            [self._name, *self._arguments],
            {"TINI_SUBREAPER": "1", "SANDBOX_COMMAND": self._name},
            self._token,
        )
        kept = False
        try:
            with self._lock:
                if self._given_up:
                    return self._ended()
            dialogue.send(go(self._token))
            self._read_to_the_end(dialogue)
            kept = self._went_well()
        finally:
            self._known.set()
            if not kept:
                dialogue.close()
        if kept:
            self._container.over(dialogue)
        self._wait_for_the_end()
        return self._ended()

    def _went_well(self) -> bool:
        """Whether it came to its own end, and said so."""
        marks = self._streams.stdout.marks
        return self._streams.ended and bool(marks[1]) and self._ending is None

    def _read_to_the_end(self, dialogue: Dialogue) -> None:
        """Take in what it writes; at its limit, have it ended, and read what it still says."""
        deadline = time.monotonic() + self._limit
        while not self._streams.ended:
            ending = self._ending
            longest = _OUTPUT_SECONDS if ending else _WAIT_SECONDS
            received = dialogue.receive(min(deadline - time.monotonic(), longest), self._streams)
            if received is False:
                return
            if self._streams.stdout.marks:
                self._known.set()
            if ending and not ending.is_alive():  # who still has its streams cannot be ended
                deadline = min(deadline, time.monotonic() + _OUTPUT_SECONDS)
            if time.monotonic() > deadline:
                if self._late:
                    return
                self._late = True
                self._end_beside()
                deadline = time.monotonic() + self._grace + _ENDING_SECONDS

    def _end_beside(self) -> threading.Thread:
        with self._lock:
            self._given_up = True
            if self._ending is None:
                self._ending = threading.Thread(target=self._end, name="sandbox-end", daemon=True)
                self._ending.start()
            return self._ending

    def end(self) -> None:
        """End it with all that it started, and wait for that; or see to it that it never runs."""
        self._end_beside().join(self._grace + _ENDING_SECONDS)

    def _wait_for_the_end(self) -> None:
        ending = self._ending
        if ending is None and not self._went_well():  # its shell was killed, not by us
            self._cut = True
            ending = self._end_beside()
        if ending is not None:
            ending.join(self._grace + _ENDING_SECONDS)

    def _end(self) -> None:
        self._known.wait(_ENDING_SECONDS)
        if not self._streams.stdout.marks:
            return
        try:
            left = self.end_all(self._streams.stdout.marks[0])
        except SandboxError as error:  # the container is gone, or the engine
            self._left = [f"of the command ({error})"]
            return
        self._left = left.split()

    def end_all(self, shell: str) -> str:
        """End what there is of it; give the processes that could not be ended.

        Args:
            shell: The process id of its shell, inside.
        """
        arguments = [shell, self._name, str(round(self._grace * 100))]
        return self._container.as_root("end", arguments, self._grace + _ENDING_SECONDS)

    def _ended(self) -> Ended:
        streams = self._streams
        code, notes = self._verdict()
        for name, stream in (("stdout", streams.stdout), ("stderr", streams.stderr)):
            stream.finish()
            if stream.dropped:
                notes.append(
                    f"sandbox: {name} was cut off after {len(stream.data)} bytes, and "
                    f"{stream.dropped} more were dropped; write it to a file"
                )
        return Ended(code, bytes(streams.stdout.data), bytes(streams.stderr.data), notes)

    def _verdict(self) -> tuple[int, list[str]]:
        marks = self._streams.stdout.marks
        if self._late:
            notes = [f"sandbox: the command was ended at its limit of {self._limit:g} s"]
            if self._left:
                notes.append(f"sandbox: the processes {', '.join(self._left)} could not be ended")
            return TIMED_OUT, notes
        if len(marks) > 1 and marks[1]:
            return int(marks[1]), []
        if self._given_up and not self._cut:
            return _KILLED, []
        if not marks:
            said = bytes(self._streams.stdout.data + self._streams.stderr.data)
            raise self._container.broken("start the command", said)
        if self._container_ends():
            raise self._container.broken("go on with the command", b"")
        return _KILLED, ["sandbox: the command's supervisor was killed, and the command with it"]

    def _container_ends(self) -> bool:
        """Whether the container ended, which the engine knows a moment later."""
        for _ in range(_LOOKS):
            if not self._container.is_running():
                return True
            time.sleep(_LOOK_SECONDS)
        return False
