"""What the public documents show, on sandboxes that need no cloud."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from honest.local_process import NETWORK_NAMESPACE, LocalProcess

import sandboxes as agents

if TYPE_CHECKING:
    from sandboxes import OpenRequest
    from sandboxes.experimental import SyncRunningSandbox


class Notes(agents.SandboxHook):
    """Leaves a note in the workspace, and takes it out at the end."""

    def __init__(self, target: str) -> None:
        self.target = target

    async def on_create(self, ctx: agents.SandboxCallbackContext) -> None:
        result = await ctx.sandbox.execute("echo 'All tests: make check' > NOTES.md")
        if result.exit_code != 0:
            raise RuntimeError(f"no note: {result.stderr}")

    async def on_destroy(self, ctx: agents.SandboxCallbackContext) -> None:
        report = await ctx.sandbox.read_file("NOTES.md")
        Path(self.target).write_bytes(report)  # noqa: ASYNC240 - a hook may do it so


class Checkout(agents.SessionInput):
    input_id = "example.checkout"

    provider: str
    repository: str
    revision: str


class RecordCheckout(agents.SandboxHook):
    """Writes down what the session works on."""

    async def on_create(
        self,
        ctx: agents.SandboxCallbackContext,
        *,
        checkout: Annotated[Checkout, agents.Depends()],
    ) -> None:
        line = shlex.quote(f"{checkout.repository}@{checkout.revision}")
        result = await ctx.sandbox.execute(f"echo {line} > CHECKOUT", timeout_seconds=20)
        if result.exit_code != 0:
            raise RuntimeError(f"no record: {result.stderr}")


@pytest.mark.parametrize("runtime", ["in_process", "deployed"])
def test_a_workspace_is_seeded_and_what_the_agent_made_is_taken_out(
    temp: Path, tmp_path: Path, runtime: Any
) -> None:
    target = tmp_path / "saved-notes.md"
    agent = agents.Agent(
        model="a-model",
        environment=agents.BashkitSandbox(hooks=[Notes(str(target))]),
        runtime=runtime,
    )

    async def turn(session: agents.Session) -> None:
        await session.tools["edit_file"]("NOTES.md", "make check", "pytest")

    asyncio.run(agent.run(turn))
    assert target.read_text() == "All tests: pytest\n"
    assert list(temp.iterdir()) == []


def test_a_workspace_is_seeded_from_a_session_input(temp: Path) -> None:
    agent = agents.Agent(
        model="a-model",
        environment=agents.BashkitSandbox(access="files", hooks=[RecordCheckout()]),
    )
    checkout = Checkout(provider="github", repository="it's/$(x)", revision="main")

    async def use() -> None:
        async with agents.local_runtime():
            session = await agent.start_session(session_inputs={Checkout.input_id: checkout})
            assert await session.tools["read_file"]("CHECKOUT") == "it's/$(x)@main\n"

    asyncio.run(use())
    assert list(temp.iterdir()) == []


def test_a_network_is_given_to_the_sandbox_of_an_agent() -> None:
    for network in (
        agents.Network.none(),
        agents.Network.all(),
        agents.Network.allow(hosts=("api.github.com", "packages.example.org")),
    ):
        environment = agents.BashkitSandbox(network=network)
        assert agents.Agent(model="a-model", environment=environment).environment is environment
    local = agents.Network.allow(hosts=("localhost:8000",))
    assert not agents.BashkitSandbox(network=local, block_private_ips=False).block_private_ips


class AtHome(LocalProcess):
    """Processes with a home folder of their own."""

    def __init__(self, home: Path, **options: Any) -> None:
        super().__init__(**options)
        self.home = home

    def start(self, request: OpenRequest) -> SyncRunningSandbox:
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"}
        return self.running_type(NETWORK_NAMESPACE, environ)


@pytest.mark.parametrize("runtime", ["in_process", "deployed"])
def test_commits_carry_the_git_identity(
    temp: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: Any
) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    monkeypatch.setenv("HOME", str(mine))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(mine / "config"))
    identity = agents.pattern.sandbox_hook.GitIdentity(name='-O\'Böt "x" #1', email="bot@acme.com")
    agent = agents.Agent(environment=AtHome(temp, hooks=[identity]), runtime=runtime)

    async def turn(session: agents.Session) -> str:
        done = await session.sandbox.execute(
            "git init -q . && git commit -q --allow-empty -m m && git log --format='%an|%ae|%cn'"
        )
        assert done.exit_code == 0, done.stderr
        return done.stdout

    assert asyncio.run(agent.run(turn)) == '-O\'Böt "x" #1|bot@acme.com|-O\'Böt "x" #1\n'
    assert list(mine.iterdir()) == []
