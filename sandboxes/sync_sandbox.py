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
        """End every command in flight, from another thread.

        Called where a caller was cancelled, where a command outlived its limit by
        5 seconds, and before a close during commands.
        """


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


class _Threaded(RunningSandbox):
    """The blocking sandbox, seen from the event loop."""

    def __init__(self, name: str, blocking: SyncRunningSandbox) -> None:
        self._name = name
        self._blocking = blocking
        self._closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._commands: set[asyncio.Future[SandboxExecutionResult]] = set()
        self.default_timeout_seconds = blocking.default_timeout_seconds

    async def execute(
        self, command: str, *, timeout_seconds: float | None = None
    ) -> SandboxExecutionResult:
        check_command(command)
        limit = check_limit(timeout_seconds, self.default_timeout_seconds)
        self._check_open("run commands")
        call = in_thread(lambda: self._blocking.execute(command, timeout_seconds=limit))
        self._commands.add(call)
        try:
            await self._wait(call, limit + _GRACE_SECONDS)
            if call.done() or self._closing.done():
                return self._outcome(call, "finish the command")
            self._kill()
            await self._wait(call, _AFTER_KILL_SECONDS)
            return self._overdue(call, limit)
        except asyncio.CancelledError:
            self._kill()
            await asyncio.wait({call}, timeout=_CANCEL_SECONDS)
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

    def _kill(self) -> None:
        killing = in_thread(self._blocking.kill)
        killing.add_done_callback(self._log_failure)

    def _log_failure(self, killing: asyncio.Future[None]) -> None:
        if not killing.cancelled() and killing.exception() is not None:
            _log.error("%s.kill() raised", self._name, exc_info=killing.exception())

    def _check_open(self, action: str) -> None:
        if self._closing.done():
            raise SandboxClosed(messages.closed(self._name, action))

    async def close(self) -> None:
        if self._commands:
            self._kill()
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
