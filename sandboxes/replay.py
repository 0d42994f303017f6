"""Code that replays: what it saw and did the first time, it sees again without doing it.

A deployed agent may run a hook's code again, in another process, to get to where it was.
All that such code may depend on goes through here: time, and the sandbox.
"""

from __future__ import annotations

import asyncio
import base64
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from sandboxes.contract import RunningSandbox, SandboxError, SandboxExecutionResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

T = TypeVar("T")
Event = dict[str, Any]

_RAISED: dict[str, type[OSError]] = {
    kind.__name__: kind
    for kind in (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
}


class Recording:
    """What one piece of code saw, in the order in which it asked.

    Args:
        subject: What errors call the code.
        events: Those of earlier runs, to which new ones are added; JSON values.
    """

    def __init__(self, subject: str, events: list[Event]) -> None:
        self._subject = subject
        self._events = events
        self._next = 0

    def event(self, did: str, *arguments: object) -> Event:
        """Return the next event, of an earlier run or a new one without an outcome.

        Raises:
            SandboxError: The earlier run did something else here.
        """
        asked: Event = {"did": did, "with": list(arguments)}
        if self._next == len(self._events):
            self._events.append(asked)
        event = self._events[self._next]
        self._next += 1
        if (event["did"], event["with"]) != (did, asked["with"]):
            raise SandboxError(
                f"{self._subject} is not the same each time it runs: it did {event['did']} first "
                f"and now {did}, or with other arguments; take time from agents.now(), "
                "and all else from its arguments and the sandbox"
            )
        return event


_current: ContextVar[Recording | None] = ContextVar("recording", default=None)


@contextmanager
def recorded(recording: Recording) -> Iterator[None]:
    """Let `now()` and `sleep()` in this block record, or replay."""
    token = _current.set(recording)
    try:
        yield
    finally:
        _current.reset(token)


def now() -> datetime:
    """Return the time, in UTC; in code that replays, the time of its first run."""
    recording = _current.get()
    if recording is None:
        return datetime.now(UTC)
    event = recording.event("now")
    event.setdefault("saw", datetime.now(UTC).isoformat())
    return datetime.fromisoformat(event["saw"])


async def sleep(seconds: float) -> None:
    """Wait; in code that replays, only the first time.

    Args:
        seconds: How long.
    """
    recording = _current.get()
    event = recording.event("sleep", seconds) if recording is not None else {}
    if "saw" not in event:
        await asyncio.sleep(seconds)
        event["saw"] = None


class RecordedSandbox(RunningSandbox):
    """A sandbox whose calls are made once, and replayed after that."""

    def __init__(self, sandbox: RunningSandbox, recording: Recording) -> None:
        self._sandbox = sandbox
        self._recording = recording
        self.default_timeout_seconds = sandbox.default_timeout_seconds

    async def execute(
        self, command: str, *, timeout_seconds: float | None = None
    ) -> SandboxExecutionResult:
        """Run a command; see `RunningSandbox.execute`."""
        event = self._recording.event("execute", command, timeout_seconds)
        call = self._sandbox.execute(command, timeout_seconds=timeout_seconds)
        saw = await _once(event, call, lambda done: [done.exit_code, done.stdout, done.stderr])
        return SandboxExecutionResult(*saw)

    async def read_file(self, path: str) -> bytes:
        """Read a file; see `RunningSandbox.read_file`."""
        event = self._recording.event("read_file", path)
        call = self._sandbox.read_file(path)
        return base64.b64decode(
            await _once(event, call, lambda data: base64.b64encode(data).decode())
        )

    async def write_file(self, path: str, data: bytes) -> None:
        """Write a file; see `RunningSandbox.write_file`."""
        event = self._recording.event("write_file", path, base64.b64encode(data).decode())
        await _once(event, self._sandbox.write_file(path, data), lambda _: None)


async def _once(event: Event, call: Awaitable[T], as_json: Callable[[T], Any]) -> Any:  # noqa: ANN401 - a JSON value
    if "raised" in event or "saw" in event:
        call.close()  # type: ignore[attr-defined] # a coroutine that is never run
    if "raised" in event:
        kind, arguments = event["raised"]
        raise _RAISED[kind](*arguments)
    if "saw" not in event:
        try:
            event["saw"] = as_json(await call)
        except tuple(_RAISED.values()) as error:
            event["raised"] = [type(error).__name__, [error.errno, error.strerror, error.filename]]
            raise
    return event["saw"]
