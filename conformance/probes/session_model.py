"""Sessions beside a plain model of them: what each was told to keep, file by file."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from dataclasses import dataclass, field
from time import sleep
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from conformance.bounds import BOUNDS
from conformance.subject.blame import shown
from conformance.verdicts import Violation

if TYPE_CHECKING:
    from conformance.subject.facade import Box
    from conformance.subject.targets import Target

_LIMIT = 0.2
_LONG = 20
_MOST_SESSIONS = 2
_REMEDY = "let commands and file calls of one session work on the same files, and on no others"

names = st.sampled_from(["a", "b.txt", "folder/c"])
# As short as shells like them; what files may hold is FIL-02's.
texts = st.text("abc\n", max_size=6)


@dataclass
class _Live:
    """An open session, and the files that it should have."""

    box: Box
    stack: ExitStack
    files: dict[str, str] = field(default_factory=dict)


class SessionModel(RuleBasedStateMachine):
    """Uses sessions of one configuration, and holds them against dictionaries.

    Args:
        target: The sandbox under test.
    """

    def __init__(self, target: Target) -> None:
        super().__init__()
        self._target = target
        self._sandbox = target.build()
        self._live: list[_Live] = []
        self._at = 0
        self._waits = 0
        self._done: list[str] = []

    @property
    def _now(self) -> _Live:
        return self._live[self._at]

    def _note(self, step: str) -> None:
        self._done.append(step if len(self._live) < 2 else f"{step} (session {self._at + 1})")

    def _differs(self, what: str) -> Violation:
        return Violation(f"{what}; what was done: {', '.join(self._done)}", remedy=_REMEDY)

    @initialize()
    def open(self) -> None:
        """Open a session, beside the one that there may be."""
        stack = ExitStack()
        self._live.append(_Live(stack.enter_context(self._target.enter(self._sandbox)), stack))
        self._at = len(self._live) - 1
        self._note("opened")
        self.run("mkdir -p folder")

    @rule()
    @precondition(lambda self: len(self._live) < _MOST_SESSIONS)
    def open_another(self) -> None:
        """Open a second session and go on in it."""
        self.open()
        left = self._now.box.execute("ls folder a b.txt").stdout.split()
        if found := sorted({"a", "b.txt", "c"} & set(left)):
            raise self._differs(f"a new session found {', '.join(found)}")

    @rule()
    @precondition(lambda self: len(self._live) > 1)
    def close(self) -> None:
        """Close this session and go on in the other one."""
        self._note("closed")
        self._live.pop(self._at).stack.close()
        self._at = 0

    @rule()
    @precondition(lambda self: len(self._live) > 1)
    def turn_to_the_other(self) -> None:
        """Go on in the other session."""
        self._at = 1 - self._at

    @rule(name=names, text=texts)
    def write(self, name: str, text: str) -> None:
        """Write a file from outside."""
        self._note(f"write_file({name!r}, {text.encode()!r})")
        self._now.box.write_file(name, text.encode())
        self._now.files[name] = text

    @rule(name=names, text=texts)
    def overwrite(self, name: str, text: str) -> None:
        """Let a command write a file."""
        self.run(f"printf %s {shlex.quote(text)} > {name}")
        self._now.files[name] = text

    @rule(name=names, text=texts)
    def append(self, name: str, text: str) -> None:
        """Let a command add to a file."""
        self.run(f"printf %s {shlex.quote(text)} >> {name}")
        self._now.files[name] = self._now.files.get(name, "") + text

    @rule(name=names)
    def remove(self, name: str) -> None:
        """Let a command remove a file."""
        self.run(f"rm -f {name}")
        self._now.files.pop(name, None)

    @rule()
    @precondition(lambda self: self._waits < 1)
    def time_out(self) -> None:
        """Let a command run into its limit."""
        self._waits += 1
        self._note(f"execute('sleep {_LONG}', timeout_seconds={_LIMIT})")
        self._now.box.execute(f"sleep {_LONG}", timeout_seconds=_LIMIT)

    @rule()
    @precondition(lambda self: self._waits < 1)
    def cancel(self) -> None:
        """Give up a command while it runs."""
        self._waits += 1
        self._note(f"execute('sleep {_LONG}') cancelled")
        flight = self._now.box.begin(f"sleep {_LONG}", timeout_seconds=_LONG)
        sleep(_LIMIT)
        flight.cancel()
        flight.result(BOUNDS.execute(_LIMIT))

    @rule(name=names)
    def read(self, name: str) -> None:
        """Hold a file against the model, read from outside."""
        self._note(f"read_file({name!r})")
        wanted = self._now.files.get(name)
        try:
            got: bytes | None = self._now.box.read_file(name)
        except FileNotFoundError:
            got = None
        except Violation:
            raise
        except Exception as error:
            raise self._differs(f"read_file({name!r}) raised {shown(error)}") from error
        if got != (None if wanted is None else wanted.encode()):
            held = "nothing" if wanted is None else repr(wanted.encode())
            raise self._differs(f"read_file({name!r}) gave {got!r} where {held} had been left")

    @rule(name=names)
    def show(self, name: str) -> None:
        """Hold a file against the model, shown by a command."""
        wanted = self._now.files.get(name)
        got = self.run(f"test -e {name} && cat {name} && printf .")
        if got != ("" if wanted is None else f"{wanted}."):
            raise self._differs(f"'cat {name}' printed {got!r} where {wanted!r} had been left")

    def run(self, command: str) -> str:
        """Run a command in the session, and give what it printed."""
        self._note(f"execute({command!r})")
        return self._now.box.execute(command).stdout

    def look_at_all(self) -> None:
        """Hold every file of every session against the model, both ways."""
        for at in range(len(self._live)):
            self._at = at
            for name in ("a", "b.txt", "folder/c"):
                self.read(name)
                self.show(name)

    def teardown(self) -> None:
        """Close what is open."""
        with ExitStack() as stack:
            for live in self._live:
                stack.push(live.stack)
