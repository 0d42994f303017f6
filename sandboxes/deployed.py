"""A deployed runtime in one process: hooks that are rebuilt and replayed, and what fails.

Nothing of a hook lives between its points but the arguments it was built with, and
nothing of a session but JSON, with which any process can go on.
"""

from __future__ import annotations

import json
import logging
import os
from typing import TYPE_CHECKING

from sandboxes import hook_points
from sandboxes.contract import RefusedConfiguration, SandboxError, SessionFailed, messages
from sandboxes.hook_points import HookPoints
from sandboxes.replay import RecordedSandbox, Recording, recorded

if TYPE_CHECKING:
    from typing import TextIO

    from pydantic import JsonValue

    from sandboxes.contract import RunningSandbox, Sandbox, SandboxHook
    from sandboxes.hook_points import Point
    from sandboxes.replay import Event

DEBUG_VARIABLE = "AGENTS_SDK_DEBUG"
HOOK_LOGS = (__name__, hook_points.__name__)
"""The loggers that get what hooks raise."""

_log = logging.getLogger(__name__)


class DeployedHookPoints(HookPoints):
    """Rebuilds a hook at each of its points from its unified state.

    Args:
        sandbox: The configuration.
        seconds: How long one hook may take at one point beside its commands.
        state: What `state` gave in an earlier part of the session.

    Raises:
        RefusedConfiguration: The unified state of a hook is no JSON value.
        SandboxError: The earlier part had other hooks.
    """

    def __init__(self, sandbox: Sandbox, seconds: float, state: JsonValue = None) -> None:
        super().__init__(sandbox, seconds)
        if isinstance(state, dict):
            kept = json.loads(json.dumps(state))
        else:
            kept = {"hooks": [_built(hook) for hook in self.hooks], "events": {}}
        self._states: list[tuple[str, dict[str, JsonValue]]] = kept["hooks"]
        self._events: dict[str, list[Event]] = kept["events"]
        names = [type(hook).__name__ for hook in self.hooks]
        if names != [name for name, _ in self._states]:
            raise SandboxError(
                f"the session had the hooks {[name for name, _ in self._states]} and now has "
                f"{names}; resume it with the agent that started it"
            )

    async def resume(self, sandbox: RunningSandbox) -> None:
        """Replay each hook's `on_create`: it sees what it saw, and does nothing again."""
        await self.create(sandbox)

    async def _run(self, number: int, point: Point, sandbox: RunningSandbox) -> None:
        name, state = self._states[number]
        kind = ""
        try:
            hook = type(self.hooks[number]).from_unified_state(json.loads(json.dumps(state)))
            events = self._events.setdefault(f"{number} {point}", [])
            recording = Recording(f"hook {name}.{point}", events)
            with recorded(recording):
                await self._call(hook, number, point, RecordedSandbox(sandbox, recording))
        except Exception as error:
            if point == "on_destroy":
                raise
            kind = type(error).__name__
            _log.exception("sandbox hook %s.%s raised", name, point)
        if kind:  # outside of the handler, so that the error itself is nowhere in this one
            raise SessionFailed(f"sandbox hook {name} raised {kind}; the deployment's log has all")

    def state(self) -> dict[str, JsonValue]:
        """What a later part of the session needs: the hooks' arguments and what they saw."""
        kept: dict[str, JsonValue] = json.loads(
            json.dumps({"hooks": self._states, "events": self._events})
        )
        return kept


def _built(hook: SandboxHook) -> JsonValue:
    name = type(hook).__name__
    try:
        built: JsonValue = json.loads(json.dumps([name, hook.to_unified_state()], allow_nan=False))
    except (TypeError, ValueError) as error:
        raise RefusedConfiguration(messages.no_json_state(name, str(error))) from error
    return built


class ServerLog(logging.StreamHandler):  # type: ignore[type-arg] # any text stream
    """What a server shows of the log: the whole error of a hook only when debugging.

    With `AGENTS_SDK_DEBUG=1` in the environment a failing hook's record is shown with
    its error; otherwise it is left out, and all other records are as they are.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__(stream)
        self.addFilter(_shows)


def _shows(record: logging.LogRecord) -> bool:
    return record.name not in HOOK_LOGS or os.environ.get(DEBUG_VARIABLE) == "1"
