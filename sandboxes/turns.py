"""The turns of a session: what stands for an agent's model at work."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sandboxes.session import Session

T = TypeVar("T")

# How long a turn that is cancelled may take to end before the session closes over it.
_END_SECONDS = 5.0
_turn: ContextVar[asyncio.Task[Any] | None] = ContextVar("turn", default=None)


class Turns:
    """The turns of one session that are under way.

    Attributes:
        taken: How many were begun.
    """

    def __init__(self) -> None:
        self.taken = 0
        self._running: set[asyncio.Task[Any]] = set()
        self._spared: set[asyncio.Task[Any] | None] = set()

    async def take(self, turn: Callable[[Session], Awaitable[T]], session: Session) -> T:
        """Run a turn; a cancelled caller cancels it.

        Raises:
            asyncio.CancelledError: The caller or the session's end cancelled it.
            Exception: Whatever the turn raised.
        """
        self.taken += 1
        task = asyncio.create_task(self._run(turn, session), name=f"turn {self.taken}")
        self._running.add(task)
        try:
            return await task  # a cancellation of the caller is the turn's, too
        finally:
            self._running.discard(task)

    @staticmethod
    async def _run(turn: Callable[[Session], Awaitable[T]], session: Session) -> T:
        _turn.set(asyncio.current_task())
        return await turn(session)

    def spare_current(self) -> None:
        """Let the turn that asks for the session's end go on to its own."""
        self._spared.add(_turn.get())

    async def end(self) -> None:
        """Cancel those that run, and wait a moment until they have ended."""
        running = self._running - self._spared
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=_END_SECONDS)
