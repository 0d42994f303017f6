"""HOK: when the two points of a hook come, in which order, and what they can do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from conformance.bounds import BOUNDS
from conformance.marks import alone, needs, verifies
from conformance.probes.agents import an_agent
from conformance.probes.hook_notes import (
    WHOLE,
    Noting,
    RaisingAtTheStart,
    happened,
    new_token,
    note,
    noted,
    told_to_raise,
)
from conformance.probes.leftovers import counting
from conformance.probes.waits import ControlWait
from conformance.requirements import HOK_05, HOK_06, HOK_13, HOK_14, HOK_15
from conformance.subject.blame import shown
from conformance.verdicts import Hang, NotRun, Violation
from sandboxes.contract import SandboxCallbackContext, SandboxHook, SandboxStartError
from sandboxes.runtime import local_runtime
from sandboxes.session import Session
from sandboxes.session_options import Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from conformance.lab.client import Lab
    from conformance.subject.facade import Box
    from conformance.subject.targets import Target
    from sandboxes import Agent

    Way = Callable[[Agent], Coroutine[Any, Any, None]]

_LONG = "sleep 20"
_RUNNING_SECONDS = 0.15
_PROMPT_SECONDS = BOUNDS.kill + BOUNDS.slack
_REMEDY = "end what a cancelled caller waited for, and stay usable for the hooks until the close"


async def _turn(session: Session) -> None:
    await session.sandbox.execute("true")


async def _long_turn(session: Session) -> None:
    await session.sandbox.execute(_LONG, timeout_seconds=30)


async def _by_cancel(agent: Agent) -> None:
    session = await agent.start_session()
    await session.cancel()


async def _by_cancel_during_a_command(agent: Agent) -> None:
    session = await agent.start_session()
    turn = asyncio.ensure_future(session.take_turn(_long_turn))
    await asyncio.sleep(_RUNNING_SECONDS)
    await session.cancel()
    await asyncio.wait({turn})
    turn.exception()


async def _by_number_of_turns(agent: Agent) -> None:
    session = await agent.start_session()
    await session.take_turn(_turn)


async def _by_time_during_a_command(agent: Agent) -> None:
    session = await agent.start_session()
    turn = asyncio.ensure_future(session.take_turn(_long_turn))
    await asyncio.wait({turn})
    turn.exception()
    await session.close()  # waits until it is over


async def _by_the_end_of_a_block(agent: Agent) -> None:
    async with local_runtime():
        await agent.run(_turn)


async def _by_the_end_of_a_run(agent: Agent) -> None:
    await agent.run(_turn)


_WAYS: dict[str, tuple[Way, Limits]] = {
    "cancel": (_by_cancel, Limits()),
    "cancel during a command": (_by_cancel_during_a_command, Limits()),
    "a limit of turns": (_by_number_of_turns, Limits(max_turns=1)),
    "a limit of time during a command": (_by_time_during_a_command, Limits(max_seconds=0.3)),
    "the end of a local_runtime() block": (_by_the_end_of_a_block, Limits()),
    "the end of a run without key": (_by_the_end_of_a_run, Limits()),
}


def _prompt(target: Target, work: Callable[[], Coroutine[Any, Any, None]], what: str) -> None:
    """Let the work close a session, and judge that it took no longer than a close may."""
    control = ControlWait(0.1)
    try:
        target.run(work, what, bound=_PROMPT_SECONDS, remedy=_REMEDY)
    except Hang:
        control.blame_the_sandbox()
        raise


@verifies(HOK_05)
@needs(opens=True)
@pytest.mark.parametrize("name", list(_WAYS))
def test_a_session_closes_in_each_of_the_ways_and_on_destroy_runs(
    target: Target, name: str
) -> None:
    """A session closes on cancel, at a limit, and at the end of its block or run: hooks run."""
    way, limits = _WAYS[name]
    token = new_token()
    agent = an_agent(environment=target.build(hooks=(Noting(token),)), limits=limits)
    _prompt(target, lambda: way(agent), f"closing a session by {name}")
    happened(token, WHOLE, f"after a session that was closed by {name}", _REMEDY)


@verifies(HOK_05)
@needs(opens=True)
def test_a_run_with_a_key_leaves_its_session_open(target: Target) -> None:
    """A run with an idempotency key leaves its session open, and the next one goes on in it."""
    token = new_token()
    agent = an_agent(environment=target.build(hooks=(Noting(token),)))
    seen: list[str] = []

    async def turn(session: Session) -> Session:
        result = await session.sandbox.execute(f"printf x >> {token}.turns; cat {token}.turns")
        seen.append(result.stdout.strip())
        return session

    async def runs() -> None:
        await agent.run(turn, idempotency_key=token)
        seen.append(f"destroyed {noted(token).count('destroyed')} times")
        session = await agent.run(turn, idempotency_key=token)
        await session.close()

    target.run(runs, "two runs with one key", remedy=_REMEDY)
    if seen != ["x", "destroyed 0 times", "xx"]:
        raise Violation(f"two runs with one key saw {seen}", remedy=_REMEDY)
    happened(token, WHOLE, "after the close", _REMEDY)


class Broken(Exception):
    """Raised in a session's block."""


@verifies(HOK_15)
@needs(opens=True)
@pytest.mark.parametrize("during", ["a command", "nothing"])
def test_a_cancelled_task_closes_its_session(target: Target, during: str) -> None:
    """A cancelled task closes its session, `on_destroy` runs, and the caller is told."""
    token = new_token()
    agent = an_agent(environment=target.build(hooks=(Noting(token),)))

    async def block(begun: asyncio.Event) -> None:
        async with await agent.start_session() as session:
            note(token, "began")
            begun.set()
            if during == "nothing":
                await asyncio.sleep(60)
            await _long_turn(session)

    async def cancelled() -> None:
        begun = asyncio.Event()
        task = asyncio.create_task(block(begun))
        waits = {task, asyncio.ensure_future(begun.wait())}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(_RUNNING_SECONDS)
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            error = task.exception()
            ended = "as if nothing had happened" if error is None else f"by {shown(error)}"
            raise Violation(
                f"a task that was cancelled during {during} ended {ended}",
                remedy="pass a cancellation on",
            )

    _prompt(target, cancelled, f"closing a session whose task was cancelled during {during}")
    happened(token, [*WHOLE[:2], "began", *WHOLE[2:]], "after a cancelled task", _REMEDY)


@verifies(HOK_15)
@needs(opens=True)
def test_an_error_in_the_block_closes_its_session(target: Target) -> None:
    """An error in the session's block closes the session, passes on, and `on_destroy` runs."""
    token = new_token()
    agent = an_agent(environment=target.build(hooks=(Noting(token),)))
    error = Broken("raised in the block")

    async def block() -> None:
        async with await agent.start_session():
            raise error

    try:
        target.run(block, "a session with an error in its block", remedy=_REMEDY)
    except Broken:
        pass
    except Exception as other:
        raise Violation(
            f"an error in the block came out as {shown(other)}", remedy="pass errors on"
        ) from other
    happened(token, WHOLE, "after an error in the block", _REMEDY)


class _Ordered(SandboxHook):
    """Note the number that it was built with."""

    def __init__(self, token: str, number: int) -> None:
        self.token = token
        self.number = number

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        """Note it, beside what the sandbox has."""
        note(self.token, self.number)
        await ctx.sandbox.execute("true")

    async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
        """Note it again."""
        await ctx.sandbox.execute("true")
        note(self.token, -self.number)


class _Another(_Ordered):
    """The same, of a type of its own."""


_IN_ORDER = "keep the hooks as they were given: all of them, in their order"


@verifies(HOK_13)
@needs(opens=True)
@pytest.mark.parametrize(
    "kinds",
    [(_Ordered, _Another, _Ordered), (_Another, _Ordered, _Another)],
    ids=["ordered", "another"],
)
@pytest.mark.parametrize("numbers", [(1, 2, 3), (3, 1, 2)], ids=["rising", "mixed"])
def test_hooks_run_in_their_order_and_in_reverse(
    target: Target, kinds: Sequence[type[_Ordered]], numbers: Sequence[int]
) -> None:
    """Hooks run in the listed order at the start, and in reverse at the close."""
    token = new_token()
    hooks = tuple(kind(token, number) for kind, number in zip(kinds, numbers, strict=True))
    with target.session(hooks=hooks):
        happened(token, numbers, "at the start", _IN_ORDER)
    happened(token, [*numbers, *(-one for one in reversed(numbers))], "in a session", _IN_ORDER)


@verifies(HOK_13)
@needs(opens=True)
def test_no_hook_runs_after_one_that_failed(target: Target) -> None:
    """No `on_create` runs after one that failed, and those before it have run."""
    first, failing, later = new_token(), new_token(), new_token()
    told_to_raise(failing, Broken("told to"))
    hooks = (Noting(first), RaisingAtTheStart(failing), Noting(later))
    try:
        with target.session(hooks=hooks):
            pass
    except Violation:
        raise
    except Exception:  # noqa: BLE001 - which one is HOK-02's
        happened(later, [], "behind the hook that failed", _IN_ORDER)
        happened(failing, ["created"], "where one hook failed", _IN_ORDER)
        if noted(first)[:2] != list(WHOLE[:2]):
            raise Violation(
                "the hook before the failing one did not run", remedy=_IN_ORDER
            ) from None
        return
    raise Violation("the session started though a hook had failed", remedy=_IN_ORDER)


_LOOK = "printf out; printf err >&2; pwd; cat {name}; exit 7"


class Looking(SandboxHook):
    """Note what a command and files look like from a hook."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def look(self, ctx: SandboxCallbackContext, name: str) -> None:
        """Run a command that fails, and read a file that is there and one that is not."""
        note(self.token, await ctx.sandbox.execute(_LOOK.format(name=name)))
        note(self.token, await ctx.sandbox.read_file(name))
        try:
            await ctx.sandbox.read_file(f"{name}.missing")
        except Exception as error:  # noqa: BLE001 - the same as the session gets
            note(self.token, type(error))

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        """Look at a file of its own."""
        await ctx.sandbox.execute(f"printf first > {self.token}.first")
        await self.look(ctx, f"{self.token}.first")

    async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
        """Look at a file of the session's."""
        await self.look(ctx, f"{self.token}.last")


def _seen_by_a_session(box: Box, name: str) -> list[object]:
    seen: list[object] = [box.execute(_LOOK.format(name=name)), box.read_file(name)]
    try:
        box.read_file(f"{name}.missing")
    except Exception as error:  # noqa: BLE001 - whichever it is, hooks get the same
        seen.append(type(error))
    return seen


@verifies(HOK_06)
@needs(opens=True)
def test_hooks_run_commands_and_read_files_at_both_points(target: Target) -> None:
    """`ctx.sandbox.execute` and `ctx.sandbox.read_file` work at both points of a hook."""
    token = new_token()
    remedy = "give hooks the sandbox that the session has, from the start to the close"
    with target.session(hooks=(Looking(token),)) as box:
        first = _seen_by_a_session(box, f"{token}.first")
        happened(token, first, "in on_create", remedy)
        box.execute(f"printf last > {token}.last")
        last = _seen_by_a_session(box, f"{token}.last")
    happened(token, [*first, *last], "at both points", remedy)
    if first[1:2] + last[1:2] != [b"first", b"last"]:
        raise NotRun("no file holds what a command wrote, so hooks and session may see nothing")


class Hanging(SandboxHook):
    """Hang at one point, after a command."""

    def __init__(self, token: str, point: str) -> None:
        self.token = token
        self.point = point

    async def hang(self, ctx: SandboxCallbackContext, point: str) -> None:
        """Wait for what never comes, where it is this point."""
        await ctx.sandbox.execute("true")
        note(self.token, point)
        if point == self.point:
            await asyncio.sleep(60)

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        """Hang, or not."""
        await self.hang(ctx, "on_create")

    async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
        """Hang, or not."""
        await self.hang(ctx, "on_destroy")


class _Hurried(Session):
    hook_timeout_seconds = 0.3


@verifies(HOK_14)
@needs(opens=True)
@alone
@pytest.mark.parametrize("point", ["on_create", "on_destroy"])
def test_a_hook_that_hangs_is_bounded(target: Target, lab: Lab, point: str) -> None:
    """A hook that hangs in `on_create` fails the start, one in `on_destroy` keeps no close."""
    token = new_token()

    async def life() -> None:
        sandbox = target.build(hooks=(Hanging(token, point),))
        try:
            session = await _Hurried.start(sandbox, target.request())
        except SandboxStartError as error:
            if "Hanging" not in str(error):
                raise
            note(token, "refused")
        else:
            await session.close()

    with counting(target, lab) as left:
        _prompt(target, life, f"a session whose hook hangs in {point}")
    wanted = ["on_create", "refused" if point == "on_create" else "on_destroy"]
    happened(token, wanted, f"where a hook hangs in {point}", _BOUNDED)
    left.judge(f"after a hook that hung in {point}", _BOUNDED)


_BOUNDED = "let the session run the hooks, which bounds them"
