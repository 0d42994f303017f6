from __future__ import annotations

import asyncio
import copy
import enum
import os
import pickle
import shlex
from asyncio.subprocess import PIPE
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandboxes import (
    RefusedConfiguration,
    RunningSandbox,
    SandboxCallbackContext,
    SandboxExecutionResult,
    SandboxHook,
    SandboxStartError,
)
from sandboxes.pattern.sandbox_hook import GitIdentity

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import JsonValue

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


class Recorded(SandboxHook):
    def __init__(self, first: Any, *, second: Any = None, **rest: Any) -> None:
        self.seen = (first, second, rest)


@given(JSON, JSON, st.dictionaries(st.sampled_from(["x", "y"]), JSON))
@settings(deadline=None)
def test_a_hook_is_rebuilt_from_its_arguments(
    first: JsonValue, second: JsonValue, rest: dict[str, JsonValue]
) -> None:
    hook = Recorded(first, second=second, **rest)
    assert hook.to_unified_state() == {"first": first, "second": second, **rest}
    assert Recorded.from_unified_state(hook.to_unified_state()).seen == hook.seen


def test_the_recorded_arguments_are_those_at_construction() -> None:
    values = [1]
    hook = Recorded(values)
    values.append(2)
    state = hook.to_unified_state()
    state["first"] = None
    assert hook.to_unified_state() == {"first": [1]}


def test_hooks_can_be_copied_and_pickled() -> None:
    hook = Recorded(1, x=2)
    for twin in (copy.deepcopy(hook), pickle.loads(pickle.dumps(hook))):
        assert twin.seen == hook.seen
        assert twin.to_unified_state() == hook.to_unified_state()


class Number(enum.IntEnum):
    ONE = 1


NO_JSON = [object(), (1,), {1: 2}, b"x", {1}, float("nan"), [(1,)], Number.ONE, [{"a": Number.ONE}]]


# HOK-16: it is of the hook's class alone, and no sandbox can break it; so it has no check.
@pytest.mark.parametrize("value", NO_JSON)
def test_an_argument_that_is_no_json_value_raises_and_is_named(value: object) -> None:
    with pytest.raises(RefusedConfiguration, match="Recorded: argument second"):
        Recorded(1, second=value)


def test_a_hook_without_constructor_takes_no_arguments() -> None:
    class Plain(SandboxHook):
        pass

    assert Plain().to_unified_state() == {}
    with pytest.raises(TypeError):
        Plain(second=1)  # type: ignore[call-arg]


def test_a_pair_of_its_own_replaces_the_contract() -> None:
    class Own(SandboxHook):
        def __init__(self, thing: object) -> None:
            self.thing = thing

        def to_unified_state(self) -> dict[str, JsonValue]:
            return {"kind": type(self.thing).__name__}

        @classmethod
        def from_unified_state(cls, state: dict[str, JsonValue]) -> Own:
            return cls({"set": set}[str(state["kind"])]())

    assert Own.from_unified_state(Own({1}).to_unified_state()).thing == set()


class HostShell(RunningSandbox):
    """Runs a hook's commands with a throwaway home."""

    default_timeout_seconds = 10.0

    def __init__(self, home: Path, path: str) -> None:
        self.environ = {"HOME": str(home), "PATH": path, "GIT_CONFIG_NOSYSTEM": "1"}

    async def execute(
        self, command: str, *, timeout_seconds: float | None = None
    ) -> SandboxExecutionResult:
        shell = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", command), env=self.environ, stdout=PIPE, stderr=PIPE
        )
        stdout, stderr = await shell.communicate()
        assert shell.returncode is not None
        return SandboxExecutionResult(shell.returncode, stdout.decode(), stderr.decode())

    async def read_file(self, path: str) -> bytes:
        raise NotImplementedError

    async def write_file(self, path: str, data: bytes) -> None:
        raise NotImplementedError


VALUES = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1).filter(str.strip)


@given(VALUES, VALUES)
@settings(max_examples=15, deadline=None)
def test_the_git_identity_is_set_exactly(
    tmp_path_factory: pytest.TempPathFactory, name: str, email: str
) -> None:
    shell = HostShell(tmp_path_factory.mktemp("home"), os.environ["PATH"])
    hook = GitIdentity(name=name, email=email)
    context = SandboxCallbackContext(shell)
    asyncio.run(hook.on_create(context))
    asyncio.run(hook.on_create(context))  # a kept home: nothing is doubled
    for key, value in (("user.name", name), ("user.email", email)):
        shown = asyncio.run(shell.execute(f"git config --global --get-all -z {key}"))
        assert shown.stdout == f"{value}\0", shlex.quote(value)


@pytest.mark.parametrize("value", ["-x", "--unset", "$(touch canary)", "a'b", "a\nb"])
def test_no_identity_is_taken_for_an_option_or_a_command(tmp_path: Path, value: str) -> None:
    shell = HostShell(tmp_path, os.environ["PATH"])
    asyncio.run(GitIdentity(name=value, email="a@b").on_create(SandboxCallbackContext(shell)))
    shown = asyncio.run(shell.execute("git config --global -z user.name"))
    assert shown.stdout == f"{value}\0"


def test_a_sandbox_without_git_is_said_to_have_none(tmp_path: Path) -> None:
    context = SandboxCallbackContext(HostShell(tmp_path, str(tmp_path)))
    with pytest.raises(SandboxStartError, match=r"git is not in this sandbox .*not found"):
        asyncio.run(GitIdentity(name="a", email="a@b").on_create(context))


def test_a_failing_git_is_shown_with_its_output(tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").mkdir()
    context = SandboxCallbackContext(HostShell(tmp_path, os.environ["PATH"]))
    with pytest.raises(SandboxStartError, match=r"exit code \d+ \(.*\.gitconfig"):
        asyncio.run(GitIdentity(name="a", email="a@b").on_create(context))


@pytest.mark.parametrize("options", [{"name": ""}, {"email": " "}, {"name": "a\0"}])
def test_an_empty_identity_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(RefusedConfiguration, match=next(iter(options))):
        GitIdentity(**({"name": "a", "email": "a@b"} | options))
