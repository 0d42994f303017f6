"""Files that grow while a process lives: the witness of its life and of its end."""

from __future__ import annotations

import secrets
import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.subject.facade import Box

_PAUSE = 0.2
# Five turns of a loop that is still alive.
QUIET_SECONDS = 1.0
# A command that a broken sandbox lets go on still ends by itself.
_LONGEST_SECONDS = 40


def loop(body: str = ":", seconds: float = _LONGEST_SECONDS) -> str:
    """Give shell text that does something again and again, and ends by itself one day."""
    turns = int(seconds / _PAUSE)
    return f"i=0; while [ $i -lt {turns} ]; do {body}; sleep {_PAUSE}; i=$((i+1)); done"


_PYTHON = "import os, sys; os.setsid(); os.execvp('sh', ['sh', '-c', sys.argv[1]])"
MISSING = 99
"""The exit code where there is no program to make a session of its own."""


def own_session(script: str, rest: str) -> str:
    """Give shell text that starts a quoted script in a session of its own, and goes on."""
    return (
        f"if command -v setsid > /dev/null; then setsid sh -c {script} & "
        f"elif command -v python3 > /dev/null; then python3 -c {shlex.quote(_PYTHON)} {script} & "
        f"else exit {MISSING}; fi; {rest}"
    )


def contents(box: Box, name: str) -> bytes:
    """What a file holds; nothing if there is none."""
    try:
        return box.read_file(name)
    except FileNotFoundError:
        return b""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A file in the workspace of a sandbox, and what makes it grow.

    Args:
        box: Where.
        name: The file's name.
    """

    box: Box
    name: str

    @classmethod
    def on(cls, box: Box) -> Heartbeat:
        """Give one with a name that was never used."""
        return cls(box, f"beat{secrets.token_hex(6)}")

    @property
    def text(self) -> str:
        """A command that beats until it is ended."""
        return loop(f"printf x >> {self.name}")

    @property
    def in_background(self) -> str:
        """A command that leaves it to beat in the background, in a session of its own.

        It returns with the first beat: who ends the rest of a command's group at its end
        might meet the child before it has left that.
        """
        started = f"({own_session(shlex.quote(self.text), ':')}) > /dev/null 2>&1 || exit"
        waiting = f"while [ $i -lt 100 ] && ! [ -e {self.name} ]; do sleep 0.05; i=$((i+1)); done"
        return f"{started}; i=0; {waiting}"

    def count(self) -> int:
        """How often it beat up to now, as `read_file` sees it: no command is needed for that."""
        return len(contents(self.box, self.name))

    def begins(self, seconds: float) -> bool:
        """Wait for the first beat."""
        deadline = time.monotonic() + seconds
        while not self.count():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def lives(self, seconds: float) -> bool:
        """Wait for the next beat."""
        before, deadline = self.count(), time.monotonic() + seconds
        while self.count() == before:
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE)
        return True

    def stops(self, seconds: float) -> bool:
        """Wait until it does not beat for a second, and let it go on so long before that."""
        deadline = time.monotonic() + seconds
        now = self.count()
        while True:
            began, before = time.monotonic(), now
            time.sleep(QUIET_SECONDS)
            now = self.count()
            if now == before:
                return True
            if began > deadline:
                return False
