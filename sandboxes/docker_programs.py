"""The small programs that run inside a container, each in one exec of the engine."""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from sandboxes.contract import SandboxError
from sandboxes.docker_streams import STDERR, STDOUT, Frames, MarkedStream
from sandboxes.output import KEPT_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sandboxes.docker_container import Container
    from sandboxes.docker_engine import Attached


_EVERYTHING = 1 << 62


@cache
def script(name: str) -> str:
    """The text of a program in `sandboxes.inside`, without its comments: a `ps` shows it."""
    text = resources.files("sandboxes.inside").joinpath(f"docker_{name}.sh").read_text("utf-8")
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return "\n".join(lines)


def go(token: str) -> bytes:
    """What a program waits for: what came earlier could be lost in the SDK's buffers."""
    return f"{token}\n".encode()


def words(name: str, *arguments: str) -> list[str]:
    """The words that run a program."""
    return ["/bin/sh", "-c", script(name), "sh", *arguments]


class Streams:
    """Both streams of a program, each read to its marks."""

    def __init__(self, token: str, marks: tuple[int, int] = (1, 1), kept: int = KEPT_BYTES) -> None:
        self._frames = Frames()
        self.stdout = MarkedStream(token, marks[0], kept)
        self.stderr = MarkedStream(token, marks[1], kept)
        self._by_number = {STDOUT: self.stdout, STDERR: self.stderr}

    @property
    def ended(self) -> bool:
        """Whether both are at their ends."""
        return self.stdout.ended and self.stderr.ended

    def feed(self, data: bytes) -> None:
        """Take in what the engine sent."""
        for number, piece in self._frames.pieces(data):
            if number in self._by_number:
                self._by_number[number].feed(piece)


class Answer:
    """What a program said.

    Attributes:
        data: What it printed.
        word: The text of its mark.
    """

    def __init__(self, data: bytes, word: str) -> None:
        self.data = data
        self.word = word


def ask(
    container: Container,
    name: str,
    arguments: Sequence[str],
    *,
    user: str,
    folder: str,
    seconds: float,
    data: bytes = b"",
) -> Answer:
    """Run a program to its end.

    Args:
        container: Where.
        name: Which one.
        arguments: Its own.
        user: As whom.
        folder: In which folder.
        seconds: For all of it.
        data: For its standard input.

    Raises:
        EngineError: It could not be started.
        SandboxError: It did not come to its end.
    """
    return converse(
        container,
        name,
        lambda: container.attach(words(name, *arguments), user=user, folder=folder),
        seconds=seconds,
        data=data,
    )


def converse(
    container: Container,
    name: str,
    start: Callable[[], Attached],
    *,
    seconds: float,
    data: bytes = b"",
) -> Answer:
    """Have a program started, give it what it reads, and take in what it says.

    Args:
        container: Where.
        name: Which one.
        start: Starts it.
        seconds: For all of it.
        data: For its standard input.

    Raises:
        EngineError: It could not be started.
        SandboxError: It did not come to its end.
    """
    token = uuid.uuid4().hex
    attached = start()
    streams = Streams(token, kept=_EVERYTHING)
    try:
        # In a thread of its own: a program that refuses its input does not read it.
        sending = threading.Thread(target=_send, args=(attached, go(token) + data), daemon=True)
        sending.start()
        deadline = time.monotonic() + seconds
        while not streams.ended:
            received = attached.receive(deadline - time.monotonic())
            if received is None:
                raise SandboxError(
                    f"the container did not {name} within {seconds:g} s; see what it is busy with"
                )
            if not received:
                streams.stdout.finish()
                raise container.broken(f"run {name}", bytes(streams.stdout.data))
            streams.feed(received)
    finally:
        attached.close()
    return Answer(bytes(streams.stdout.data), streams.stdout.marks[0])


def _send(attached: Attached, data: bytes) -> None:
    with contextlib.suppress(OSError):  # its answer says why
        attached.send(data)
