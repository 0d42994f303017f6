from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from sandboxes import (
    OpenRequest,
    SandboxClosed,
    SandboxError,
    SandboxExecutionResult,
    SandboxStartError,
    sync_sandbox,
)
from sandboxes.experimental import SyncRunningSandbox, SyncSandbox
from sandboxes.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable

REQUEST = OpenRequest(session_id="s")


class Blocking(SyncRunningSandbox):
    default_timeout_seconds = 5.0

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.files: dict[str, bytes] = {}
        self.limits: list[float] = []
        self.killed = threading.Event()
        self.closed = threading.Event()
        self.started = threading.Event()

    def execute(self, command: str, *, timeout_seconds: float) -> SandboxExecutionResult:
        self.threads.append(threading.current_thread())
        self.limits.append(timeout_seconds)
        self.started.set()
        if command == "hang":
            self.killed.wait(20)
            return SandboxExecutionResult(137, "so far", "")
        if command == "never":
            threading.Event().wait(20)
        return SandboxExecutionResult(3, command, "")

    def read_file(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    def write_file(self, path: str, data: bytes) -> None:
        self.files[path] = data

    def kill(self) -> None:
        self.killed.set()

    def close(self) -> None:
        self.closed.set()


class Boxed(SyncSandbox):
    def __init__(self, box: Blocking, before: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self.box = box
        self.before = before

    def start(self, request: OpenRequest) -> SyncRunningSandbox:
        self.before()
        return self.box


@pytest.fixture
def box() -> Blocking:
    return Blocking()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_GRACE_SECONDS", "_AFTER_KILL_SECONDS", "_CANCEL_SECONDS", "_CLOSE_SECONDS"):
        monkeypatch.setattr(sync_sandbox, name, 0.2)


def test_calls_go_through_in_daemon_threads_and_the_sandbox_is_closed(box: Blocking) -> None:
    async def use() -> None:
        async with Boxed(box).open(REQUEST) as running:
            assert (await running.execute("x")).exit_code == 3
            await running.execute("x", timeout_seconds=2)
            await running.write_file("f", b"1")
            assert await running.read_file("f") == b"1"
            with pytest.raises(FileNotFoundError):
                await running.read_file("g")
            with pytest.raises(ValueError, match="timeout_seconds"):
                await running.execute("x", timeout_seconds=0)
        for call in (running.execute("x"), running.read_file("f"), running.write_file("f", b"")):
            with pytest.raises(SandboxClosed):
                await call

    asyncio.run(use())
    assert box.limits == [5.0, 2.0]
    assert all(thread.daemon for thread in box.threads)
    assert box.closed.is_set()
    assert not box.killed.is_set()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("command", "output"), [("hang", "so far"), ("never", "")])
def test_a_call_that_outlives_its_limit_is_killed_and_answered(
    box: Blocking, command: str, output: str
) -> None:
    async def use() -> None:
        async with Boxed(box).open(REQUEST) as running:
            start = time.monotonic()
            result = await running.execute(command, timeout_seconds=0.2)
            assert 0.4 <= time.monotonic() - start < 2
            assert (result.exit_code, result.stdout) == (124, output)
            assert (await running.execute("x")).exit_code == 3

    asyncio.run(use())
    assert box.killed.is_set()


def test_a_cancelled_caller_kills_the_command(box: Blocking) -> None:
    async def use() -> None:
        async with Boxed(box).open(REQUEST) as running:
            task = asyncio.create_task(running.execute("hang"))
            await asyncio.to_thread(box.started.wait, 5)
            task.cancel()
            start = time.monotonic()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert box.killed.is_set()
            assert time.monotonic() - start < 2

    asyncio.run(use())


def test_a_cancelled_caller_kills_its_own_command_where_the_sandbox_can() -> None:
    class Several(Blocking):
        def __init__(self) -> None:
            super().__init__()
            self.one: list[int] = []

        def kill_one(self, thread: int) -> None:
            self.one.append(thread)
            self.killed.set()

    box = Several()

    async def use() -> None:
        async with Boxed(box).open(REQUEST) as running:
            assert running.cancels
            task = asyncio.create_task(running.execute("hang"))
            await asyncio.to_thread(box.started.wait, 5)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(use())
    assert set(box.one) == {box.threads[0].ident}


def test_a_command_that_was_cancelled_before_its_thread_began_is_not_run(box: Blocking) -> None:
    work = sync_sandbox._Command(box, "x", 1.0)
    work.kill()
    assert work.run().exit_code == 124
    assert not box.started.is_set()
    assert not box.killed.is_set()


def test_a_sandbox_that_cannot_kill_says_so() -> None:
    class Cannot(Blocking):
        kill = SyncRunningSandbox.kill

    async def use() -> None:
        async with Boxed(Cannot()).open(REQUEST) as running:
            assert not running.cancels

    asyncio.run(use())


def test_closing_during_a_command_kills_it_and_answers_its_caller(box: Blocking) -> None:
    async def use() -> None:
        async with Boxed(box).open(REQUEST) as running:
            task = asyncio.create_task(running.execute("never"))
            await asyncio.to_thread(box.started.wait, 5)
        with pytest.raises(SandboxClosed):
            await task

    asyncio.run(use())
    assert box.killed.is_set()


def test_an_error_in_the_block_closes_the_sandbox(box: Blocking) -> None:
    async def use() -> None:
        async with Boxed(box).open(REQUEST):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        asyncio.run(use())
    assert box.closed.is_set()


def test_a_failing_start_passes_its_error_and_closes_nothing(box: Blocking) -> None:
    def refuse() -> None:
        raise SandboxStartError("no room")

    async def use() -> None:
        async with Boxed(box, refuse).open(REQUEST):
            pass

    with pytest.raises(SandboxStartError, match="no room"):
        asyncio.run(use())
    assert not box.closed.is_set()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("released", ["before", "after"])
def test_a_sandbox_whose_start_was_cancelled_is_closed_however_late(
    box: Blocking, released: str
) -> None:
    begun, gate = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        gate.wait(5)

    async def use() -> None:
        async with Boxed(box, wait).open(REQUEST):
            raise AssertionError("opened")

    async def run() -> None:
        task = asyncio.create_task(use())
        await asyncio.to_thread(begun.wait, 5)
        if released == "before":
            gate.set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    gate.set()
    assert box.closed.wait(5)


@pytest.mark.usefixtures("impatient")
def test_a_close_that_never_returns_is_reported(
    box: Blocking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(box, "close", lambda: threading.Event().wait(5))

    async def use() -> None:
        async with Boxed(box).open(REQUEST):
            pass

    with pytest.raises(SandboxError, match="Boxed did not close within"):
        asyncio.run(use())


def test_a_hung_call_does_not_keep_the_interpreter_from_exiting() -> None:
    program = """
import asyncio, threading
from sandboxes.threads import in_thread
async def main():
    in_thread(lambda: threading.Event().wait())
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=20, check=False)
    assert done.returncode == 0


def test_a_stop_iteration_reaches_the_caller() -> None:
    async def use() -> None:
        async with asyncio.timeout(5):
            await in_thread(lambda: next(iter(())))

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(use())
