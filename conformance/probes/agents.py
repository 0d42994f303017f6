"""Agents and their sessions, for what is asked of a sandbox that has nothing to open."""

from __future__ import annotations

import inspect
import secrets
from typing import TYPE_CHECKING

from conformance.bounds import BOUNDS
from conformance.subject import facade
from conformance.subject.loop import LoopThread
from sandboxes.contract import OpenRequest

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

    from sandboxes import Agent, Sandbox, Session

_REMEDY = "a session starts and closes for every sandbox that was built"


def an_agent(**options: Any) -> Agent:  # noqa: ANN401 - the agent's own options
    """Make an agent, of the class that the documents name."""
    from sandboxes import Agent

    return Agent(**options)


class Stage:
    """An event loop for sessions, there before anything is watched."""

    def __init__(self) -> None:
        self._loop = LoopThread()

    def __enter__(self) -> Self:
        an_agent()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.stop()

    def start(self, agent: Agent) -> Session:
        """Start a session of an agent.

        Raises:
            Exception: Whatever starting it raised.
        """
        call = "starting a session"
        return facade.run(self._loop, agent.start_session, BOUNDS.open, call, _REMEDY)

    def close(self, session: Session) -> None:
        """Close a session."""
        facade.run(self._loop, session.close, BOUNDS.close, "closing the session", _REMEDY)

    def call(self, session: Session, tool: str, *arguments: object) -> object:
        """Let a session's tool do its work, async or not.

        Raises:
            Exception: Whatever the tool raised.
        """

        async def work() -> object:
            result: object = session.tools[tool](*arguments)
            return await result if inspect.isawaitable(result) else result

        return facade.run(self._loop, work, BOUNDS.answer, f"the tool {tool}", _REMEDY)

    def opens(self, sandbox: Sandbox) -> bool:
        """Open a sandbox without a session, and close it; whether that was possible."""

        async def enter() -> bool:
            request = OpenRequest(session_id=f"conformance-{secrets.token_hex(6)}")
            try:
                async with sandbox.open(request):
                    return True
            except Exception:  # noqa: BLE001 - any error is a refusal
                return False

        return facade.run(self._loop, enter, BOUNDS.open, "open()", _REMEDY)
