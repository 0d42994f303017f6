from __future__ import annotations

import asyncio
import random
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

import sandboxes as agents
from sandboxes import (
    BashkitSandbox,
    OpenRequest,
    RefusedConfiguration,
    RunningSandbox,
    SandboxClosed,
    SandboxExecutionResult,
    SandboxHook,
    SandboxStartError,
    SessionLimitReached,
)
from sandboxes.experimental import CustomSandbox
from sandboxes.setup_script import run_setup_script

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from sandboxes import Session

log: list[str] = []


@pytest.fixture(autouse=True)
def fresh_log() -> None:
    log.clear()


class Hook(SandboxHook):
    async def on_create(self, ctx: agents.SandboxCallbackContext) -> None:
        await ctx.sandbox.execute("create")

    async def on_destroy(self, ctx: agents.SandboxCallbackContext) -> None:
        await ctx.sandbox.execute("destroy")


class Slow(RunningSandbox):
    """Every call takes a moment, as a point to be cancelled at."""

    default_timeout_seconds = 1.0

    def __init__(self, live: set[object]) -> None:
        self._live = live

    async def execute(
        self, command: str, *, timeout_seconds: float | None = None
    ) -> SandboxExecutionResult:
        token = object()
        self._live.add(token)
        try:
            limit = self.default_timeout_seconds if timeout_seconds is None else timeout_seconds
            await asyncio.sleep(min(limit, 60 if command == "hang" else 0.001))
        finally:
            self._live.discard(token)
        log.append(command)
        return SandboxExecutionResult(124 if command == "hang" else 0, command, "")

    async def read_file(self, path: str) -> bytes:
        raise FileNotFoundError(path)

    async def write_file(self, path: str, data: bytes) -> None: ...


class Box(CustomSandbox):
    """Keeps count of what is open."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.live: set[object] = set()

    @asynccontextmanager
    async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
        token = object()
        self.live.add(token)
        try:
            await asyncio.sleep(0.001)
            running = Slow(self.live)
            await run_setup_script("Box", running, "setup", timeout_seconds=3)
            yield running
        finally:
            await asyncio.sleep(0.001)
            self.live.discard(token)
            log.append("deleted")


WHOLE = ["setup", "create", "use", "destroy", "deleted"]


async def use(session: Session) -> str:
    return (await session.sandbox.execute("use")).stdout


def agent(**options: Any) -> agents.Agent:
    return agents.Agent(environment=Box(hooks=[Hook()]), **options)


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it did not come to that")


def test_a_run_has_a_session_of_its_own_that_closes_with_its_turn() -> None:
    assert asyncio.run(agent().run(use)) == "use"
    assert log == WHOLE


def test_a_failing_turn_closes_the_session_and_its_error_passes() -> None:
    error = RuntimeError("own")

    async def fails(session: Session) -> None:
        raise error

    with pytest.raises(RuntimeError) as raised:
        asyncio.run(agent().run(fails))
    assert raised.value is error
    assert log == ["setup", "create", "destroy", "deleted"]


def test_with_a_key_the_next_run_continues_in_the_session() -> None:
    sessions = []

    async def remember(session: Session) -> None:
        sessions.append(session)
        await use(session)

    async def runs() -> None:
        one = agent()
        await one.run(remember, idempotency_key="k")
        assert "destroy" not in log
        await one.run(remember, idempotency_key="k")
        await one.run(remember, idempotency_key="other")
        assert sessions[0] is sessions[1] is not sessions[2]
        with pytest.raises(agents.SandboxError, match="'k' has its inputs"):
            await one.run(remember, idempotency_key="k", session_inputs={})
        log.clear()
        await sessions[0].cancel()
        assert log == ["destroy", "deleted"]
        with pytest.raises(SandboxClosed, match="closed and cannot take a turn"):
            await one.run(remember, idempotency_key="k")
        assert log == ["destroy", "deleted"]
        await sessions[2].cancel()

    asyncio.run(runs())


def test_runs_at_once_with_one_key_share_a_session_and_take_turns() -> None:
    async def turn(session: Session) -> None:
        log.append("begin")
        await use(session)
        log.append("end")

    async def runs() -> None:
        one = agent()
        await asyncio.gather(*(one.run(turn, idempotency_key="k") for _ in range(3)))

    asyncio.run(runs())  # and a session that nobody closes is closed with its loop
    assert log == ["setup", "create", *["begin", "use", "end"] * 3, "destroy", "deleted"]


def test_in_a_local_runtime_sessions_close_when_the_block_exits() -> None:
    error = RuntimeError("block")

    async def block(fails: bool) -> None:
        async with agents.local_runtime():
            one = agent()
            await one.run(use)
            await one.run(use, idempotency_key="k")
            await one.start_session()
            assert "destroy" not in log
            if fails:
                raise error
        assert log.count("destroy") == log.count("deleted") == 3
        log.clear()
        await one.run(use)  # outside again
        assert log == WHOLE

    asyncio.run(block(fails=False))
    log.clear()
    with pytest.raises(RuntimeError) as raised:
        asyncio.run(block(fails=True))
    assert raised.value is error
    assert log.count("destroy") == log.count("deleted") == 3


def test_leaving_a_cancelled_block_closes_all_sessions() -> None:
    one = agent()

    async def block() -> None:
        async with agents.local_runtime():
            for _ in range(3):
                await one.start_session()
            await asyncio.Event().wait()

    async def cancelled() -> None:
        task = asyncio.create_task(block())
        await until(lambda: log.count("create") == 3)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    asyncio.run(cancelled())
    assert log.count("destroy") == log.count("deleted") == 3


def test_at_the_limit_of_turns_the_session_closes() -> None:
    async def runs() -> None:
        one = agent(limits=agents.Limits(max_turns=2))
        await one.run(use, idempotency_key="k")
        assert "destroy" not in log
        await one.run(use, idempotency_key="k")
        assert log[-2:] == ["destroy", "deleted"]
        with pytest.raises(SessionLimitReached, match="2 turns"):
            await one.run(use, idempotency_key="k")

    asyncio.run(runs())


def test_at_the_limit_of_seconds_the_turn_is_cut_and_the_session_closes() -> None:
    async def hangs(session: Session) -> None:
        try:
            await session.sandbox.execute("hang", timeout_seconds=60)
        finally:
            log.append("cut")

    async def runs() -> None:
        one = agent(limits=agents.Limits(max_seconds=0.2))
        with pytest.raises(SessionLimitReached, match=r"0\.2 s and cannot finish the turn"):
            await one.run(hangs, idempotency_key="k")
        assert log == ["setup", "create", "cut", "destroy", "deleted"]
        idle = await one.start_session()
        await asyncio.sleep(0.3)
        with pytest.raises(SandboxClosed):
            await use(idle)
        assert log[-2:] == ["destroy", "deleted"]

    asyncio.run(runs())


def test_a_turn_may_cancel_its_own_session_and_is_cut_by_anybody_elses() -> None:
    async def own(session: Session) -> str:
        await session.cancel()
        assert log[-1] == "deleted"
        return "went on"

    async def hangs(session: Session) -> None:
        sessions.append(session)
        await asyncio.Event().wait()

    sessions: list[Session] = []

    async def runs() -> None:
        assert await agent().run(own) == "went on"
        running = asyncio.create_task(agent().run(hangs))
        await until(lambda: bool(sessions))
        await sessions[0].cancel()
        with pytest.raises(SandboxClosed, match="cannot finish the turn"):
            await running

    asyncio.run(runs())


def test_a_cancelled_run_is_cancelled_and_closes() -> None:
    async def hangs(session: Session) -> None:
        log.append("hanging")
        await asyncio.Event().wait()

    async def runs() -> None:
        running = asyncio.create_task(agent().run(hangs))
        await until(lambda: "hanging" in log)
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()

    asyncio.run(runs())
    assert log[-2:] == ["destroy", "deleted"]


@pytest.mark.parametrize("seed", range(12))
def test_cancelled_at_any_point_nothing_is_left(seed: int) -> None:
    pick = random.Random(seed)
    box = Box(hooks=[Hook(), Hook()])

    async def block() -> None:
        one = agents.Agent(environment=box)
        async with agents.local_runtime(), asyncio.TaskGroup() as group:
            group.create_task(one.run(use))
            group.create_task(one.run(use, idempotency_key="k"))

    async def alone() -> None:
        await agents.Agent(environment=box).run(use)

    async def cancelled() -> None:
        for kind in (alone, block) * 4:
            task = asyncio.create_task(kind())
            await asyncio.sleep(pick.uniform(0, 0.02))
            task.cancel()
            await asyncio.wait({task})
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert box.live == set()

    asyncio.run(cancelled())


def test_a_hooks_own_time_is_bounded_and_that_of_its_commands_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agents.Session, "hook_timeout_seconds", 0.1)

    class Longer(Hook):
        async def on_create(self, ctx: agents.SandboxCallbackContext) -> None:
            await asyncio.sleep(0.02)
            result = await ctx.sandbox.execute("hang", timeout_seconds=0.3)
            assert result.exit_code == 124
            await asyncio.sleep(0.02)

    class Polls(Hook):
        async def on_create(self, ctx: agents.SandboxCallbackContext) -> None:
            while True:
                await ctx.sandbox.execute("poll")
                await asyncio.sleep(0.01)

    async def start(hook: SandboxHook) -> None:
        await (await agents.Agent(environment=Box(hooks=[hook])).start_session()).close()

    asyncio.run(start(Longer()))
    with pytest.raises(SandboxStartError, match=r"Polls did not end within 0\.1 s"):
        asyncio.run(start(Polls()))
    assert log.count("poll") < 12


def test_the_default_limit_bounds_a_hooks_command(temp: Any) -> None:
    class Short(BashkitSandbox):
        @asynccontextmanager
        async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
            async with super().open(request) as running:
                running.default_timeout_seconds = 0.2
                yield running

    class Sleeps(SandboxHook):
        async def on_create(self, ctx: agents.SandboxCallbackContext) -> None:
            assert ctx.sandbox.default_timeout_seconds == 0.2
            for limit, code in ((None, 124), (5, 0)):
                result = await ctx.sandbox.execute("sleep 0.5", timeout_seconds=limit)
                log.append(str(result.exit_code == code))

    asyncio.run(agents.Agent(environment=Short(hooks=[Sleeps()])).run(use))
    assert log == ["True", "True"]


class Scripted(BashkitSandbox):
    """A Bashkit sandbox with a setup script."""

    def __init__(self, script: str, **options: Any) -> None:
        super().__init__(**options)
        self.script = script

    @asynccontextmanager
    async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
        async with super().open(request) as running:
            await run_setup_script("Scripted", running, self.script, timeout_seconds=0.5)
            yield running


class Reads(SandboxHook):
    async def on_create(self, ctx: agents.SandboxCallbackContext) -> None:
        log.append((await ctx.sandbox.read_file("setup")).decode())


def test_the_setup_script_runs_once_before_the_hooks(temp: Any) -> None:
    asyncio.run(agents.Agent(environment=Scripted("echo x >> setup", hooks=[Reads()])).run(use))
    assert log == ["x\n"]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo out; echo err >&2; exit 3", r"exit code 3; .*out\nerr"),
        ("echo before; sleep 9", r"exit code 124, the code of its limit of 0\.5 s; .*before"),
        (f"printf '{'x' * 9000}'; exit 1", r"was: x{2000}$"),
    ],
)
def test_a_failing_setup_script_fails_the_session_with_its_output(
    temp: Any, script: str, said: str
) -> None:
    with pytest.raises(SandboxStartError, match=r"Scripted: setup_script ended") as raised:
        asyncio.run(agents.Agent(environment=Scripted(script, hooks=[Reads()])).run(use))
    assert re.search(said, str(raised.value), re.DOTALL)
    assert log == []
    assert list(temp.iterdir()) == []


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "1", float("nan")])
def test_limits_are_checked(limit: Any) -> None:
    with pytest.raises(RefusedConfiguration, match="max_turns"):
        agents.Limits(max_turns=limit)
    if limit != 1.5:
        with pytest.raises(RefusedConfiguration, match="max_seconds"):
            agents.Limits(max_seconds=limit)


@pytest.mark.parametrize("options", [{"limits": {}}, {"runtime": "cloud"}, {"limits": 1}])
def test_unusable_options_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(RefusedConfiguration, match=next(iter(options))):
        agents.Agent(**options)


def test_without_git_the_session_does_not_start_and_says_why(temp: Any) -> None:
    identity = agents.pattern.sandbox_hook.GitIdentity(name="Acme Bot", email="bot@acme.com")
    environment = BashkitSandbox(hooks=[identity])
    with pytest.raises(SandboxStartError, match=r"GitIdentity: git is not in this sandbox"):
        asyncio.run(agents.Agent(environment=environment).run(use))
    assert list(temp.iterdir()) == []
