from __future__ import annotations

import asyncio
import inspect
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from honest.local_process import LocalProcess

import sandboxes as agents
from sandboxes import BashkitSandbox, RefusedConfiguration, SandboxClosed, SandboxHook, truncation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from sandboxes import Session

FILES = {"read_file", "write_file", "edit_file", "list_files"}
PROCESSES = {f"process.{name}" for name in ("start", "output", "write", "list", "stop")}

Tools = Any  # a mapping whose functions have signatures of their own


class Background(LocalProcess):
    supports_background_processes = True


def names(environment: agents.Sandbox, **options: Any) -> set[str]:
    async def use() -> set[str]:
        agent = agents.Agent(environment=environment, **options)
        async with await agent.start_session() as session:
            with pytest.raises(TypeError):
                session.tools["more"] = print  # type: ignore[index]
            for tool in session.tools.values():
                assert inspect.iscoroutinefunction(tool)
                assert tool.__doc__
                assert "self" not in inspect.signature(tool).parameters
            return set(session.tools)

    return asyncio.run(use())


@pytest.mark.usefixtures("temp")
def test_the_access_decides_which_tools_there_are() -> None:
    assert names(BashkitSandbox(access="none")) == set()
    assert names(BashkitSandbox(access="files")) == FILES
    assert names(BashkitSandbox()) == {*FILES, "bash"}
    assert names(Background()) == {*FILES, "bash", *PROCESSES}
    assert names(Background(access="files")) == FILES
    assert names(agents.NoSandbox()) == set()


# ACC-04, ours alone: which tools an agent disables no backend hears of, so none can break it.
@pytest.mark.usefixtures("temp")
def test_disabled_tools_are_patterns_of_names() -> None:
    assert names(Background(), disabled_tools=["process.*"]) == {*FILES, "bash"}
    assert names(Background(), disabled_tools=("*_file", "bash", "process.[a-o]*")) == {
        *("list_files", "process.start", "process.write", "process.stop"),
    }
    assert names(BashkitSandbox(), disabled_tools=["process.*", "BASH"]) == {*FILES, "bash"}


@asynccontextmanager
async def session(environment: agents.Sandbox, **options: Any) -> AsyncIterator[Session]:
    async with await agents.Agent(environment=environment, **options).start_session() as opened:
        yield opened


@pytest.fixture(params=[BashkitSandbox, LocalProcess])
def run(request: pytest.FixtureRequest, temp: Any) -> Callable[..., Any]:
    """Run a function over the tools of a session, in both kinds of sandbox."""

    def ran(use: Callable[[Tools, Session], Coroutine[Any, Any, Any]]) -> Any:
        async def whole() -> Any:
            async with session(request.param()) as opened:
                return await use(opened.tools, opened)

        return asyncio.run(whole())

    return ran


def test_tools_hooks_and_commands_see_the_same_files(run: Callable[..., Any]) -> None:
    async def use(tools: Tools, opened: Session) -> None:
        assert await tools["write_file"]("a/ü b.txt", "one\nä\n") == 7
        assert (await tools["bash"]("cat 'a/ü b.txt'")).stdout == "one\nä\n"
        await opened.sandbox.write_file("a/.h", b"")
        await tools["bash"]("mkdir 'a/-d'; echo x > a/-f")
        assert await tools["list_files"]("a") == ["-d/", "-f", ".h", "ü b.txt"]
        assert await tools["list_files"]("a/-d") == []
        assert await tools["list_files"]() == ["a/"]
        assert (await tools["bash"]("exit 3")).exit_code == 3
        assert (await tools["bash"]("sleep 5", timeout_seconds=0.3)).exit_code == 124
        for call in (tools["list_files"]("none"), tools["list_files"]("a/-f; touch no")):
            with pytest.raises(FileNotFoundError, match="no folder"):
                await call
        with pytest.raises(FileNotFoundError):
            await tools["read_file"]("none")

    run(use)


def test_an_edit_changes_that_text_and_no_other_byte(run: Callable[..., Any]) -> None:
    async def use(tools: Tools, opened: Session) -> None:
        before = b"\xef\xbb\xbfone\r\ntwo\\n\xff\r\n$a 'b' one\x00"
        await opened.sandbox.write_file("f", before)
        assert await tools["edit_file"]("f", "two\\n", "zwei\r\n") == 1
        edited = before.replace(b"two\\n", b"zwei\r\n")
        assert await opened.sandbox.read_file("f") == edited
        for old, fact in (("one", "2 times"), ("none", "not in f"), ("", "empty")):
            with pytest.raises(ValueError, match=fact):
                await tools["edit_file"]("f", old, "x")
        assert await opened.sandbox.read_file("f") == edited
        assert await tools["edit_file"]("f", "one", "", replace_all=True) == 2
        assert await opened.sandbox.read_file("f") == edited.replace(b"one", b"")

    run(use)


def test_a_file_is_read_in_parts_that_make_the_whole(run: Callable[..., Any]) -> None:
    async def use(tools: Tools, opened: Session) -> None:
        text = "one\r\n\ntwo\x0cthree\u2028four\nend"
        await opened.sandbox.write_file("f", text.encode())
        parts = [await tools["read_file"]("f", first, 1) for first in (1, 2, 3, 4, 5)]
        assert parts == ["one\r\n", "\n", "two\x0cthree\u2028four\n", "end", ""]
        assert await tools["read_file"]("f", 2) == "".join(parts[1:])
        assert await tools["read_file"]("f") == text
        for numbers in ((0,), (1, 0)):
            with pytest.raises(ValueError, match="from 1"):
                await tools["read_file"]("f", *numbers)

    run(use)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truncation, "MOST_CHARACTERS", 300)
    monkeypatch.setattr(truncation, "_HEAD", 200)
    monkeypatch.setattr(truncation, "_TAIL", 100)


@pytest.mark.usefixtures("temp", "short")
def test_long_output_is_cut_and_kept_where_python_can_write_a_file() -> None:
    async def use() -> None:
        async with session(LocalProcess()) as opened:
            bash = opened.tools["bash"]
            done = await bash("seq 1000; seq 2000 2020 >&2")
            whole = "".join(f"{number}\n" for number in range(1, 1001))
            note = f"{len(whole) - 300} of {len(whole)} characters were left out here"
            path = ".tool-output/bash-stdout-1.txt"
            expected = f"{whole[:200]}\n[{note}; the whole is in {path}]\n{whole[-100:]}"
            assert done.stdout == expected
            assert done.stderr == "".join(f"{number}\n" for number in range(2000, 2021))
            assert await opened.sandbox.read_file(path) == whole.encode()
            assert (await bash("head -c 300 /dev/zero | tr '\\0' x")).stdout == "x" * 300
            await bash("seq 3000 >&2")  # another file, and the first is as it was
            assert await opened.sandbox.read_file(path) == whole.encode()
            assert await opened.tools["list_files"](".tool-output") == [
                "bash-stderr-2.txt",
                "bash-stdout-1.txt",
            ]
            text = await opened.tools["read_file"](path)
            assert "in parts with first_line" in text
            assert len(await opened.tools["list_files"](".tool-output")) == 2

    asyncio.run(use())


@pytest.mark.usefixtures("temp", "short")
def test_long_output_is_cut_in_place_without_python() -> None:
    async def use() -> None:
        async with session(BashkitSandbox()) as opened:
            done = await opened.tools["bash"]("seq 1000")
            assert (
                "\n[3593 of 3893 characters were left out here; they are not kept]\n" in done.stdout
            )
            assert await opened.tools["list_files"]() == []

    asyncio.run(use())


@pytest.mark.usefixtures("temp", "short")
def test_the_files_of_long_outputs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truncation, "MOST_FILE_BYTES", 5000)

    async def use() -> None:
        async with session(LocalProcess()) as opened:
            outputs = [(await opened.tools["bash"]("seq 1000")).stdout for _ in range(2)]
            assert "the whole is in" in outputs[0]
            assert "not kept, since .tool-output is full" in outputs[1]
            assert len(await opened.tools["list_files"](".tool-output")) == 1

    asyncio.run(use())


@pytest.mark.usefixtures("temp")
def test_tools_of_a_closed_session_raise() -> None:
    async def use() -> None:
        async with session(BashkitSandbox()) as opened:
            tools = opened.tools
        for call in (tools["bash"]("true"), tools["read_file"]("f"), tools["list_files"]()):
            with pytest.raises(SandboxClosed):
                await call

    asyncio.run(use())


def double(number: int) -> int:
    """Twice as much."""
    return 2 * number


async def remember(ctx: agents.SandboxCallbackContext, text: str, *more: str) -> str:
    """Write a text down."""
    await ctx.sandbox.write_file("memory", " ".join((text, *more)).encode())
    return (await ctx.sandbox.read_file("memory")).decode()


@pytest.mark.usefixtures("temp")
def test_an_agents_own_tools_are_there_whatever_the_access() -> None:
    async def use() -> None:
        for environment in (BashkitSandbox(access="none"), agents.NoSandbox(), None):
            agent = agents.Agent(environment=environment, tools=[double, remember])
            async with await agent.start_session() as opened:
                assert set(opened.tools) == {"double", "remember"}
                assert await opened.tools["double"](number=4) == 8
                tool = opened.tools["remember"]
                assert str(inspect.signature(tool)).startswith("(text: 'str', *more: 'str')")
                assert tool.__doc__ == "Write a text down."
                if isinstance(environment, BashkitSandbox):
                    assert await tool("a", "b") == "a b"
                else:
                    with pytest.raises(agents.SandboxError, match="runs nothing"):
                        await tool("a")
                with pytest.raises(TypeError):
                    await tool(ctx=None, text="a")

    asyncio.run(use())


def test_a_name_used_twice_is_refused() -> None:
    def bash(command: str) -> str:
        return command

    with pytest.raises(RefusedConfiguration, match="'bash', as a tool of BashkitSandbox"):
        agents.Agent(environment=BashkitSandbox(), tools=[bash])
    agents.Agent(environment=BashkitSandbox(access="files"), tools=[bash])
    with pytest.raises(RefusedConfiguration, match="two entries of tools are called 'double'"):
        agents.Agent(tools=[double, double])


@pytest.mark.parametrize("patterns", ["bash", [1], [""], None])
def test_disabled_tools_that_are_no_patterns_are_refused(patterns: Any) -> None:
    with pytest.raises(RefusedConfiguration, match="disabled_tools"):
        agents.Agent(disabled_tools=patterns)


@pytest.mark.usefixtures("temp")
def test_hooks_work_whatever_the_access() -> None:
    class Seeds(SandboxHook):
        async def on_create(self, ctx: agents.SandboxCallbackContext) -> None:
            assert (await ctx.sandbox.execute("echo seed > f")).exit_code == 0

    async def use() -> None:
        async with session(BashkitSandbox(access="files", hooks=[Seeds()])) as opened:
            assert await opened.tools["read_file"]("f") == "seed\n"

    asyncio.run(use())
