"""One session's sandbox, from the backend's `open` to its cleaning up."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from sandboxes.contract import (
    RunningSandbox,
    SandboxCallbackContext,
    SandboxClosed,
    SandboxError,
    SandboxExecutionResult,
    SandboxStartError,
    messages,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence
    from types import TracebackType
    from typing import Self

    from pydantic import JsonValue

    from sandboxes.contract import OpenRequest, Sandbox, SandboxHook

_log = logging.getLogger(__name__)


class Session:
    """A session: its sandbox is open from `start` to `close`.

    One task of its own enters and leaves the backend's context and runs the hooks, so
    that backends may use cancel scopes and task groups, and whoever starts and closes
    the session may be different tasks.

    Attributes:
        hook_timeout_seconds: How long one hook may take at one point, in seconds.
        running: What the backend yielded; None for a sandbox that runs nothing.
    """

    hook_timeout_seconds: float = 600.0

    def __init__(self, sandbox: Sandbox, request: OpenRequest) -> None:
        """Prepare a session; `start` is what opens one."""
        self._configuration = sandbox
        self._request = request
        self._guard: _Guard | None = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._life: asyncio.Task[None] | None = None
        self.running: RunningSandbox | None = None

    @classmethod
    async def start(cls, sandbox: Sandbox, request: OpenRequest) -> Self:
        """Open a sandbox and run its hooks' `on_create`, in order.

        Args:
            sandbox: The configuration.
            request: What this session brings.

        Raises:
            SandboxStartError: The backend could not open it, or hid a hook's error.
            Exception: Whatever a hook's `on_create` raised, the very object; the
                sandbox is deleted.
        """
        session = cls(sandbox, request)
        if not sandbox.opens:
            return session
        session._life = asyncio.create_task(session._live(), name=f"sandbox {request.session_id}")
        ends: set[asyncio.Future[None]] = {session._life, session._ready}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            session._closing.set()  # even a hook that hides the cancellation is the last
            session._life.cancel()
            await session._until_over()
            raise
        if not session._ready.done():
            session._raise_failure("did not start")
        return session

    @property
    def sandbox(self) -> RunningSandbox:
        """The running sandbox; its calls raise `SandboxClosed` after the session.

        Raises:
            SandboxError: The session's sandbox runs nothing.
        """
        if self._guard is None:
            name = type(self._configuration).__name__
            raise SandboxError(
                f"{name} runs nothing and has no sandbox to use; "
                "pass environment= an executable sandbox, such as BashkitSandbox()"
            )
        return self._guard

    async def close(self) -> None:
        """Run the hooks' `on_destroy`, in reverse order, and delete the sandbox.

        Closing again is harmless. A hook that raises is logged. A cancelled caller
        waits for the end all the same; cancelled twice, it cuts the hooks short.

        Raises:
            Exception: Whatever the backend raised when its context was left.
        """
        if self._life is None:
            return
        first = not self._closing.is_set()
        self._closing.set()
        await self._until_over()
        if first:
            self._raise_failure("did not close")

    async def cancel(self) -> None:
        """End the session; the same as `close`."""
        await self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def _until_over(self) -> None:
        assert self._life is not None
        cancelled = None
        while not self._life.done():
            try:
                await asyncio.wait({self._life})
            except asyncio.CancelledError as error:
                if cancelled is not None:
                    self._life.cancel()
                cancelled = error
        if cancelled is not None:
            raise cancelled

    def _raise_failure(self, fact: str) -> None:
        assert self._life is not None
        name = type(self._configuration).__name__
        if self._life.cancelled():
            raise SandboxStartError(f"{name} {fact}: its task was cancelled; start another session")
        error = self._life.exception()
        if error is not None:
            raise error

    async def _live(self) -> None:
        name = type(self._configuration).__name__
        failure: BaseException | None = None
        try:
            async with self._configuration.open(self._request) as running:
                self.running = running
                self._guard = _Guard(running)
                try:
                    await self._create()
                except BaseException as error:
                    self._guard.close()
                    failure = error
                    raise
                self._ready.set_result(None)
                await self._until_closed()
        except Exception as error:
            if failure is None or error is failure or isinstance(failure, asyncio.CancelledError):
                raise
            raise SandboxStartError(
                f"{name} raised {type(error).__name__} when it was left, after a hook had failed; "
                "let the hook's error pass"
            ) from failure
        if failure is not None:
            raise SandboxStartError(
                f"{name} swallowed the {type(failure).__name__} of a hook's on_create; "
                "let errors pass through open()"
            ) from failure
        if not self._ready.done():
            raise SandboxStartError(f"{name} yielded no sandbox; yield one from open()")

    async def _create(self) -> None:
        assert self._guard is not None
        for hook in self._configuration.hooks:
            await self._bounded(hook, hook.on_create(SandboxCallbackContext(self._guard)))

    async def _until_closed(self) -> None:
        assert self._guard is not None
        try:
            await self._closing.wait()
        finally:  # a cancelled task, as at the end of asyncio.run(), closes the session too
            try:
                await self._destroy()
            finally:
                self._guard.close()

    async def _destroy(self) -> None:
        assert self._guard is not None
        for hook in reversed(self._configuration.hooks):
            try:
                await self._bounded(hook, hook.on_destroy(SandboxCallbackContext(self._guard)))
            except Exception:  # noqa: BLE001 - logged whole, so that the other hooks run
                _log.exception("%s.on_destroy raised", type(hook).__name__)

    async def _bounded(self, hook: SandboxHook, point: Awaitable[None]) -> None:
        try:
            async with asyncio.timeout(self.hook_timeout_seconds) as limit:
                await point
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise SandboxStartError(
                f"hook {type(hook).__name__} did not end within {self.hook_timeout_seconds:g} s; "
                "bound its commands with timeout_seconds"
            ) from error


class _Guard(RunningSandbox):
    """What hooks and users hold: the backend's sandbox until the session is over."""

    def __init__(self, running: RunningSandbox) -> None:
        self._running: RunningSandbox | None = running
        self.default_timeout_seconds = running.default_timeout_seconds

    def close(self) -> None:
        self._running = None

    def _open(self, action: str) -> RunningSandbox:
        if self._running is None:
            raise SandboxClosed(messages.closed("the session", action))
        return self._running

    async def execute(
        self, command: str, *, timeout_seconds: float | None = None
    ) -> SandboxExecutionResult:
        return await self._open("run commands").execute(command, timeout_seconds=timeout_seconds)

    async def read_file(self, path: str) -> bytes:
        return await self._open("read files").read_file(path)

    async def write_file(self, path: str, data: bytes) -> None:
        await self._open("write files").write_file(path, data)

    async def detach(self) -> JsonValue:
        return await self._open("be detached").detach()

    async def inventory(self) -> Sequence[str]:
        return await self._open("list what exists").inventory()
