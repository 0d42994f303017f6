"""Where sessions live: within a block of `local_runtime()`, or on their own."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from sandboxes.contract import SandboxClosed
from sandboxes.threads import to_the_end

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from sandboxes.session import Session

_current: ContextVar[LocalRuntime | None] = ContextVar("local_runtime", default=None)


class LocalRuntime:
    """The sessions that were started in one `local_runtime()` block."""

    def __init__(self) -> None:
        self._sessions: list[Session] = []
        self._starting: set[asyncio.Future[None]] = set()
        self._over = False

    async def start(self, starting: Callable[[], Awaitable[Session]]) -> Session:
        """Start a session that closes when the block exits, which waits for it.

        Raises:
            SandboxClosed: The block has exited.
            Exception: What starting it raised.
        """
        if self._over:
            raise SandboxClosed(
                "the local_runtime() block has exited and starts no session; "
                "start sessions within the block"
            )
        over = asyncio.get_running_loop().create_future()
        self._starting.add(over)
        try:
            session = await starting()
            self._sessions.append(session)
            return session
        finally:
            self._starting.discard(over)
            over.set_result(None)

    async def close(self) -> None:
        """Close all sessions, the latest first, each in spite of the others' errors.

        Raises:
            Exception: What closing one raised; an ExceptionGroup of several.
        """
        self._over = True
        while self._starting:
            await asyncio.wait(self._starting)
        errors = []
        for session in reversed(self._sessions):
            try:
                await session.close()
            except Exception as error:  # noqa: BLE001 - raised below, after the others
                errors.append(error)
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise ExceptionGroup("several sessions did not close", errors)


def current_runtime() -> LocalRuntime | None:
    """Return the runtime of the innermost block around the caller."""
    return _current.get()


@asynccontextmanager
async def local_runtime() -> AsyncIterator[LocalRuntime]:
    """Keep the sessions that start in this block open until it exits.

    Yields:
        The runtime.

    Raises:
        Exception: What closing a session raised.
    """
    runtime = LocalRuntime()
    token = _current.set(runtime)
    try:
        yield runtime
    finally:
        try:
            await to_the_end(asyncio.ensure_future(runtime.close()))
        finally:
            _current.reset(token)
