"""The small programs that run inside a container, and what they answer."""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from sandboxes.contract import SandboxError
from sandboxes.docker_streams import Dialogue, Streams

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandboxes.docker_container import Container


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


class Answer:
    """What a program said.

    Attributes:
        data: What it printed.
        word: The text of its mark.
    """

    def __init__(self, data: bytes, word: str) -> None:
        self.data = data
        self.word = word


def converse(
    container: Container,
    name: str,
    start: Callable[[str], Dialogue],
    *,
    seconds: float,
    data: bytes = b"",
    over: Callable[[Dialogue], None] = Dialogue.close,
) -> Answer:
    """Have a program started, give it what it reads, and take in what it says.

    Args:
        container: Where.
        name: Which one.
        start: Starts it, told the token that its marks will have.
        seconds: For all of it.
        data: For its standard input.
        over: Takes the connection of a program that has read all, and said all.

    Raises:
        EngineError: It could not be started.
        SandboxError: It did not come to its end.
    """
    token = uuid.uuid4().hex
    dialogue = start(token)
    streams = Streams(token, kept=_EVERYTHING)
    # In a thread of its own: a program that refuses its input does not read it.
    sending = threading.Thread(target=_send, args=(dialogue, go(token) + data), daemon=True)
    try:
        sending.start()
        deadline = time.monotonic() + seconds
        while not streams.ended:
            received = dialogue.receive(deadline - time.monotonic(), streams)
            if received is None:
                raise SandboxError(
                    f"the container did not {name} within {seconds:g} s; see what it is busy with"
                )
            if not received:
                streams.stdout.finish()
                raise container.broken(f"run {name}", bytes(streams.stdout.data))
    except BaseException:
        dialogue.close()
        raise
    answer = Answer(bytes(streams.stdout.data), streams.stdout.marks[0])
    if data and answer.word:  # some of it may be there still
        dialogue.close()
    else:
        sending.join()
        over(dialogue)
    return answer


def _send(dialogue: Dialogue, data: bytes) -> None:
    with contextlib.suppress(OSError):  # its answer says why
        dialogue.send(data)
