from __future__ import annotations

import asyncio
import contextlib
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

import sandboxes as agents
from sandboxes import (
    Network,
    OpenRequest,
    RunningSandbox,
    SandboxCallbackContext,
    SandboxClosed,
    SandboxError,
    SandboxExecutionResult,
    SandboxHook,
    SandboxStartError,
    Session,
)
from sandboxes.experimental import CustomSandbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

REQUEST = OpenRequest(session_id="s")


class Echo(RunningSandbox):
    default_timeout_seconds = 7.0

    async def execute(
        self, command: str, *, timeout_seconds: float | None = None
    ) -> SandboxExecutionResult:
        return SandboxExecutionResult(0, command, "")

    async def read_file(self, path: str) -> bytes:
        return path.encode()

    async def write_file(self, path: str, data: bytes) -> None:
        pass


class Logged(CustomSandbox):
    """Writes down what happens to it, and in which task."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.log: list[str] = []
        self.tasks: set[object] = set()

    @asynccontextmanager
    async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
        self.tasks.add(asyncio.current_task())
        self.log.append("open")
        try:
            yield Echo()
        except BaseException as error:
            self.log.append(type(error).__name__)
            raise
        finally:
            await asyncio.sleep(0)
            self.tasks.add(asyncio.current_task())
            self.log.append("deleted")


class Hook(SandboxHook):
    def __init__(self, name: str) -> None:
        self.name = name

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        log.append((await ctx.sandbox.execute(f"create {self.name}")).stdout)

    async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
        log.append((await ctx.sandbox.execute(f"destroy {self.name}")).stdout)


class FailsCreate(Hook):
    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        raise error


class FailsDestroy(Hook):
    async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
        await super().on_destroy(ctx)
        raise error


class Hangs(Hook):
    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        log.append("hanging")
        await asyncio.Event().wait()


class HangsLast(Hook):
    async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
        log.append("hanging")
        await asyncio.Event().wait()


error = RuntimeError("the hook's own")
log: list[str] = []


@pytest.fixture(autouse=True)
def fresh_log() -> None:
    log.clear()
    error.__traceback__ = error.__context__ = None


def logged(*hooks: SandboxHook) -> Logged:
    sandbox = Logged(hooks=hooks)
    object.__setattr__(sandbox, "log", log)
    return sandbox


def test_hooks_run_in_order_and_backwards_within_the_sandboxs_life() -> None:
    sandbox = logged(Hook("a"), Hook("b"))

    async def use() -> None:
        async with await Session.start(sandbox, REQUEST) as session:
            log.append((await session.sandbox.execute("use")).stdout)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(use())
    assert log == ["open", "create a", "create b", "use", "destroy b", "destroy a", "deleted"]


def test_the_context_is_entered_and_left_in_one_task_whoever_closes() -> None:
    sandbox = logged()

    async def use() -> None:
        session = await asyncio.create_task(Session.start(sandbox, REQUEST))
        await asyncio.create_task(session.close())

    asyncio.run(use())
    assert len(sandbox.tasks) == 1


def test_the_caller_gets_the_very_exception_of_a_failing_create() -> None:
    sandbox = logged(Hook("a"), FailsCreate("b"), Hook("c"))

    async def use() -> None:
        with pytest.raises(RuntimeError) as raised:
            await Session.start(sandbox, REQUEST)
        assert raised.value is error
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(use())
    assert log == ["open", "create a", "RuntimeError", "deleted"]


def test_a_failing_destroy_is_logged_and_the_rest_still_happens(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sandbox = logged(Hook("a"), FailsDestroy("b"), Hook("c"))

    async def use() -> None:
        await (await Session.start(sandbox, REQUEST)).close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(use())
    assert log[-4:] == ["destroy c", "destroy b", "destroy a", "deleted"]
    (record,) = caplog.records
    assert "FailsDestroy" in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[1] is error


def test_a_cancellation_of_a_hooks_own_ends_no_other_hook(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Cancelled(Hook):
        async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
            task = asyncio.ensure_future(asyncio.sleep(60))
            task.cancel()
            await task

    sandbox = logged(Hook("a"), Cancelled("b"))

    async def use() -> None:
        await (await Session.start(sandbox, REQUEST)).close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(use())
    assert log[-2:] == ["destroy a", "deleted"]
    assert [record.getMessage() for record in caplog.records] == ["Cancelled.on_destroy raised"]


def test_after_the_close_every_call_raises_and_closing_again_does_not() -> None:
    async def use() -> None:
        session = await Session.start(logged(Hook("a")), REQUEST)
        box = session.sandbox
        await session.close()
        await session.cancel()
        calls = (box.execute("x"), box.read_file("x"), box.write_file("x", b""), box.inventory())
        for call in calls:
            with pytest.raises(SandboxClosed):
                await call

    asyncio.run(use())
    assert log.count("destroy a") == log.count("deleted") == 1


def test_two_closers_at_once_close_once() -> None:
    async def use() -> None:
        session = await Session.start(logged(Hook("a")), REQUEST)
        await asyncio.gather(session.close(), session.close())
        assert log[-1] == "deleted"

    asyncio.run(use())
    assert log.count("destroy a") == 1


def test_an_error_in_the_block_closes_the_session_and_passes() -> None:
    async def use() -> None:
        async with await Session.start(logged(Hook("a")), REQUEST):
            raise error

    with pytest.raises(RuntimeError) as raised:
        asyncio.run(use())
    assert raised.value is error
    assert log[-2:] == ["destroy a", "deleted"]


def test_a_cancelled_user_closes_the_session() -> None:
    async def use() -> None:
        async with await Session.start(logged(Hook("a")), REQUEST):
            log.append("waiting")
            await asyncio.Event().wait()

    cancel_when("waiting", use)
    assert log[-2:] == ["destroy a", "deleted"]


def test_a_cancelled_start_leaves_nothing() -> None:
    async def use() -> None:
        await Session.start(logged(Hook("a"), Hangs("b")), REQUEST)

    cancel_when("hanging", use)
    assert log == ["open", "create a", "hanging", "CancelledError", "deleted"]


def test_a_start_that_hides_its_cancellation_is_closed_all_the_same() -> None:
    class Hides(Hangs):
        async def on_create(self, ctx: SandboxCallbackContext) -> None:
            with contextlib.suppress(asyncio.CancelledError):
                await super().on_create(ctx)

    async def use() -> None:
        await Session.start(logged(Hides("a")), REQUEST)

    cancel_when("hanging", use)
    assert log == ["open", "hanging", "destroy a", "deleted"]


def test_a_close_cancelled_twice_cuts_hooks_short_and_still_deletes() -> None:
    async def use() -> None:
        session = await Session.start(logged(Hook("a"), HangsLast("b")), REQUEST)
        await session.close()

    cancel_when("hanging", use, times=2)
    assert log[-3:] == ["hanging", "CancelledError", "deleted"]


def cancel_when(entry: str, use: Any, times: int = 1) -> None:
    """Run `use`, cancel it once the log holds `entry`, and see it end with nothing left."""

    async def run() -> None:
        task = asyncio.create_task(use())
        for _ in range(1000):
            if entry in log:
                break
            await asyncio.sleep(0)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0.01)
        await asyncio.wait({task}, timeout=5)
        assert task.cancelled()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(run())


def test_a_forgotten_session_is_closed_with_its_event_loop() -> None:
    async def use() -> None:
        log.append(str(await Session.start(logged(Hook("a")), REQUEST) is None))

    asyncio.run(use())
    assert log[-3:] == ["destroy a", "CancelledError", "deleted"]


def test_a_hanging_hook_is_bounded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Session, "hook_timeout_seconds", 0.05)

    async def use() -> None:
        with pytest.raises(SandboxStartError, match=r"Hangs did not end within 0.05 s"):
            await Session.start(logged(Hangs("a")), REQUEST)
        await (await Session.start(logged(Hook("b"), HangsLast("c")), REQUEST)).close()

    asyncio.run(use())
    assert log[-2:] == ["destroy b", "deleted"]
    assert "HangsLast did not end" in str(caplog.records[0].exc_info)


def test_a_hooks_own_timeout_error_is_not_taken_for_the_bound() -> None:
    own = TimeoutError("own")

    class Times(Hook):
        async def on_create(self, ctx: SandboxCallbackContext) -> None:
            raise own

    async def use() -> None:
        with pytest.raises(TimeoutError) as raised:
            await Session.start(logged(Times("a")), REQUEST)
        assert raised.value is own

    asyncio.run(use())


@pytest.mark.parametrize(("kind", "said"), [("swallows", "swallowed"), ("replaces", "KeyError")])
def test_a_backend_that_hides_a_hooks_error_is_named(kind: str, said: str) -> None:
    class Hiding(Logged):
        @asynccontextmanager
        async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
            with contextlib.suppress(RuntimeError):
                yield Echo()
            if kind == "replaces":
                raise KeyError(kind)

    async def use() -> None:
        with pytest.raises(SandboxStartError, match=f"Hiding .*{said}") as raised:
            await Session.start(Hiding(hooks=[FailsCreate("a")]), REQUEST)
        assert raised.value.__cause__ is error

    asyncio.run(use())


def test_a_backend_that_fails_to_close_tells_the_closer_after_the_hooks() -> None:
    class Broken(Logged):
        @asynccontextmanager
        async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
            yield Echo()
            raise error

    async def use() -> None:
        session = await Session.start(Broken(hooks=[Hook("a")]), REQUEST)
        with pytest.raises(RuntimeError) as raised:
            await session.close()
        assert raised.value is error
        await session.close()

    asyncio.run(use())
    assert log == ["create a", "destroy a"]


def test_an_agent_without_environment_has_no_sandbox_and_runs_no_hooks() -> None:
    async def use(agent: agents.Agent) -> None:
        async with await agent.start_session() as session:
            assert session.running is None
            with pytest.raises(SandboxError, match="NoSandbox runs nothing"):
                _ = session.sandbox

    asyncio.run(use(agents.Agent()))
    asyncio.run(use(agents.Agent(environment=agents.NoSandbox(hooks=[FailsCreate("a")]))))
    assert log == []


class Bound(Logged):
    supported_network = frozenset({"none", "all"})
    supported_header_bindings = frozenset({agents.HeaderBinding})

    @asynccontextmanager
    async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
        log.append(f"open {dict(request.secrets)}")
        yield Echo()


def start(secrets: dict[str, Any], names: Sequence[str]) -> None:
    bindings = [
        agents.HeaderBinding(host=f"{name}.test".lower(), header="X", secret_name=name)
        for name in names
    ]
    environment = Bound(network=Network.all(), header_bindings=bindings)

    async def use() -> None:
        agent = agents.Agent(environment=environment, secrets=secrets)
        await (await agent.start_session()).close()

    asyncio.run(use())


def test_a_sandbox_gets_the_secrets_that_its_bindings_name_and_no_others() -> None:
    start({"A": "1", "B": "2"}, ["A"])
    assert log == ["open {'A': '1'}"]


@pytest.mark.parametrize("secrets", [{"B": "value"}, {"A": "va\nlue"}, {"A": "value\0"}, {"A": 1}])
def test_an_unusable_secret_raises_before_the_sandbox_is_created(secrets: dict[str, Any]) -> None:
    with pytest.raises(SandboxStartError, match="secret 'A'") as raised:
        start(secrets, ["A"])
    assert "lue" not in str(raised.value)
    assert log == []


def test_an_agent_refuses_an_environment_that_is_no_sandbox() -> None:
    with pytest.raises(agents.RefusedConfiguration, match="environment"):
        agents.Agent(environment=agents.BashkitSandbox)  # type: ignore[arg-type]
