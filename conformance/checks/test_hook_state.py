"""HOK: what a hook is rebuilt from, and that it keeps nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

from hypothesis import example, given
from hypothesis import strategies as st

from conformance.bounds import BOUNDS
from conformance.marks import needs, verifies
from conformance.probes.agents import an_agent
from conformance.probes.hook_notes import happened, new_token, note, noted
from conformance.requirements import HOK_09, HOK_10, HOK_11
from conformance.verdicts import Violation
from sandboxes import now, sleep
from sandboxes.contract import SandboxCallbackContext, SandboxHook

if TYPE_CHECKING:
    from pydantic import JsonValue

    from conformance.subject.targets import Target

_REMEDY = "keep the very hooks that the constructor was given"

_texts = st.text("aZ0 .'\"\\/\n\x00\x7fä漢\N{COMBINING ACUTE ACCENT}\N{GRINNING FACE}", max_size=8)
_leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
)
json_values = st.recursive(
    _leaves | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=6,
)


class Configured(SandboxHook):
    """Take any JSON values, and note what it was built with."""

    def __init__(self, token: str, value: JsonValue = None, **others: JsonValue) -> None:
        self.token = token
        self.value = value
        self.others = others

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        """Note them."""
        note(self.token, [self.value, self.others])

    async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
        """Note them again."""
        note(self.token, [self.value, self.others])


def _deployed_life(target: Target, *hooks: SandboxHook) -> None:
    """Run a deployed session with these hooks from its start to its close."""
    agent = an_agent(environment=target.build(hooks=hooks), runtime="deployed")
    session = target.run(agent.start_session, "starting a deployed session", remedy=_REMEDY)
    target.run(session.close, "closing a deployed session", bound=BOUNDS.close, remedy=_REMEDY)


@verifies(HOK_09)
@given(value=json_values, others=st.dictionaries(st.sampled_from(["a", "path", "on"]), json_values))
@example(value=None, others={"a": None})
@example(value=0, others={"on": False})
@example(value=[1, 1.5, "1", True, None, {"": []}], others={"path": " räuber\n"})
def test_hooks_keep_the_arguments_that_they_were_built_with(
    target: Target, value: JsonValue, others: dict[str, JsonValue]
) -> None:
    """The sandbox's hooks give in `to_unified_state` the arguments that they were built with."""
    given_ones = {"token": "t", "value": value, **others}
    hook, *more = target.build(hooks=(Configured("t", value, **others),)).hooks or [None]
    state = hook.to_unified_state() if isinstance(hook, SandboxHook) and not more else None
    again = type(hook).from_unified_state(state).to_unified_state() if hook and state else None
    if json.dumps(state, sort_keys=True) != json.dumps(given_ones, sort_keys=True):
        raise Violation(f"a hook built with {given_ones} gives the state {state}", remedy=_REMEDY)
    if again != state:
        raise Violation(f"a hook rebuilt from {state} gives the state {again}", remedy=_REMEDY)


@verifies(HOK_09)
@needs(opens=True)
def test_a_deployed_hook_is_built_with_the_same_arguments(target: Target) -> None:
    """In a deployed session both points see the arguments that the hook was built with."""
    token = new_token()
    value: JsonValue = [None, False, 0, 1.5, " räuber\n", {"": []}]
    _deployed_life(target, Configured(token, value, path=None, on=False))
    seen = [value, {"path": None, "on": False}]
    happened(token, [seen, seen], "in a deployed session", _REMEDY)


class Prepared(SandboxHook):
    """Have a pair of state methods of its own, and an argument that is no JSON value."""

    def __init__(self, token: str, path: bytes) -> None:
        self.token = token
        self.path = path

    def to_unified_state(self) -> dict[str, JsonValue]:
        """Write it down in another form."""
        return {"mark": self.token, "hex": self.path.hex()}

    @classmethod
    def from_unified_state(cls, state: dict[str, JsonValue]) -> Self:
        """Read that form."""
        return cls(str(state["mark"]), bytes.fromhex(str(state["hex"])))

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        """Note the argument."""
        note(self.token, self.path)

    async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
        """Note it again."""
        note(self.token, self.path)


@verifies(HOK_10)
@needs(opens=True)
def test_a_hooks_own_pair_of_state_methods_is_used(target: Target) -> None:
    """A hook with its own pair of state methods is rebuilt by that pair, whatever it takes."""
    token = new_token()
    _deployed_life(target, Prepared(token, b"\xff\x00"))
    happened(token, [b"\xff\x00", b"\xff\x00"], "in a deployed session", _REMEDY)


class Remembering(SandboxHook):
    """Try to remember something between its points."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.remembered: list[str] = []

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        """Remember something."""
        self.remembered.append("created")
        note(self.token, list(self.remembered))

    async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
        """Note what is remembered."""
        note(self.token, list(self.remembered))


@verifies(HOK_11)
@needs(opens=True)
def test_a_deployed_hook_keeps_nothing_between_its_points(target: Target) -> None:
    """A deployed hook is rebuilt at each point, and remembers nothing of the one before."""
    token = new_token()
    _deployed_life(target, Remembering(token), Remembering(token))
    happened(token, [["created"], ["created"], [], []], "in a deployed session", _REMEDY)


class Timing(SandboxHook):
    """Note the time, wait, and do something that can be counted."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        """Note the time before and after a wait."""
        began = now()
        await sleep(0.2)
        done = await ctx.sandbox.execute(f"printf x >> {self.token}; cat {self.token}")
        note(self.token, [began.isoformat(), now().isoformat(), done.stdout.strip()])


@verifies(HOK_11)
@needs(opens=True, resume=True)
def test_a_replayed_hook_sees_the_same_time_and_does_nothing_again(target: Target) -> None:
    """A hook that is replayed sees the same times and results, and runs no command again."""
    token = new_token()
    agent = an_agent(environment=target.build(hooks=(Timing(token),)), runtime="deployed")

    async def detached() -> Any:  # noqa: ANN401 - JSON
        session = await agent.start_session()
        return await session.detach()

    async def resumed(state: Any) -> str:  # noqa: ANN401 - JSON
        async with await agent.resume_session(state) as session:
            return (await session.sandbox.execute(f"cat {token}")).stdout.strip()

    state = json.loads(json.dumps(target.run(detached, "detaching a session")))
    marks = target.run(lambda: resumed(state), "resuming a session")
    first, *others = noted(token)
    if marks != "x":
        raise Violation(
            f"a command of a replayed hook ran again: its file holds {marks!r}", remedy=_REPLAY
        )
    if any(one != first for one in others) or not others:
        raise Violation(f"a hook saw {first}, and replayed {others}", remedy=_REPLAY)


_REPLAY = "leave the hooks of a session that is resumed to the session"
