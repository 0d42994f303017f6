"""One session's sandbox, from the backend's `open` to its cleaning up."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from sandboxes.contract import (
    RunningSandbox,
    SandboxCallbackContext,
    SandboxClosed,
    SandboxError,
    SandboxStartError,
    SessionLimitReached,
    acts_as_user,
    messages,
)
from sandboxes.contract.inputs import SessionInputs, declared_inputs
from sandboxes.deployed import DeployedHookPoints
from sandboxes.guard import Guard
from sandboxes.hook_points import HookPoints
from sandboxes.processes import BackgroundProcesses
from sandboxes.session_options import SessionOptions
from sandboxes.threads import to_the_end
from sandboxes.tools import enabled, own_tools, sandbox_tools
from sandboxes.truncation import Truncation
from sandboxes.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from types import TracebackType
    from typing import Self

    from pydantic import JsonValue

    from sandboxes.contract import OpenRequest, Sandbox
    from sandboxes.tools import Tool

T = TypeVar("T")
NO_OPTIONS = SessionOptions()


class Session:
    """A session: its sandbox is open from `start` to `close`.

    One task of its own enters and leaves the backend's context and runs the hooks, so
    that backends may use cancel scopes and task groups, and whoever starts and closes
    the session may be different tasks.

    Attributes:
        hook_timeout_seconds: How long one hook may take at one point, in seconds, beside
            its commands, which have limits of their own.
        running: What the backend yielded; None for a sandbox that runs nothing.
        tools: What a model may call, by name: async functions with their signature.
        session_id: Names the session.
    """

    hook_timeout_seconds: float = 600.0
    tools: Mapping[str, Tool] = MappingProxyType({})

    def __init__(self, sandbox: Sandbox, request: OpenRequest) -> None:
        """Prepare a session; `start` is what opens one."""
        self._configuration = sandbox
        self._request = request
        self._options = NO_OPTIONS
        self._earlier: dict[str, Any] = {}
        self._guard: Guard | None = None
        self._processes: BackgroundProcesses | None = None
        self._turns = Turns()
        self._limit = ""
        self._detached = False
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._life: asyncio.Task[None] | None = None
        self.running: RunningSandbox | None = None
        self.session_id = request.session_id

    @classmethod
    async def start(
        cls, sandbox: Sandbox, request: OpenRequest, options: SessionOptions = NO_OPTIONS
    ) -> Self:
        """Open a sandbox and run its hooks' `on_create`, in order.

        Args:
            sandbox: The configuration.
            request: What this session brings; with what `detach` returned as `resume`,
                the session goes on, and `on_create` does not run a second time.
            options: Inputs, tools and limits.

        Raises:
            InvalidSessionInput: An input is missing, wrong or declared by nobody; nothing
                was created.
            SandboxStartError: The backend could not open it, or hid a hook's error; or it is
                hardened, acts as its caller, and has none: nothing was created then.
            SessionFailed: A hook's `on_create` raised in a deployed session; the sandbox
                is deleted.
            Exception: Whatever a hook's `on_create` raised otherwise, the very object;
                the sandbox is deleted.
        """
        session = cls(sandbox, request)
        session._prepare(options)
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

    def _prepare(self, options: SessionOptions) -> None:
        """Check all that can be checked before anything is created."""
        sandbox, resume = self._configuration, self._request.resume
        if options.deployed and options.hardened:
            self._check_caller()
        if isinstance(resume, dict) and "session" in resume:
            self._earlier = json.loads(json.dumps(resume["session"]))
            self._request = replace(self._request, resume=resume["sandbox"])
            self._turns.taken = self._earlier["turns"]
        given = self._earlier.get("inputs") if options.inputs is None else options.inputs
        points: HookPoints
        if options.deployed:
            points = DeployedHookPoints(
                sandbox, self.hook_timeout_seconds, self._earlier.get("hooks")
            )
        else:
            points = HookPoints(sandbox, self.hook_timeout_seconds)
        declared = points.declared
        for name, tool in options.tools.items():
            declared += declared_inputs(f"tool {name}", tool)
        self._options = options
        self._points = points
        self._inputs = SessionInputs(given, declared)
        if options.deployed:  # what JSON does not hold is lost between the points
            self._inputs = SessionInputs(self._inputs.dump(), declared)
        points.inputs = self._inputs
        if not sandbox.opens:
            self.tools = self._offered({})

    def _check_caller(self) -> None:
        """See that a hardened session has somebody to act for, where it acts for somebody."""
        sandbox = self._configuration
        kinds = sorted({type(one).__name__ for one in sandbox.header_bindings if acts_as_user(one)})
        if kinds and self._request.identity is None:
            raise SandboxStartError(messages.no_caller(type(sandbox).__name__, kinds))

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

        Turns that are under way are cancelled first, but not the one that closes.
        Closing again is harmless. A hook that raises is logged. A cancelled caller
        waits for the end all the same; cancelled twice, it cuts the hooks short.

        Raises:
            Exception: Whatever the backend raised when its context was left.
        """
        if self._life is None:
            return
        first = not self._closing.is_set()
        self._turns.spare_current()
        self._closing.set()
        await self._until_over()
        if first:
            self._raise_failure("did not close")

    async def cancel(self) -> None:
        """End the session; the same as `close`."""
        await self.close()

    async def take_turn(self, turn: Callable[[Session], Awaitable[T]]) -> T:
        """Run one turn of the session: a scripted function instead of a model.

        Args:
            turn: Takes the session.

        Returns:
            What the turn returned.

        Raises:
            SandboxClosed: The session is closed, or was closed during the turn.
            SessionLimitReached: It was closed at a limit, before or during the turn.
            Exception: Whatever the turn raised.
        """
        if self._closing.is_set():
            self._raise_over("take a turn")
        try:
            return await self._turns.take(turn, self)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if self._closing.is_set() and not (caller and caller.cancelling()):
                await self._until_over()
                self._raise_over("finish the turn")
            raise
        finally:
            most = self._options.limits.max_turns
            if most is not None and self._turns.taken >= most and not self._closing.is_set():
                self._limit = f"{most} turns"
                await self.close()

    async def detach(self) -> JsonValue:
        """Leave the session without ending it, and return what continues it elsewhere.

        Neither `on_destroy` runs nor is the sandbox deleted; background processes go
        on. Pass the value as `OpenRequest.resume`, or to `Agent.resume_session`. Turns
        that are under way are cancelled, but not the one that detaches.

        Raises:
            SandboxError: The sandbox does not declare `supports_resume`.
            SandboxClosed: The session is closed.
        """
        if not self._configuration.supports_resume:
            raise SandboxError(
                f"{type(self._configuration).__name__} cannot be detached and resumed; "
                "use a sandbox that declares supports_resume"
            )
        if self._guard is None or self._processes is None or self._closing.is_set():
            raise SandboxClosed(messages.closed("the session", "be detached"))
        self._turns.spare_current()
        await self._turns.end()
        sandbox = await to_the_end(asyncio.ensure_future(self._guard.detach()))
        if self._closing.is_set():  # meanwhile, at a limit or by another caller
            self._raise_over("be detached")
        kept: JsonValue = {
            "id": self.session_id,
            "inputs": self._inputs.dump(),
            "turns": self._turns.taken,
            "processes": self._processes.state,
            "hooks": self._points.state(),
        }
        self._detached = True
        self._closing.set()
        await self._until_over()
        self._raise_failure("did not close")
        return {"session": kept, "sandbox": sandbox}

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

    def _raise_over(self, action: str) -> None:
        if self._limit:
            raise SessionLimitReached(
                f"the session was closed at its limit of {self._limit} and cannot {action}; "
                "start another session, or give the agent wider limits"
            )
        raise SandboxClosed(messages.closed("the session", action))

    async def _live(self) -> None:
        if not self._configuration.opens:
            self._ready.set_result(None)
            await self._until_closed()
            return
        name = type(self._configuration).__name__
        failure: BaseException | None = None
        try:
            async with self._configuration.open(self._request) as running:
                self._take(running)
                try:
                    await self._create()
                except BaseException as error:
                    self._shut()
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

    def _take(self, running: RunningSandbox) -> None:
        """Take the sandbox that the backend yielded into use."""
        self.running = running
        self._guard = Guard(running)
        self._processes = BackgroundProcesses(
            running, type(self._configuration).__name__, self._earlier.get("processes")
        )
        self.tools = self._offered(
            sandbox_tools(
                self._configuration, self._guard, self._processes, Truncation(self._guard)
            )
        )

    def _offered(self, tools: dict[str, Tool]) -> Mapping[str, Tool]:
        own = own_tools(self._options.tools, self._inputs, _ToolContext(self))
        return enabled({**tools, **own}, self._options.disabled_tools)

    async def _create(self) -> None:
        assert self._guard is not None
        if self._request.resume is None:
            await self._points.create(self._guard)
        else:
            await self._points.resume(self._guard)

    async def _until_closed(self) -> None:
        seconds = self._options.limits.max_seconds
        try:
            await asyncio.wait_for(self._closing.wait(), seconds)
        except TimeoutError:
            self._limit = f"{seconds:g} s"
            self._closing.set()
        finally:  # a cancelled task, as at the end of asyncio.run(), closes the session too
            try:
                await self._turns.end()
                await self._destroy()
            finally:
                self._shut()

    async def _destroy(self) -> None:
        if self._guard is None or self._processes is None:
            return
        try:
            if not self._detached:
                await self._points.destroy(self._guard)
        finally:
            if self._detached:
                self._processes.let_go()
            else:
                await self._processes.close()

    def _shut(self) -> None:
        if self._guard is not None:
            self._guard.close()


class _ToolContext(SandboxCallbackContext):
    """What an agent's own tool gets as `ctx`: the sandbox of its session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def sandbox(self) -> RunningSandbox:  # type: ignore[override] # an attribute of the base
        """The running sandbox; see `Session.sandbox`."""
        return self._session.sandbox
