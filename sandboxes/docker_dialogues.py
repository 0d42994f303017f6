"""Programs that run in a container one after the other, in few execs of the engine.

An exec takes the engine several times as long as a program takes to run; so each is a shell
(`inside/docker_serve.sh`) that runs what it is told, and the next one when that has ended.
What is still busy with an earlier command is let go: a new exec takes its place.
"""

from __future__ import annotations

import contextlib
import shlex
import threading
import time
import uuid
from typing import TYPE_CHECKING

from sandboxes.docker_programs import go, script, words
from sandboxes.docker_streams import Dialogue, Streams

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sandboxes.docker_engine import Attached

# Its first word takes a new one as long as the engine takes; one that is idle says it at once.
_FIRST_SECONDS = 60.0
_NEXT_SECONDS = 0.2
_MOST_IDLE = 4
# A shell reads its lines byte by byte.
LONGEST_LINE = 8_192


class Unanswered(Exception):
    """A new shell said nothing, or something else.

    Attributes:
        said: What that was.
    """

    def __init__(self, said: bytes) -> None:
        super().__init__("a shell in the container did not answer")
        self.said = said


def line_of(
    programs: Sequence[str], arguments: Sequence[str], environ: Mapping[str, str]
) -> str | None:
    """Write what a shell is told; None where it is too long for that.

    Args:
        programs: Words as they are, such as `"$__command"`.
        arguments: Words behind them, with anything in them.
        environ: Variables for the program.
    """
    length = sum(map(len, arguments))
    if length > LONGEST_LINE:
        return None
    exported = [f"export {name}={shlex.quote(value)};" for name, value in environ.items()]
    # A line feed is within quotes, wherever it is.
    quoted = (shlex.quote(word).replace("\n", "'\"$__nl\"'") for word in arguments)
    line = " ".join([*exported, "exec", *programs, *quoted])
    return line if len(line) <= 2 * LONGEST_LINE else None


def serving() -> list[str]:
    """The words that make a shell which runs one program after the other."""
    return words("serve", *(script(name) for name in ("command", "read", "write")))


class Dialogues:
    """The shells of one container.

    Args:
        start: Starts a program from its words, as the user of the commands.
    """

    def __init__(self, start: Callable[[Sequence[str]], Attached]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._idle: list[Dialogue] = []
        self._first: Dialogue | None = None
        self._closed = False

    def begin(self, line: str, token: str) -> Dialogue:
        """Have a shell run a line; its program then reads what is sent.

        Args:
            line: See `line_of`.
            token: What both streams have on a line when it has ended.

        Raises:
            SandboxError: The engine could not start a shell.
            Unanswered: The shell did not begin.
            OSError: The engine hung up.
        """
        dialogue = self._next() or self._new()
        try:
            dialogue.send(f"{token}\n{line}\n".encode())
        except BaseException:
            dialogue.close()
            raise
        return dialogue

    def _next(self) -> Dialogue | None:
        while True:
            seconds = _NEXT_SECONDS
            with self._lock:
                if self._first is not None:
                    dialogue, self._first, seconds = self._first, None, _FIRST_SECONDS
                elif not self._idle:
                    return None
                else:
                    dialogue = self._idle.pop()
            # It may be stopped or killed, or wait for what its last command left behind. What
            # it has not begun with it never does: the end of its input comes before the line.
            with contextlib.suppress(Unanswered, OSError):
                _hear(dialogue, seconds)
                return dialogue
            dialogue.close()

    def _new(self) -> Dialogue:
        dialogue = Dialogue(self._start(serving()))
        try:
            _hear(dialogue, _FIRST_SECONDS)
        except BaseException:
            dialogue.close()
            raise
        return dialogue

    def first(self, dialogue: Dialogue) -> None:
        """Take one that begins just now."""
        self._first = dialogue

    def over(self, dialogue: Dialogue) -> None:
        """Take back one whose program has said all, for the next program."""
        with self._lock:
            kept = not self._closed and len(self._idle) < _MOST_IDLE
            if kept:
                self._idle.append(dialogue)
        if not kept:
            dialogue.close()

    def close(self) -> None:
        """Let go of those that are idle, and of others when they are over."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            if self._first is not None:
                idle.append(self._first)
                self._first = None
        for dialogue in idle:
            dialogue.close()


def _hear(dialogue: Dialogue, seconds: float) -> None:
    """Have it say on both streams that it listens, and drop what came before that.

    Raises:
        Unanswered: It did not.
        OSError: The engine hung up.
    """
    token = uuid.uuid4().hex
    streams = Streams(token)
    dialogue.send(go(token))
    deadline = time.monotonic() + seconds
    while not streams.ended:
        if not dialogue.receive(deadline - time.monotonic(), streams):
            streams.stdout.finish()
            raise Unanswered(bytes(streams.stdout.data + streams.stderr.data))
