"""What users and hooks of a session hold instead of the backend's sandbox."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sandboxes.contract import (
    RunningSandbox,
    SandboxClosed,
    SandboxExecutionResult,
    SandboxStartError,
    messages,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Sequence

    from pydantic import JsonValue


class Guard(RunningSandbox):
    """The backend's sandbox until the session is over; then every call raises."""

    def __init__(self, running: RunningSandbox) -> None:
        self._running: RunningSandbox | None = running
        self.default_timeout_seconds = running.default_timeout_seconds

    def close(self) -> None:
        """Let go of the backend's sandbox."""
        self._running = None

    def _open(self, action: str) -> RunningSandbox:
        if self._running is None:
            raise SandboxClosed(messages.closed("the session", action))
        return self._running

    async def execute(
        self, command: str, *, timeout_seconds: float | None = None
    ) -> SandboxExecutionResult:
        """Run a command; see `RunningSandbox.execute`."""
        return await self._open("run commands").execute(command, timeout_seconds=timeout_seconds)

    async def read_file(self, path: str) -> bytes:
        """Read a file; see `RunningSandbox.read_file`."""
        return await self._open("read files").read_file(path)

    async def write_file(self, path: str, data: bytes) -> None:
        """Write a file; see `RunningSandbox.write_file`."""
        await self._open("write files").write_file(path, data)

    async def detach(self) -> JsonValue:
        """Let go without deleting; see `RunningSandbox.detach`."""
        return await self._open("be detached").detach()

    async def inventory(self) -> Sequence[str]:
        """Name what exists outside; see `RunningSandbox.inventory`."""
        return await self._open("list what exists").inventory()


class Bounded(RunningSandbox):
    """What one point of a hook holds: its own time is bounded, its commands' is not.

    A command has its own limit, which may be longer than the hook's.
    """

    def __init__(self, sandbox: RunningSandbox, hook: str, seconds: float) -> None:
        self._sandbox = sandbox
        self._hook = hook
        self._seconds = seconds
        self._limit = asyncio.timeout(seconds)
        self._calls = 0
        self._left = seconds
        self.default_timeout_seconds = sandbox.default_timeout_seconds

    async def wait_for(self, point: Awaitable[None]) -> None:
        """Wait for the hook, at most its time.

        Raises:
            SandboxStartError: It did not end in time.
            Exception: Whatever the hook raised.
        """
        try:
            async with self._limit:
                await point
        except TimeoutError as error:
            if not self._limit.expired():
                raise
            raise SandboxStartError(
                f"hook {self._hook} did not end within {self._seconds:g} s; "
                "bound what it waits for outside of its commands"
            ) from error

    @contextmanager
    def _stopped_clock(self) -> Iterator[None]:
        now = asyncio.get_running_loop().time
        self._calls += 1
        when = self._limit.when()
        if self._calls == 1 and when is not None:
            self._left = max(0.0, when - now())
            self._reschedule(None)
        try:
            yield
        finally:
            self._calls -= 1
            if self._calls == 0:
                self._reschedule(now() + self._left)

    def _reschedule(self, when: float | None) -> None:
        with suppress(RuntimeError):  # the hook has ended, and a task it left behind has not
            self._limit.reschedule(when)

    async def execute(
        self, command: str, *, timeout_seconds: float | None = None
    ) -> SandboxExecutionResult:
        """Run a command; see `RunningSandbox.execute`."""
        with self._stopped_clock():
            return await self._sandbox.execute(command, timeout_seconds=timeout_seconds)

    async def read_file(self, path: str) -> bytes:
        """Read a file; see `RunningSandbox.read_file`."""
        return await self._sandbox.read_file(path)

    async def write_file(self, path: str, data: bytes) -> None:
        """Write a file; see `RunningSandbox.write_file`."""
        await self._sandbox.write_file(path, data)

    async def inventory(self) -> Sequence[str]:
        """Name what exists outside; see `RunningSandbox.inventory`."""
        return await self._sandbox.inventory()
