"""An agent: what it is called, where it works, its tools and secrets, and its sessions."""

from __future__ import annotations

import asyncio
import uuid
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from sandboxes.contract import (
    HeaderBinding,
    OpenRequest,
    RefusedConfiguration,
    Sandbox,
    SandboxError,
    SandboxStartError,
    messages,
)
from sandboxes.contract.values import entry_tuple
from sandboxes.no_sandbox import NoSandbox
from sandboxes.runtime import current_runtime
from sandboxes.session import Session
from sandboxes.session_options import NO_LIMITS, Limits, SessionOptions
from sandboxes.tools import sandbox_tool_names

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from pydantic import JsonValue

    Tool = Callable[..., Any]

T = TypeVar("T")
Runtime = Literal["in_process", "deployed"]


class Agent:
    """Starts sessions in one environment.

    Attributes:
        model: Name of the language model.
        name: Name of the agent.
        environment: The sandbox of each session; `NoSandbox()` if None.
        tools: The agent's own tools by their names; every session has them, whatever
            its sandbox offers besides.
        secrets: Values that header bindings pick by `secret_name`.
        disabled_tools: Patterns of the names of tools that its sessions do not get, such
            as `"process.*"`.
        limits: When its sessions close by themselves.
        runtime: `"in_process"`, or `"deployed"`: hooks are rebuilt at each of their
            points and may replay, and a session that fails tells no more than where.
        hardened: Whether a deployed session whose bindings act as a user acts as its caller
            alone. False: without a caller it acts as the user of MISTRAL_API_KEY, who
            deployed the agent.

    Raises:
        RefusedConfiguration: An option is unusable.
    """

    def __init__(
        self,
        model: str | None = None,
        name: str | None = None,
        environment: Sandbox | None = None,
        tools: Sequence[Tool] = (),
        secrets: Mapping[str, str] | None = None,
        disabled_tools: Sequence[str] = (),
        limits: Limits | None = None,
        runtime: Runtime = "in_process",
        hardened: bool = True,
    ) -> None:
        environment = NoSandbox() if environment is None else environment
        if not isinstance(environment, Sandbox):
            raise RefusedConfiguration(
                messages.wrong_option(
                    "Agent", "environment", environment, "pass a sandbox, such as BashkitSandbox()"
                )
            )
        self.model = model
        self.name = name
        self.environment = environment
        self.tools: Mapping[str, Tool] = MappingProxyType(_by_name(tools, environment))
        self.secrets: Mapping[str, str] = MappingProxyType(dict(secrets or {}))
        self.disabled_tools = _patterns(disabled_tools)
        if limits is not None and not isinstance(limits, Limits):
            raise RefusedConfiguration(
                messages.wrong_option("Agent", "limits", limits, "pass agents.Limits(...)")
            )
        self.limits = limits or NO_LIMITS
        if runtime not in get_args(Runtime):
            raise RefusedConfiguration(messages.unknown_runtime())
        self.runtime = runtime
        if not isinstance(hardened, bool):
            raise RefusedConfiguration(
                messages.wrong_option("Agent", "hardened", hardened, "pass True or False")
            )
        self.hardened = hardened
        self._keyed: dict[tuple[str, str | None], _Keyed] = {}

    async def start_session(
        self,
        session_inputs: Mapping[str, object] | None = None,
        *,
        session_id: str | None = None,
        identity: str | None = None,
    ) -> Session:
        """Create the sandbox of a new session, ready to use.

        Args:
            session_inputs: What its hooks and tools work on, by `input_id`.
            session_id: Names the session; a new UUID if None.
            identity: The credential of its caller, as whom bindings act; in process the
                user of MISTRAL_API_KEY if None.

        Raises:
            InvalidSessionInput: An input is missing, wrong, or declared by no hook and
                no tool; nothing was created.
            SandboxStartError: A secret that a binding names is missing or no header
                value, a caller is missing, or the sandbox could not be created.
            SessionFailed: A hook's `on_create` raised in a deployed session.
            Exception: Whatever a hook's `on_create` raised otherwise.
        """
        name = uuid.uuid4().hex if session_id is None else session_id
        return await self._start(name, session_inputs, None, identity)

    async def resume_session(self, state: JsonValue, *, identity: str | None = None) -> Session:
        """Go on with a session that was detached, here or in another process.

        Its workspace and background processes are as they were left, and no `on_create`
        does its work again.

        Args:
            state: What `Session.detach` returned.
            identity: As for `start_session`: the state holds none.

        Raises:
            SandboxError: It is no such value, or of an agent with other hooks.
            Exception: What `start_session` raises.
        """
        try:
            name = state["session"]["id"]  # type: ignore[index, call-overload] # judged here
        except (TypeError, KeyError, IndexError):
            raise SandboxError(
                "the state is none of a detached session; pass what session.detach() returned"
            ) from None
        return await self._start(str(name), None, state, identity)

    async def _start(
        self,
        name: str,
        inputs: Mapping[str, object] | None,
        resume: JsonValue,
        identity: str | None,
    ) -> Session:
        request = OpenRequest(
            session_id=name, secrets=self._bound_secrets(), identity=identity, resume=resume
        )
        options = SessionOptions(
            inputs=inputs,
            tools=self.tools,
            disabled_tools=self.disabled_tools,
            limits=self.limits,
            deployed=self.runtime == "deployed",
            hardened=self.hardened,
        )
        runtime = current_runtime()
        if runtime is None:
            return await Session.start(self.environment, request, options)
        return await runtime.start(lambda: Session.start(self.environment, request, options))

    async def run(
        self,
        turn: Callable[[Session], Awaitable[T]],
        *,
        session_inputs: Mapping[str, object] | None = None,
        idempotency_key: str | None = None,
        identity: str | None = None,
    ) -> T:
        """Run one turn: a scripted function stands for the model.

        Without `idempotency_key` the turn has a session of its own, which closes when
        the turn ends, or, in a `local_runtime()` block, when the block exits. With one,
        the session stays open, and the next run with the same key continues in it.

        Args:
            turn: Takes the session.
            session_inputs: As for `start_session`; left out where the session goes on.
            idempotency_key: Names the session among this agent's and this identity's.
            identity: As for `start_session`.

        Returns:
            What the turn returned.

        Raises:
            SandboxClosed: The session was closed before or during the turn.
            SessionLimitReached: It was closed at a limit.
            Exception: Whatever the turn raised, and what `start_session` raises.
        """
        if idempotency_key is not None:
            return await self._continue(turn, session_inputs, idempotency_key, identity)
        session = await self.start_session(session_inputs, identity=identity)
        if current_runtime() is not None:
            return await session.take_turn(turn)
        async with session:
            return await session.take_turn(turn)

    async def _continue(
        self,
        turn: Callable[[Session], Awaitable[T]],
        inputs: Mapping[str, object] | None,
        key: str,
        identity: str | None,
    ) -> T:
        # What another caller began is not for this one.
        keyed = self._keyed.setdefault((key, identity), _Keyed())
        async with keyed.lock:  # turns of one session come one after another
            if keyed.session is None:
                keyed.session = await self.start_session(inputs, identity=identity)
            elif inputs is not None:
                raise SandboxError(
                    f"the session of idempotency_key {key!r} has its inputs since it started; "
                    "leave session_inputs out, or use another key"
                )
            return await keyed.session.take_turn(turn)

    def _bound_secrets(self) -> Mapping[str, str]:
        """Only what the environment's bindings name, so that nothing else can leak."""
        bound: dict[str, str] = {}
        for binding in self.environment.header_bindings:
            if not isinstance(binding, HeaderBinding):
                continue
            value = self.secrets.get(binding.secret_name)
            if value is None:
                raise SandboxStartError(
                    f"Agent: secret {binding.secret_name!r} is missing; pass it in secrets="
                )
            if not isinstance(value, str) or any(character in value for character in "\r\n\0"):
                raise SandboxStartError(
                    f"Agent: secret {binding.secret_name!r} is no single line of text; "
                    "leave CR, LF and NUL out"
                )
            bound[binding.secret_name] = value
        return MappingProxyType(bound)


class _Keyed:
    """The session of one idempotency key."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.session: Session | None = None


def _patterns(patterns: Sequence[str]) -> tuple[str, ...]:
    accepted = entry_tuple("Agent: disabled_tools", patterns, '("process.*",)')
    for pattern in accepted:
        if not isinstance(pattern, str) or not pattern:
            raise RefusedConfiguration(messages.wrong_tool_pattern())
    return accepted


def _by_name(tools: Sequence[Tool], environment: Sandbox) -> dict[str, Tool]:
    """The tools by the names that a model calls them by."""
    named: dict[str, Tool] = {}
    of_sandbox = sandbox_tool_names(environment)
    for tool in entry_tuple("Agent: tools", tools, "(my_function,)"):
        if not callable(tool):
            raise RefusedConfiguration(
                messages.wrong_option("Agent", "an entry of tools", tool, "pass functions")
            )
        name = getattr(tool, "__name__", "")
        if not name.isidentifier():
            raise RefusedConfiguration(messages.nameless_tool(name or type(tool).__name__))
        if name in named:
            raise RefusedConfiguration(messages.tools_of_one_name(name))
        if name in of_sandbox:
            raise RefusedConfiguration(
                messages.tool_of_the_sandbox(name, type(environment).__name__)
            )
        named[name] = tool
    return named
