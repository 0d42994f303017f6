"""The hooks of one session at its two ends, in the agent's own process."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from sandboxes.contract import SandboxCallbackContext
from sandboxes.contract.inputs import Declared, SessionInputs, check_all_given, declared_inputs
from sandboxes.guard import Bounded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal

    from pydantic import JsonValue

    from sandboxes.contract import RunningSandbox, Sandbox, SandboxHook

    Point = Literal["on_create", "on_destroy"]

_log = logging.getLogger(__name__)


class HookPoints:
    """Runs the hooks of a sandbox, in order when it is ready, in reverse at the close.

    Attributes:
        hooks: The hooks as they were configured.
        seconds: How long one hook may take at one point beside its commands.
        inputs: The session's inputs; set before the first point.

    Raises:
        InvalidSessionInput: The declaration of an input cannot be read.
    """

    def __init__(self, sandbox: Sandbox, seconds: float) -> None:
        self.hooks: tuple[SandboxHook, ...] = sandbox.hooks
        self.seconds = seconds
        self.inputs = SessionInputs({}, ())
        # Hooks of a sandbox that opens nothing never run and miss no input.
        self._wants = [self._declared(hook, needed=sandbox.opens) for hook in self.hooks]

    @staticmethod
    def _declared(hook: SandboxHook, *, needed: bool) -> Mapping[str, Sequence[Declared]]:
        found = {}
        for point in ("on_create", "on_destroy"):
            user, method = f"hook {type(hook).__name__}.{point}", getattr(hook, point)
            declared = declared_inputs(user, method)
            check_all_given(user, method, declared)
            found[point] = [one if needed else replace(one, optional=True) for one in declared]
        return found

    @property
    def declared(self) -> list[Declared]:
        """What all hooks declare at both points."""
        return [one for wants in self._wants for point in wants.values() for one in point]

    async def create(self, sandbox: RunningSandbox) -> None:
        """Run each hook's `on_create`; after one that raises, none."""
        for number in range(len(self.hooks)):
            await self._run(number, "on_create", sandbox)

    async def resume(self, sandbox: RunningSandbox) -> None:
        """Go on with a session whose `on_create` ran in an earlier part."""

    async def destroy(self, sandbox: RunningSandbox) -> None:
        """Run each hook's `on_destroy`; what one raises is logged."""
        for number in reversed(range(len(self.hooks))):
            try:
                await self._run(number, "on_destroy", sandbox)
            except (Exception, asyncio.CancelledError) as error:
                # A cancellation of something that the hook waited for is the hook's own error.
                task = asyncio.current_task()
                if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
                    raise
                _log.exception("%s.on_destroy raised", type(self.hooks[number]).__name__)

    async def _run(self, number: int, point: Point, sandbox: RunningSandbox) -> None:
        await self._call(self.hooks[number], number, point, sandbox)

    async def _call(
        self, hook: SandboxHook, number: int, point: Point, sandbox: RunningSandbox
    ) -> None:
        bounded = Bounded(sandbox, type(hook).__name__, self.seconds)
        method: Any = getattr(hook, point)
        arguments = self.inputs.arguments(self._wants[number][point])
        await bounded.wait_for(method(SandboxCallbackContext(bounded), **arguments))

    def state(self) -> dict[str, JsonValue]:
        """What a later part of the session needs to know of its hooks."""
        return {}
