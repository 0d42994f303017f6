from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import tempfile
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from honest.local_process import LocalProcessRunning

import sandboxes as agents
from sandboxes import (
    BashkitSandbox,
    OpenRequest,
    RunningSandbox,
    SandboxClosed,
    SandboxError,
    SandboxHook,
    SessionFailed,
)
from sandboxes.deployed import ServerLog
from sandboxes.experimental import CustomSandbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pydantic import JsonValue

    from sandboxes import SandboxExecutionResult

SECRET = "canary-value"

log: list[Any] = []


@pytest.fixture(autouse=True)
def fresh(temp: Any) -> None:
    log.clear()
    Kept.boxes.clear()


class Text(agents.SessionInput):
    input_id = "acme.text"

    text: str


class Seeds(SandboxHook):
    """Writes down what it is, sees and does at each of its points."""

    def __init__(self, name: str = "seeds", *, wait: float = 0.05) -> None:
        self.name = name
        self.wait = wait
        self.state = "none"
        log.append(f"built {name}")

    async def on_create(
        self,
        ctx: agents.SandboxCallbackContext,
        *,
        text: Annotated[Text | None, agents.Depends()] = None,
    ) -> None:
        self.state = "lost"
        before = agents.now()
        await agents.sleep(self.wait)
        result = await ctx.sandbox.execute(f"echo {self.name} >> seed; cat seed")
        try:
            await ctx.sandbox.read_file("none")
        except FileNotFoundError as error:
            result = await ctx.sandbox.execute(f"echo {error.filename}")
        log.append([before, agents.now(), result.stdout, text.text if text else None])

    async def on_destroy(self, ctx: agents.SandboxCallbackContext) -> None:
        log.append([self.state, (await ctx.sandbox.read_file("seed")).decode()])


class Fails(SandboxHook):
    async def on_create(self, ctx: agents.SandboxCallbackContext) -> None:
        raise KeyError(SECRET)


class FailsLate(SandboxHook):
    async def on_destroy(self, ctx: agents.SandboxCallbackContext) -> None:
        raise KeyError(SECRET)


class Kept(CustomSandbox):
    """Leaves a detached sandbox behind, and finds it again."""

    supports_resume = True
    supports_background_processes = True
    boxes: dict[str, KeptRunning] = {}  # noqa: RUF012 - stands for a cloud

    @asynccontextmanager
    async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
        if isinstance(request.resume, dict):
            running = self.boxes[str(request.resume["box"])]
        else:
            running = self.boxes[request.session_id] = KeptRunning(request.session_id)
        running.detached = False
        try:
            yield running
        finally:
            if not running.detached:
                self.boxes.pop(request.session_id).blocking.close()


class KeptRunning(RunningSandbox):
    default_timeout_seconds = 30.0

    def __init__(self, name: str) -> None:
        self.name = name
        self.detached = False
        environ = {"PATH": os.environ["PATH"], "HOME": tempfile.gettempdir()}
        self.blocking = LocalProcessRunning((), environ)

    async def execute(
        self, command: str, *, timeout_seconds: float | None = None
    ) -> SandboxExecutionResult:
        limit = timeout_seconds or self.default_timeout_seconds
        return await asyncio.to_thread(self.blocking.execute, command, timeout_seconds=limit)

    async def read_file(self, path: str) -> bytes:
        return self.blocking.read_file(path)

    async def write_file(self, path: str, data: bytes) -> None:
        self.blocking.write_file(path, data)

    async def detach(self) -> JsonValue:
        self.detached = True
        return {"box": self.name}


def agent(environment: agents.Sandbox, **options: Any) -> agents.Agent:
    return agents.Agent(environment=environment, runtime="deployed", **options)


def test_a_hook_is_rebuilt_at_each_point_and_keeps_no_state() -> None:
    async def use() -> None:
        one = agent(BashkitSandbox(hooks=[Seeds("a", wait=0)]))
        assert log == ["built a"]
        async with await one.start_session():
            assert log[1] == "built a"
            assert log[2][2:] == ["none\n", None]
        assert log[3:] == ["built a", ["none", "a\n"]]

    asyncio.run(use())


def test_in_process_a_hook_is_the_one_that_was_given() -> None:
    async def use() -> None:
        one = agents.Agent(environment=BashkitSandbox(hooks=[Seeds("a", wait=0)]))
        await (await one.start_session()).close()

    asyncio.run(use())
    assert log[0] == "built a"
    assert log[2:] == [["lost", "a\n"]]


def test_a_resumed_session_replays_time_and_commands_and_keeps_all_else() -> None:
    async def first(wait: float) -> str:
        session = await agent(Kept(hooks=[Seeds(wait=wait)]), tools=[]).start_session(
            {"acme.text": Text(text="what")}
        )
        await session.sandbox.write_file("mine", b"kept")
        process = await session.tools["process.start"]("echo up; read line; echo got $line")
        state = await session.detach()
        with pytest.raises(SandboxClosed):
            await session.sandbox.execute("true")
        with pytest.raises(SandboxClosed):
            await session.tools["process.list"]()
        await session.close()  # harmless
        return json.dumps([state, process.id])

    async def second(text: str) -> None:
        state, process = json.loads(text)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        session = await agent(Kept(hooks=[Seeds(wait=1.0)])).resume_session(state)
        assert loop.time() - begun < 0.9  # it did not sleep again
        assert session.session_id in Kept.boxes
        assert await session.sandbox.read_file("mine") == b"kept"
        assert await session.sandbox.read_file("seed") == b"seeds\n"
        await session.tools["process.write"](process, "line\n")
        output = await session.tools["process.output"](process)
        while "got" not in output.text:
            output = await session.tools["process.output"](process)
        assert output.text == "up\ngot line\n"
        await session.close()

    kept = asyncio.run(first(1.0))
    before = [entry for entry in log if isinstance(entry, list)]
    assert len(before) == 1  # a detached session destroys nothing
    assert (before[0][1] - before[0][0]).total_seconds() >= 0.99
    assert before[0][3] == "what"
    asyncio.run(second(kept))
    after = [entry for entry in log if isinstance(entry, list)][1:]
    assert after == [before[0], ["none", "seeds\n"]]
    assert Kept.boxes == {}


def test_in_process_a_resumed_session_does_not_create_again() -> None:
    async def use() -> None:
        environment = Kept(hooks=[Seeds(wait=0)])
        one = agents.Agent(environment=environment, limits=agents.Limits(max_turns=2))

        async def turn(session: agents.Session) -> None:
            log.append("turn")

        session = await one.start_session()
        await session.take_turn(turn)
        resumed = await one.resume_session(json.loads(json.dumps(await session.detach())))
        assert resumed.session_id == session.session_id
        assert [type(entry) for entry in log].count(list) == 1
        await resumed.take_turn(turn)  # the second of two
        assert log[-1] == ["lost", "seeds\n"]
        assert Kept.boxes == {}

    asyncio.run(use())


def test_a_hook_that_is_not_the_same_each_time_is_found_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    runs = []

    class Changes(SandboxHook):
        async def on_create(self, ctx: agents.SandboxCallbackContext) -> None:
            runs.append(1)
            await ctx.sandbox.execute(f"echo {len(runs)}")

    async def use() -> None:
        session = await agent(Kept(hooks=[Changes()])).start_session()
        state = await session.detach()
        with pytest.raises(SandboxError, match=r"had the hooks \['Changes'\] and now has \[\]"):
            await agent(Kept()).resume_session(state)
        with pytest.raises(SessionFailed, match="hook Changes raised SandboxError"):
            await agent(Kept(hooks=[Changes()])).resume_session(state)

    asyncio.run(use())
    assert "is not the same each time it runs" in str(caplog.records[-1].exc_info)
    assert Kept.boxes == {}


@pytest.mark.parametrize("state", [None, [], {}, "x", {"session": {}}])
def test_a_state_that_none_detached_is_refused(state: Any) -> None:
    with pytest.raises(SandboxError, match="none of a detached session"):
        asyncio.run(agent(Kept()).resume_session(state))


def test_a_sandbox_that_cannot_be_resumed_is_not_detached() -> None:
    async def use() -> None:
        async with await agent(BashkitSandbox()).start_session() as session:
            with pytest.raises(SandboxError, match="BashkitSandbox cannot be detached"):
                await session.detach()
            assert (await session.sandbox.execute("echo on")).stdout == "on\n"

    asyncio.run(use())


def test_a_failing_hook_is_named_with_its_error_and_nothing_else(
    temp: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def use() -> None:
        await agent(BashkitSandbox(hooks=[Fails(), Seeds()])).start_session()

    with caplog.at_level(logging.ERROR), pytest.raises(SessionFailed) as raised:
        asyncio.run(use())
    assert str(raised.value).startswith("sandbox hook Fails raised KeyError;")
    error: BaseException | None = raised.value
    assert error is not None
    assert error.__cause__ is error.__context__ is None
    assert SECRET not in repr(raised.value.__dict__) + str(raised.value)
    (record,) = caplog.records
    assert record.exc_info is not None
    assert SECRET in str(record.exc_info[1])
    assert log == ["built seeds"]  # no later hook ran
    assert list(temp.iterdir()) == []


def test_a_failing_on_destroy_is_logged_and_the_others_run(
    temp: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def use() -> None:
        one = agent(BashkitSandbox(hooks=[Seeds(wait=0), FailsLate()]))
        await (await one.start_session()).close()

    with caplog.at_level(logging.ERROR):
        asyncio.run(use())
    assert log[-1] == ["none", "seeds\n"]
    assert "FailsLate.on_destroy" in caplog.records[0].getMessage()
    assert SECRET in str(caplog.records[0].exc_info)
    assert list(temp.iterdir()) == []


@pytest.mark.parametrize("hook", [Fails(), FailsLate()])
@pytest.mark.parametrize(("debug", "shown"), [(None, False), ("0", False), ("1", True)])
def test_a_server_shows_the_whole_error_only_when_debugging(
    monkeypatch: pytest.MonkeyPatch, hook: SandboxHook, debug: str | None, shown: bool
) -> None:
    monkeypatch.delenv("AGENTS_SDK_DEBUG", raising=False)
    if debug is not None:
        monkeypatch.setenv("AGENTS_SDK_DEBUG", debug)
    screen = io.StringIO()
    server = ServerLog(screen)
    logging.getLogger().addHandler(server)
    try:
        logging.getLogger("sandboxes.other").error("all else")

        async def use() -> None:
            await (await agent(BashkitSandbox(hooks=[hook])).start_session()).close()

        if isinstance(hook, Fails):
            with pytest.raises(SessionFailed):
                asyncio.run(use())
        else:
            asyncio.run(use())
    finally:
        logging.getLogger().removeHandler(server)
    assert "all else" in screen.getvalue()
    assert (SECRET in screen.getvalue()) is shown
    assert ("Traceback" in screen.getvalue()) is shown


def test_without_a_recording_time_is_the_worlds() -> None:
    async def use() -> None:
        loop = asyncio.get_running_loop()
        begun, first = loop.time(), agents.now()
        await agents.sleep(0.05)
        assert loop.time() - begun >= 0.05
        assert (agents.now() - first).total_seconds() >= 0.05
        assert first.utcoffset() is not None

    asyncio.run(use())


def test_a_hook_of_its_own_pair_is_rebuilt_by_it() -> None:
    class Own(SandboxHook):
        def __init__(self, thing: object) -> None:
            self.thing = thing

        def to_unified_state(self) -> dict[str, JsonValue]:
            return {"kind": "set"}

        @classmethod
        def from_unified_state(cls, state: dict[str, JsonValue]) -> Own:
            return cls(f"a {state['kind']}")

        async def on_create(self, ctx: agents.SandboxCallbackContext) -> None:
            log.append(self.thing)

    class Odd(Own):
        def to_unified_state(self) -> dict[str, JsonValue]:
            return {"kind": {1}}  # type: ignore[dict-item]

    async def use(hook: SandboxHook) -> None:
        await (await agent(BashkitSandbox(hooks=[hook])).start_session()).close()

    asyncio.run(use(Own({1})))
    assert log == ["a set"]
    with pytest.raises(
        agents.RefusedConfiguration, match=r"Odd: to_unified_state\(\) gives no JSON"
    ):
        asyncio.run(use(Odd({1})))


class ActsAsAUser(CustomSandbox):
    """Writes down as whom it was opened."""

    supported_network = frozenset({"all"})
    supported_header_bindings = frozenset({agents.WorkspaceHeaderBindings})

    @asynccontextmanager
    async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
        log.append(request.identity)
        running = KeptRunning(request.session_id)
        try:
            yield running
        finally:
            running.blocking.close()


def acting(**options: Any) -> agents.Agent:
    environment = ActsAsAUser(
        network=agents.Network.all(), header_bindings=(agents.WorkspaceHeaderBindings(),)
    )
    return agents.Agent(environment=environment, **options)


async def nothing(_: agents.Session) -> None:
    pass


def test_a_hardened_session_acts_as_its_caller_and_as_nobody_else() -> None:
    async def use() -> None:
        agent = acting(runtime="deployed")
        await agent.run(nothing, identity="caller")
        with pytest.raises(agents.SandboxStartError, match="acts as the session's caller"):
            await agent.run(nothing)
        await acting(runtime="deployed", hardened=False).run(nothing)
        await acting().run(nothing)
        assert log == ["caller", None, None]

    asyncio.run(use())


def test_a_session_is_continued_by_its_own_caller_alone() -> None:
    async def use() -> None:
        agent = acting(runtime="deployed")
        for caller in ("one", "two", "one"):
            await agent.run(nothing, idempotency_key="key", identity=caller)
        assert log == ["one", "two"]

    asyncio.run(use())


def test_hardened_is_true_or_false() -> None:
    wrong: Any = "no"
    with pytest.raises(agents.RefusedConfiguration, match="hardened"):
        acting(hardened=wrong)
