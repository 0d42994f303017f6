from __future__ import annotations

import asyncio
import inspect
import os
from typing import TYPE_CHECKING, Any

import pytest

import sandboxes as agents
from sandboxes import RunningSandbox, SandboxClosed, SandboxStartError, Session
from sandboxes.contract import Network, RefusedConfiguration
from sandboxes.local_sandbox import DangerousLocalHostWarning, DangerousLocalSandbox
from sandboxes.pattern.sandbox_hook import GitIdentity
from tests.sandboxes.local_help import REQUEST, alive, built, inside, nothing

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("home")


# --- building one


@pytest.mark.parametrize("value", [None, "", "0", "true", "1 "])
def test_without_permission_the_constructor_raises_and_says_how_to_allow_it(
    monkeypatch: pytest.MonkeyPatch, home: Path, value: str | None
) -> None:
    monkeypatch.delenv("ALLOW_DANGEROUS_LOCAL_HOST")
    if value is not None:
        monkeypatch.setenv("ALLOW_DANGEROUS_LOCAL_HOST", value)
    # Not even the warning comes first: it is an error in this run.
    with pytest.raises(RefusedConfiguration, match="ALLOW_DANGEROUS_LOCAL_HOST=1"):
        DangerousLocalSandbox()
    assert not (home / ".cache").exists()


def test_building_one_warns_at_the_line_that_does_it_every_time(home: Path) -> None:
    for _ in range(2):
        with pytest.warns(DangerousLocalHostWarning, match=r"NO ISOLATION.*BashkitSandbox") as seen:
            agents.DangerousLocalSandbox()
        assert seen[0].filename == __file__
    assert not (home / ".cache").exists()


def test_it_declares_what_it_is() -> None:
    box = built(access="files")
    assert (box.network, box.access) == (Network.all(), "files")
    assert box.supported_network == {"all"}
    assert (box.has_processes, box.supports_background_processes) == (True, True)
    assert (box.isolated, box.blocks_private_addresses) == (False, False)
    parameters = inspect.signature(DangerousLocalSandbox.__init__).parameters.values()
    assert {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY} == {
        "shell": None,
        "default_exec_timeout_seconds": None,
        "workspace": None,
        "delete_on_cleanup": None,
        "hooks": (),
        "access": None,
    }


class _OwnIdentity(GitIdentity):
    pass


@pytest.mark.parametrize("kind", [GitIdentity, _OwnIdentity])
def test_git_identity_is_refused_because_it_would_change_the_users_own(
    kind: type[GitIdentity],
) -> None:
    with pytest.raises(RefusedConfiguration, match=rf"{kind.__name__}.*~/\.gitconfig"):
        built(hooks=[agents.SandboxHook(), kind(name="a", email="b")])


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("shell", value) for value in ("zsh", "", 1, ["bash"])),
        *(("workspace", value) for value in ("", " ", "a\0b", "~/x", 1, b"/x")),
        *(("delete_on_cleanup", value) for value in (0, 1, "no")),
        *(("default_exec_timeout_seconds", value) for value in (0, -1, float("nan"), "9", True)),
    ],
)
def test_an_unusable_option_is_refused_by_its_name(option: str, value: object) -> None:
    with pytest.raises(RefusedConfiguration, match=option):
        built(**{option: value})


# --- commands


def test_commands_have_the_environment_of_their_time_and_the_shell_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def use(box: RunningSandbox) -> None:
        shown = 'printf "%s %s" "$CANARY" "${BASH_VERSION:+bash}"'
        monkeypatch.setenv("CANARY", "one\nü")
        assert (await box.execute(shown)).stdout == "one\nü bash"
        monkeypatch.setenv("CANARY", "two")
        assert (await box.execute(f"export CANARY=three; {shown}")).stdout == "three bash"
        assert (await box.execute(f"-x; {shown}")).stdout == "two bash"
        assert os.environ["CANARY"] == "two"
        assert (await box.execute("id -u; pwd")).stdout.split("\n")[0] == str(os.geteuid())

    inside(use)

    async def in_sh(box: RunningSandbox) -> None:
        assert (await box.execute("ps -o args= -p $$")).stdout.split()[0].endswith("/sh")
        assert (await box.execute("-x; echo on")).stdout == "on\n"

    inside(in_sh, shell="sh")


def test_a_missing_shell_is_told_before_anything_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxStartError, match="no bash on PATH"):
        inside(nothing)
    assert not (home / ".cache").exists()


def test_output_is_text_even_where_it_is_none_and_limits_are_kept() -> None:
    async def use(box: RunningSandbox) -> None:
        assert box.default_timeout_seconds == 600
        # A character split between two writes, and bytes that are no text.
        text = "printf '\\303'; sleep 0.1; printf '\\274\\377\\0\\r\\n'; printf '\\303' >&2"
        found = await box.execute(text)
        assert (found.stdout, found.stderr) == ("ü\ufffd\0\r\n", "\ufffd")
        late = await box.execute("echo early; printf e >&2; sleep 9", timeout_seconds=0.3)
        assert (late.exit_code, late.stdout) == (124, "early\n")
        assert late.stderr == "e\nsandbox: the command was ended at its limit of 0.3 s\n"
        own = await box.execute("exit 124", timeout_seconds=5)
        assert (own.exit_code, own.stderr) == (124, "")
        for limit in (0, -1, float("nan"), float("inf"), True):
            with pytest.raises(ValueError, match="timeout_seconds"):
                await box.execute("echo x", timeout_seconds=limit)
        for command in ("a\0b", "\ud800"):
            with pytest.raises(ValueError, match="command holds"):
                await box.execute(command)

    inside(use)

    async def default(box: RunningSandbox) -> None:
        assert box.default_timeout_seconds == 1
        short, longer = await asyncio.gather(
            box.execute("sleep 9"), box.execute("sleep 1.3", timeout_seconds=20)
        )
        assert (short.exit_code, longer.exit_code) == (124, 0)

    inside(default, default_exec_timeout_seconds=1)


def test_closing_ends_what_runs_and_refuses_what_comes() -> None:
    seen: list[Any] = []

    async def use(box: RunningSandbox) -> None:
        text = "(trap '' TERM; setsid sleep 30; sleep 30) >/dev/null 2>&1 & echo $!"
        seen.append(int((await box.execute(text)).stdout))
        assert any("process" in line for line in await box.inventory())
        seen.append(asyncio.create_task(box.execute("sleep 30")))
        await asyncio.sleep(0.2)
        seen.append(box)

    async def run() -> None:
        session = await Session.start(built(), REQUEST)
        assert session.running is not None
        await use(session.running)
        pid, task, box = seen
        assert alive(pid)
        await session.close()
        assert not alive(pid)
        with pytest.raises(SandboxClosed):
            await task
        for call in (box.execute("echo x"), box.read_file("f"), box.write_file("f", b"")):
            with pytest.raises(SandboxClosed):
                await call
        await session.close()

    asyncio.run(run())
