"""Fifty sessions, each cancelled somewhere in its life, leave the machine as it was."""

from __future__ import annotations

import asyncio
import random
import threading
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from conformance.lab.census import Census
from sandboxes import Agent, BashkitSandbox, DangerousLocalSandbox

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.lab.client import Lab
    from sandboxes.contract import Sandbox

_SESSIONS = 50
# Bashkit keeps a pool of threads that grows with use: those of Python are counted instead.
_KINDS = ("process", "file", "mount", "file entry", "task")
_USES = (
    "echo used > file; cat file",
    "sleep 0.05",
    "(sleep 30; :) & echo left behind",  # a child that outlives its command
    "head -c 300000 /dev/zero | tail -c 1; echo",
)


@pytest.fixture(params=["bashkit", "local"])
def sandbox(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    if request.param == "bashkit":
        yield BashkitSandbox()
        return
    monkeypatch.setenv("ALLOW_DANGEROUS_LOCAL_HOST", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it warns of what it is
        yield DangerousLocalSandbox()


async def _use(agent: Agent, seed: random.Random) -> None:
    session = await agent.start_session()
    try:
        assert session.sandbox is not None
        for _ in range(3):
            await session.sandbox.execute(seed.choice(_USES), timeout_seconds=5)
    finally:
        await session.close()


async def _used_and_cancelled(agent: Agent, seed: random.Random) -> bool:
    task = asyncio.create_task(_use(agent, seed))
    await asyncio.wait({task}, timeout=seed.random() * 0.3)
    cancelled = task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return cancelled


def test_cancelled_sessions_leave_nothing(lab: Lab, sandbox: Sandbox) -> None:
    async def many(count: int) -> int:
        agent, seed = Agent(environment=sandbox), random.Random(20)
        return sum([await _used_and_cancelled(agent, seed) for _ in range(count)])

    with lab.alone():
        asyncio.run(many(2))  # what a backend makes once, and keeps
        before, threads = Census.take(), threading.active_count()
        cancelled = asyncio.run(many(_SESSIONS))
        left = Census.take().left_since(before, _KINDS)
    assert left == []
    assert threading.active_count() == threads
    assert 10 < cancelled < _SESSIONS, "cancelling met both those at work and those that had ended"
