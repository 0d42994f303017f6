"""Blocking calls over a subject's asynchronous code: each bounded, each result checked."""

from __future__ import annotations

import asyncio
import math
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from conformance.bounds import BOUNDS
from conformance.subject.blame import VERDICTS, blame, shown
from conformance.subject.flight import Flight
from conformance.verdicts import NotApplicable, Violation
from sandboxes.contract import RunningSandbox, SandboxExecutionResult

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from typing import Any

    from pydantic import JsonValue

    from conformance.subject.loop import LoopThread, Outcome
    from sandboxes.contract import OpenRequest, Sandbox
    from sandboxes.session import Session

T = TypeVar("T")

_EXIT_CODES = range(256)
_OPEN_REMEDY = "open() yields a ready sandbox for every configuration that the constructor accepted"
_EXECUTE_REMEDY = "a command never makes execute() raise; return its exit code"
_FILE_REMEDY = "raise only the errors that RunningSandbox documents"
_WRITE_REMEDY = f"make missing parents, take names of up to 255 bytes, and {_FILE_REMEDY}"
_DETACH_REMEDY = "detach() returns JSON for every sandbox that declares supports_resume"
_CLOSE_REMEDY = "leaving open() deletes the sandbox without an error"


def result_of(outcome: Outcome[T], call: str, remedy: str) -> T:
    """Give what a subject's call returned, or raise what it raised, noted as the subject's.

    Raises:
        Violation: It raised what no caller can handle, such as SystemExit.
        Exception: Whatever else it raised, unchanged.
    """
    error = outcome.error
    if error is None:
        return outcome.value  # type: ignore[return-value]  # set where there is no error
    if not isinstance(error, Exception) or _steers_the_run(error):
        raise Violation(f"{call} raised {shown(error)}", remedy=remedy) from error
    blame(error, call, remedy)
    raise error


def _steers_the_run(error: Exception) -> bool:
    """Whether pytest or Hypothesis would take the exception for an order to them."""
    origin = type(error).__module__.partition(".")[0]
    return origin in ("_pytest", "pytest", "hypothesis", "unittest")


def run(
    loop: LoopThread,
    work: Callable[[], Coroutine[Any, Any, T]],
    bound: float,
    call: str,
    remedy: str,
) -> T:
    """Make one call of the subject, bounded; see `result_of`."""
    return result_of(loop.finish(work, bound, call), call, remedy)


def _theirs(
    work: Callable[[], Coroutine[Any, Any, T]], call: str, remedy: str
) -> Callable[[], Coroutine[Any, Any, T]]:
    """Keep verdicts to ourselves: what a subject raises is none, whatever class it takes for it."""

    async def made() -> T:
        try:
            return await work()
        except VERDICTS as error:
            raise Violation(f"{call} raised {shown(error)}", remedy=remedy) from error

    return made


class Box:
    """A live sandbox as checks use it.

    What the subject raises comes out unchanged; left uncaught it is a break of the
    sandbox. So is a call that does not return in time, or that returns rubbish.
    """

    def __init__(self, loop: LoopThread, running: RunningSandbox | None) -> None:
        self._loop = loop
        self._running = running

    @property
    def running(self) -> RunningSandbox:
        """The subject's own object."""
        if self._running is None:
            raise NotApplicable("this session has no running sandbox")
        return self._running

    @property
    def default_timeout_seconds(self) -> float:
        """The limit of a command that brings none, in seconds."""
        limit: object = getattr(self.running, "default_timeout_seconds", None)
        if not isinstance(limit, int | float) or isinstance(limit, bool) or not limit > 0:
            raise Violation(
                f"default_timeout_seconds is {limit!r}",
                remedy="give it a positive number of seconds",
            )
        return limit

    def execute(
        self, command: str, *, timeout_seconds: float | None = None
    ) -> SandboxExecutionResult:
        """Run a command and wait for it: its limit, 5 seconds and some slack at most."""
        running = self.running
        limit = _finite(timeout_seconds)
        if limit is None:
            limit = min(self.default_timeout_seconds, BOUNDS.unlimited)
        given = "" if timeout_seconds is None else f", timeout_seconds={timeout_seconds!r}"
        call = f"execute({_short(command)}{given})"
        result = run(
            self._loop,
            _theirs(
                lambda: running.execute(command, timeout_seconds=timeout_seconds),
                call,
                _EXECUTE_REMEDY,
            ),
            BOUNDS.execute(limit),
            call,
            _EXECUTE_REMEDY,
        )
        return _checked_result(call, result)

    def begin(self, command: str, *, timeout_seconds: float) -> Flight:
        """Start a command and return at once, for a caller that may be cancelled."""
        running = self.running
        call = f"execute({_short(command)}, timeout_seconds={timeout_seconds!r})"
        outcome = self._loop.start(
            _theirs(
                lambda: running.execute(command, timeout_seconds=timeout_seconds),
                call,
                _EXECUTE_REMEDY,
            )
        )
        return Flight(
            self._loop,
            outcome,
            call,
            lambda ended: _checked_result(call, result_of(ended, call, _EXECUTE_REMEDY)),
        )

    def read_file(self, path: str) -> bytes:
        """Read a whole file."""
        running = self.running
        call = f"read_file({_short(path)})"
        work = _theirs(lambda: running.read_file(path), call, _FILE_REMEDY)
        data = run(self._loop, work, BOUNDS.files, call, _FILE_REMEDY)
        if not isinstance(data, bytes):
            raise Violation(f"{call} returned a {type(data).__name__}", remedy="return bytes")
        return data

    def write_file(self, path: str, data: bytes) -> None:
        """Write a whole file."""
        running = self.running
        call = f"write_file({_short(path)}, {len(data)} bytes)"
        work = _theirs(lambda: running.write_file(path, data), call, _WRITE_REMEDY)
        run(self._loop, work, BOUNDS.files, call, _WRITE_REMEDY)

    def detach(self) -> JsonValue:
        """Let go of it without deleting it, and give what resuming it takes."""
        running = self.running
        return run(self._loop, running.detach, BOUNDS.open, "detach()", _DETACH_REMEDY)

    def inventory(self) -> list[str]:
        """What exists outside this process because of the sandbox."""
        running = self.running
        found = run(self._loop, running.inventory, BOUNDS.files, "inventory()", _FILE_REMEDY)
        return [str(line) for line in found]


class _Holder:
    """Enters and leaves a subject's context in one task, as its libraries may demand."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.running: object = None
        self._leave = asyncio.Event()

    async def hold(self, sandbox: Sandbox, request: OpenRequest) -> None:
        try:
            async with sandbox.open(request) as running:
                self.running = running
                self.ready.set()
                await self._leave.wait()
        finally:
            self.ready.set()

    async def leave(self) -> None:
        self._leave.set()


@contextmanager
def opened(loop: LoopThread, sandbox: Sandbox, request: OpenRequest) -> Iterator[Box]:
    """Open a sandbox, give it as a box, and close it on every way out.

    Raises:
        Violation: It did not open or close in time, or yielded no running sandbox.
        Exception: What `open` raised, unchanged.
    """
    holder = _Holder()
    outcome = loop.start(lambda: holder.hold(sandbox, request))
    loop.wait(outcome, holder.ready, BOUNDS.open, "open()")
    if holder.running is None and outcome.done.wait(BOUNDS.answer):
        result_of(outcome, "open()", _OPEN_REMEDY)

    def close() -> None:
        if loop.given_up:
            return  # the call that blocked it was told already
        loop.finish(holder.leave, BOUNDS.answer, "closing the sandbox")
        loop.wait(outcome, outcome.done, BOUNDS.close, "closing the sandbox")
        result_of(outcome, "closing the sandbox", _CLOSE_REMEDY)

    with _closing(close):
        if not isinstance(holder.running, RunningSandbox):
            raise Violation(
                f"open() yielded a {type(holder.running).__name__}",
                remedy="yield an instance of RunningSandbox",
            )
        yield Box(loop, holder.running)


@contextmanager
def session(
    loop: LoopThread,
    start: Callable[[], Coroutine[Any, Any, Session]],
) -> Iterator[Box]:
    """Start a whole session, hooks included, give its sandbox as a box, and close it.

    Raises:
        Violation: It did not start or close in time.
        Exception: What starting it raised, unchanged: the very exception of a hook too.
    """
    call = "starting a session"
    live = run(loop, start, BOUNDS.open, call, "a session starts for every sandbox that was built")

    def close() -> None:
        if loop.given_up:
            return
        run(loop, live.close, BOUNDS.close, "closing the session", _CLOSE_REMEDY)

    with _closing(close):
        yield Box(loop, live.running)


@contextmanager
def _closing(close: Callable[[], None]) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        try:
            close()
        except Exception as late:  # noqa: BLE001 - the first error tells more
            error.add_note(f"and then {late}")
        raise
    close()


def _finite(limit: object) -> float | None:
    return float(limit) if isinstance(limit, int | float) and 0 < limit < math.inf else None


def _short(text: str) -> str:
    shown_text = repr(text)
    return shown_text if len(shown_text) <= 80 else f"{shown_text[:77]}..."


def _checked_result(call: str, result: object) -> SandboxExecutionResult:
    if not isinstance(result, SandboxExecutionResult):
        raise Violation(
            f"{call} returned a {type(result).__name__}", remedy="return a SandboxExecutionResult"
        )
    if type(result.exit_code) is not int:
        raise Violation(f"{call} gave the exit code {result.exit_code!r}", remedy="give an int")
    if result.exit_code not in _EXIT_CODES:
        raise Violation(
            f"{call} gave the exit code {result.exit_code}",
            remedy="give 0 to 255, with 128 and the number for a signal",
        )
    for name in ("stdout", "stderr"):
        text: object = getattr(result, name)
        if not isinstance(text, str):
            raise Violation(f"{call} gave a {type(text).__name__} as {name}", remedy="give a str")
    return result
