"""The few words that the servers and the lab's builder exchange."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from conformance.lab.errors import LabUnavailable

if TYPE_CHECKING:
    import socket

_START_SECONDS = 30.0


class Line:
    """One end of a conversation in lines of JSON.

    Args:
        connection: a connected stream socket; its time limit bounds every wait.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(_START_SECONDS)
        self._connection = connection
        self._file = connection.makefile("rb")

    def say(self, word: str, **facts: Any) -> None:  # noqa: ANN401 - JSON
        """Send a word and its facts."""
        self._connection.sendall(json.dumps([word, facts]).encode() + b"\n")

    def hear(self, expected: str) -> dict[str, Any]:
        """Wait for a word, and give its facts.

        Raises:
            LabUnavailable: another word, the end, or nothing in time came instead.
        """
        try:
            line = self._file.readline()
        except TimeoutError:
            line = b""
        word, facts = json.loads(line) if line else ("the end", {})
        if word != expected:
            raise LabUnavailable(
                f"the lab's servers said {word!r} instead of {expected!r}; "
                "see their message above, or use --lab=loopback"
            )
        return dict(facts)

    def close(self) -> None:
        """Let go of the connection."""
        self._file.close()
        self._connection.close()
