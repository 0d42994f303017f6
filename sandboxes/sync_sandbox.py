"""For sandboxes whose own interface has only blocking calls."""

from __future__ import annotations

import asyncio
import logging
import threading
from abc import ABC, abstractmethod
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from sandboxes.contract import (
    OpenRequest,
    RunningSandbox,
    SandboxClosed,
    SandboxError,
    SandboxExecutionResult,
    messages,
)
from sandboxes.custom_sandbox import CustomSandbox
from sandboxes.limits import TIMED_OUT, check_command, check_limit
from sandboxes.threads import in_thread, to_the_end

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

T = TypeVar("T")

# A backend has its limit, and 5 seconds between asking a command to end and killing it.
_GRACE_SECONDS = 5.5
_AFTER_KILL_SECONDS = 0.5
_CANCEL_SECONDS = 5.0
_KILL_AGAIN_SECONDS = 0.5
_CLOSE_SECONDS = 30.0

_log = logging.getLogger(__name__)


class SyncRunningSandbox(ABC):
    """A live sandbox with blocking calls, each made in a thread of its own.

    Several may run at once. The errors are those of `RunningSandbox`.

    Attributes:
        default_timeout_seconds: The limit of a command that brings none, in seconds.
    """

    default_timeout_seconds: float = 600.0

    @abstractmethod
    def execute(self, command: str, *, timeout_seconds: float) -> SandboxExecutionResult:
        """Run a shell command; end it at its limit, in seconds, with exit code 124."""

    @abstractmethod
    def read_file(self, path: str) -> bytes:
        """Read a file as commands see it."""

    @abstractmethod
    def write_file(self, path: str, data: bytes) -> None:
        """Write a whole file; missing parent folders are made."""

    @abstractmethod
    def close(self) -> None:
        """Delete the sandbox, ending what still runs. Called exactly once."""

    def kill(self) -> None:  # noqa: B027 - optional
        """End every command in flight, from another thread; called before a close during some."""

    def kill_one(self, thread: int) -> None:
        """End one command, from another thread; by default all of them.

        Called where a caller was cancelled, and where a command outlived its limit by 5
        seconds; again and again until the command has ended. A sandbox that runs several
        commands at once overrides it, so that no other one is touched.

        Args:
            thread: Where the command runs: what `threading.get_ident()` gives in `execute`.
        """
        self.kill()


class SyncSandbox(CustomSandbox):
    """A sandbox of your own from blocking calls: declare what it enforces, write `start`."""

    @abstractmethod
    def start(self, request: OpenRequest) -> SyncRunningSandbox:
        """Create one sandbox, ready to use. Blocking is fine.

        Raises:
            SandboxStartError: It could not be created; nothing of it is left.
        """

    @asynccontextmanager
    async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
        """Start the sandbox in a thread, and close it on every way out."""
        running = await self._started(request)
        try:
            yield running
        finally:
            await to_the_end(asyncio.ensure_future(running.close()))

    async def _started(self, request: OpenRequest) -> _Threaded:
        handover = _Handover()
        starting = in_thread(lambda: handover.offer(self.start(request)))
        try:
            await asyncio.wait({starting})
        except asyncio.CancelledError:
            closing = in_thread(handover.abandon)
            both = asyncio.gather(starting, closing, return_exceptions=True)
            await asyncio.wait({both}, timeout=_CANCEL_SECONDS)
            raise
        return _Threaded(type(self).__name__, starting.result())


class _Handover:
    """Sees to it that a sandbox whose opener was cancelled is closed, however late it is."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._abandoned = False
        self._offered: SyncRunningSandbox | None = None

    def offer(self, running: SyncRunningSandbox) -> SyncRunningSandbox:
        with self._lock:
            self._offered = running
            abandoned = self._abandoned
        if abandoned:
            running.close()
        return running

    def abandon(self) -> None:
        with self._lock:
            self._abandoned = True
            offered = self._offered
        if offered is not None:
            offered.close()


class _Command:
    """One command in a thread of its own, which names it."""

    def __init__(self, blocking: SyncRunningSandbox, text: str, limit: float) -> None:
        self._blocking = blocking
        self._text = text
        self._limit = limit
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._given_up = False

    def run(self) -> SandboxExecutionResult:
        with self._lock:
            if self._given_up:
                return SandboxExecutionResult(TIMED_OUT, "", "")  # nobody waits for it
            self._thread = threading.get_ident()
        return self._blocking.execute(self._text, timeout_seconds=self._limit)

    def kill(self) -> None:
        with self._lock:
            self._given_up = True
        if self._thread is not None:
            self._blocking.kill_one(self._thread)


class _Threaded(RunningSandbox):
    """The blocking sandbox, seen from the event loop."""

    def __init__(self, name: str, blocking: SyncRunningSandbox) -> None:
        self._name = name
        self._blocking = blocking
        self._closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._commands: set[asyncio.Future[SandboxExecutionResult]] = set()
        self.default_timeout_seconds = blocking.default_timeout_seconds
        kind = type(blocking)
        self.cancels = (kind.kill, kind.kill_one) != (
            SyncRunningSandbox.kill,
            SyncRunningSandbox.kill_one,
        )

    async def execute(
        self, command: str, *, timeout_seconds: float | None = None
    ) -> SandboxExecutionResult:
        check_command(command)
        limit = check_limit(timeout_seconds, self.default_timeout_seconds)
        self._check_open("run commands")
        work = _Command(self._blocking, command, limit)
        call = in_thread(work.run)
        self._commands.add(call)
        try:
            await self._wait(call, limit + _GRACE_SECONDS)
            if call.done() or self._closing.done():
                return self._outcome(call, "finish the command")
            self._kill(work.kill)
            await self._wait(call, _AFTER_KILL_SECONDS)
            return self._overdue(call, limit)
        except asyncio.CancelledError:
            await self._killed(work, call)
            raise
        finally:
            self._commands.discard(call)
            _ignore(call)

    async def read_file(self, path: str) -> bytes:
        self._check_open("read files")
        return await self._finished(lambda: self._blocking.read_file(path), "read the file")

    async def write_file(self, path: str, data: bytes) -> None:
        self._check_open("write files")
        await self._finished(lambda: self._blocking.write_file(path, data), "write the file")

    async def _finished(self, blocking: Callable[[], T], action: str) -> T:
        call = in_thread(blocking)
        try:
            await self._wait(call, None)
            return self._outcome(call, action)
        except asyncio.CancelledError:
            await asyncio.wait({call}, timeout=_CANCEL_SECONDS)
            raise
        finally:
            _ignore(call)

    async def _wait(self, call: asyncio.Future[T], seconds: float | None) -> None:
        """Wait for a call, at most until the sandbox is closed."""
        waited: set[asyncio.Future[T] | asyncio.Future[None]] = {call, self._closing}
        await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)

    def _outcome(self, call: asyncio.Future[T], action: str) -> T:
        """The result of a call, or that a close came before it."""
        if not call.done() or call.exception() is not None:
            self._check_open(action)
        return call.result()

    def _overdue(
        self, call: asyncio.Future[SandboxExecutionResult], limit: float
    ) -> SandboxExecutionResult:
        note = f"sandbox: the command was killed after its limit of {limit:g} s\n"
        if call.done() and not call.cancelled() and call.exception() is None:
            result = call.result()
            return SandboxExecutionResult(TIMED_OUT, result.stdout, result.stderr + note)
        return SandboxExecutionResult(TIMED_OUT, "", note)

    async def _killed(self, work: _Command, call: asyncio.Future[SandboxExecutionResult]) -> None:
        """Kill a command until it has ended: it may only be about to begin."""
        deadline = asyncio.get_running_loop().time() + _CANCEL_SECONDS
        while not call.done() and (left := deadline - asyncio.get_running_loop().time()) > 0:
            self._kill(work.kill)
            await asyncio.wait({call}, timeout=min(_KILL_AGAIN_SECONDS, left))

    def _kill(self, kill: Callable[[], None]) -> None:
        killing = in_thread(kill)
        killing.add_done_callback(self._log_failure)

    def _log_failure(self, killing: asyncio.Future[None]) -> None:
        if not killing.cancelled() and killing.exception() is not None:
            _log.error("%s raised when told to kill", self._name, exc_info=killing.exception())

    def _check_open(self, action: str) -> None:
        if self._closing.done():
            raise SandboxClosed(messages.closed(self._name, action))

    async def close(self) -> None:
        if self._commands:
            self._kill(self._blocking.kill)
        self._closing.set_result(None)
        closing = in_thread(self._blocking.close)
        await asyncio.wait({closing}, timeout=_CLOSE_SECONDS)
        if not closing.done():
            _ignore(closing)
            raise SandboxError(
                f"{self._name} did not close within {_CLOSE_SECONDS:g} s; look for what it left"
            )
        closing.result()


def _ignore(call: asyncio.Future[T]) -> None:
    """Let go of a call; what it still brings is nobody's."""
    if not call.cancel() and not call.cancelled():
        call.exception()
