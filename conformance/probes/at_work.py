"""A session as a model works in it: its tools, blocking and bounded."""

from __future__ import annotations

import asyncio
import shlex
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from conformance.bounds import BOUNDS
from conformance.verdicts import Violation
from sandboxes.session import Session
from sandboxes.session_options import SessionOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conformance.subject.targets import Target
    from sandboxes.processes import BackgroundProcess, ProcessOutput

_REMEDY = "keep the rules of execute, read_file and write_file, which every tool is made of"
_PAUSE_SECONDS = 0.05
LIVE_ON = "let what Python starts live on, and hand commands and their output through whole"
"""What is to be done for background processes to work."""


class AtWork:
    """A session that has started, and what its model can call.

    Attributes:
        session: The session itself.
    """

    def __init__(self, target: Target, session: Session) -> None:
        self._target = target
        self.session = session

    @property
    def tools(self) -> frozenset[str]:
        """The names of the tools that a model gets."""
        return frozenset(self.session.tools)

    def call(self, tool: str, *arguments: object, **named: object) -> Any:  # noqa: ANN401 - the tool's own
        """Call a tool.

        Raises:
            Violation: It is not there, hung, or raised what no caller can handle.
            Exception: What it raised, noted as the subject's.
        """
        if tool not in self.session.tools:
            raise Violation(
                f"a session of it has no tool {tool}, only {sorted(self.tools)}",
                remedy="keep the access that the constructor was given",
            )
        return self._target.run(
            lambda: self.session.tools[tool](*arguments, **named),
            f"the tool {tool}",
            bound=BOUNDS.execute(BOUNDS.unlimited),
            remedy=_REMEDY,
        )

    def take_turn(self, work: Callable[[], object]) -> None:
        """Do something as one turn of the session: blocking work, in a thread of its own."""

        async def turn(_: Session) -> None:
            await asyncio.to_thread(work)

        self._target.run(
            lambda: self.session.take_turn(turn), "a turn of a session", remedy=_REMEDY
        )

    def start(self, *words: str) -> BackgroundProcess:
        """Start a background process from the words of a command line.

        It takes the shell's place, so that signals and exit codes are its own.
        """
        started: BackgroundProcess = self.call("process.start", f"exec {shlex.join(words)}")
        return started

    def listed(self, name: str) -> BackgroundProcess | None:
        """What the list says of a process; None where it does not have it."""
        found: tuple[BackgroundProcess, ...] = self.call("process.list")
        return next((one for one in found if one.id == name), None)

    def output(self, name: str, cursor: int = 0) -> ProcessOutput:
        """Read what a background process has written after a cursor."""
        output: ProcessOutput = self.call("process.output", name, cursor)
        return output

    def until(
        self, name: str, enough: Callable[[ProcessOutput], bool], seconds: float = 10.0
    ) -> ProcessOutput | None:
        """Read all output of a process again and again until it is enough; None if it never is."""
        deadline = time.monotonic() + seconds
        while not enough(output := self.output(name)):
            if time.monotonic() > deadline:
                return None
            time.sleep(_PAUSE_SECONDS)
        return output

    def says(self, name: str, text: str) -> ProcessOutput:
        """Wait until a background process has written a text, and give all that it wrote.

        Raises:
            Violation: It never does.
        """
        output = self.until(name, lambda output: text in output.text)
        if output is None:
            raise Violation(
                f"a background process never wrote {text!r}, only "
                f"{self.output(name).text[-200:]!r}",
                remedy=LIVE_ON,
            )
        return output


@contextmanager
def at_work(
    target: Target,
    *,
    disabled_tools: Sequence[str] = (),
    resume: Any = None,  # noqa: ANN401 - JSON
    **overrides: Any,  # noqa: ANN401 - a constructor's own options
) -> Iterator[AtWork]:
    """Start a session over a new sandbox, and close it.

    Args:
        target: The subject.
        disabled_tools: Patterns of tools that its model does not get.
        resume: What an earlier session gave when it was detached.
        **overrides: Constructor keywords.

    Raises:
        Violation: It did not start or close in time.
        Exception: What starting or closing it raised, noted as the subject's.
    """
    sandbox, options = (
        target.build(**overrides),
        SessionOptions(disabled_tools=tuple(disabled_tools)),
    )
    request = target.request(resume=resume)
    session = target.run(
        lambda: Session.start(sandbox, request, options), "starting a session", remedy=_REMEDY
    )
    try:
        yield AtWork(target, session)
    finally:
        target.run(session.close, "closing a session", bound=BOUNDS.close, remedy=_REMEDY)
