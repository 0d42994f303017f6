from __future__ import annotations

import asyncio
import shlex
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import pytest

import sandboxes as agents
from sandboxes import InvalidSessionInput, SandboxHook
from sandboxes.experimental import CustomSandbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sandboxes import OpenRequest, RunningSandbox


class Repository(agents.SessionInput):
    input_id = "acme.repository"

    name: str
    depth: int = 1


class Other(agents.SessionInput):
    input_id = "acme.other"

    text: str


Aliased = Annotated[Repository, agents.Depends()]


class Records(SandboxHook):
    async def on_create(
        self,
        ctx: agents.SandboxCallbackContext,
        *,
        repo: Annotated[Repository, agents.Depends()],
    ) -> None:
        await ctx.sandbox.execute(f"printf %s {shlex.quote(repo.name)} > REPOSITORY")

    async def on_destroy(self, ctx: agents.SandboxCallbackContext, *, repo: Aliased) -> None:
        seen.append((repo, (await ctx.sandbox.read_file("REPOSITORY")).decode()))


class Perhaps(SandboxHook):
    async def on_create(
        self,
        ctx: agents.SandboxCallbackContext,
        *,
        other: Annotated[Other | None, agents.Depends()] = None,
    ) -> None:
        seen.append(other)


def describe(repo: Annotated[Repository, agents.Depends], mark: str = "!") -> str:
    """Say what the session works on."""
    return repo.name + mark


seen: list[Any] = []


@pytest.fixture(autouse=True)
def fresh() -> None:
    seen.clear()


def start(environment: agents.Sandbox | None, inputs: Any, **options: Any) -> None:
    async def use() -> None:
        agent = agents.Agent(environment=environment, **options)
        async with await agent.start_session(session_inputs=inputs) as session:
            seen.extend(sorted(session.tools))

    asyncio.run(use())


@pytest.mark.usefixtures("temp")
@pytest.mark.parametrize("given", [Repository(name="a'b"), {"name": "a'b"}])
def test_hooks_get_their_inputs_at_both_points(given: Any) -> None:
    environment = agents.BashkitSandbox(access="none", hooks=[Records(), Perhaps()])
    start(environment, {Repository.input_id: given})
    assert seen == [None, (Repository(name="a'b"), "a'b")]
    seen.clear()
    start(environment, {Repository.input_id: given, "acme.other": Other(text="x")})
    assert seen[0] == Other(text="x")


@pytest.mark.usefixtures("temp")
def test_tools_get_their_inputs_and_do_not_show_them() -> None:
    async def use() -> None:
        agent = agents.Agent(tools=[describe])
        async with await agent.start_session({Repository.input_id: Repository(name="n")}) as opened:
            assert await opened.tools["describe"]("?") == "n?"
            with pytest.raises(TypeError):
                await opened.tools["describe"](repo=Repository(name="other"))

    asyncio.run(use())
    with pytest.raises(InvalidSessionInput, match=r"tool describe: .*'acme.repository'"):
        start(None, {}, tools=[describe])


class Opened(CustomSandbox):
    @asynccontextmanager
    async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
        seen.append("created")
        async with agents.BashkitSandbox().open(request) as running:
            yield running


class Wrong(SandboxHook):
    async def on_destroy(
        self, ctx: agents.SandboxCallbackContext, *, text: Annotated[str, agents.Depends()]
    ) -> None: ...


class Unnamed(agents.SessionInput):
    pass


class WithoutId(SandboxHook):
    async def on_create(
        self, ctx: agents.SandboxCallbackContext, *, one: Annotated[Unnamed, agents.Depends()]
    ) -> None: ...


class Forgotten(SandboxHook):
    async def on_destroy(self, ctx: agents.SandboxCallbackContext, repo: Repository) -> None: ...


def local_hook() -> SandboxHook:
    class Hidden(agents.SessionInput):
        input_id = "hidden"

    class Local(SandboxHook):
        async def on_create(
            self, ctx: agents.SandboxCallbackContext, *, one: Annotated[Hidden, agents.Depends()]
        ) -> None: ...

    return Local()


ID = Repository.input_id
RECORDS = r"hook Records\.on_create: session input 'acme.repository' \(repo\) "


@pytest.mark.parametrize(
    ("hook", "inputs", "said"),
    [
        (Records(), None, RECORDS + "is missing"),
        (Records(), {ID: Other(text="x")}, RECORDS + "is of type Other"),
        (Records(), {ID: "secret"}, RECORDS + "is of type str"),
        (Records(), {ID: {}}, RECORDS + r"is no Repository \(name: Field required\)"),
        (Records(), {ID: {"name": ["secret"]}}, RECORDS + r"is no Repository \(name: .*string"),
        (Records(), {ID: {"name": "n", "secret": 1}}, RECORDS + r"is no .*\(secret: Extra"),
        (Records(), {ID: {"name": "n"}, "acme.typo": {}}, "'acme.typo' is declared by no hook"),
        (Perhaps(), {"acme.other": 1}, r"hook Perhaps\.on_create: .*'acme.other' \(other\)"),
        (Wrong(), {}, r"hook Wrong\.on_destroy: text is no session input"),
        (WithoutId(), {}, r"hook WithoutId\.on_create: Unnamed has no input_id"),
        (Forgotten(), {}, r"hook Forgotten\.on_destroy: nothing gives repo a value"),
        (local_hook(), {}, r"hook Local\.on_create: the type of one .*Hidden"),
    ],
)
def test_inputs_are_checked_before_anything_is_created(
    hook: SandboxHook, inputs: Any, said: str
) -> None:
    with pytest.raises(InvalidSessionInput, match=said) as raised:
        start(Opened(hooks=[hook]), inputs)
    assert seen == []
    assert "\n" not in str(raised.value)
    if "secret: Extra" not in said:
        assert "secret" not in str(raised.value)


def test_hooks_of_a_sandbox_that_opens_nothing_miss_no_input() -> None:
    start(agents.NoSandbox(hooks=[Records()]), {})
    start(agents.NoSandbox(hooks=[Records()]), {ID: Repository(name="n")})
    with pytest.raises(InvalidSessionInput, match="declared by no hook"):
        start(agents.NoSandbox(hooks=[Records()]), {"acme.typo": 1})


def test_an_input_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Repository(name="n").name = "m"
