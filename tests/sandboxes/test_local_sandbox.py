from __future__ import annotations

import asyncio
import inspect
import os
import shutil
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import sandboxes as agents
from conformance.lab.census import Census
from sandboxes import OpenRequest, RunningSandbox, SandboxClosed, SandboxStartError, Session
from sandboxes import workspace as workspaces
from sandboxes.contract import Network, RefusedConfiguration, SandboxError
from sandboxes.local_sandbox import DangerousLocalHostWarning, DangerousLocalSandbox
from sandboxes.pattern.sandbox_hook import GitIdentity
from sandboxes.timeouts import Commands

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

REQUEST = OpenRequest(session_id="s")
PATIENCE = 20.0


class _Quick(DangerousLocalSandbox):
    """Whose processes have less time to end."""

    @staticmethod
    def commands_type() -> Commands:  # type: ignore[override] # called like the class
        return Commands(grace_seconds=0.3)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home and a working folder that may be lost: nothing here knows the real ones."""
    folder = tmp_path / "users" / "home"
    (folder / "work").mkdir(parents=True)
    (folder / "canary").write_text("whole")
    (folder / "work" / "canary").write_text("whole")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("ALLOW_DANGEROUS_LOCAL_HOST", "1")
    monkeypatch.chdir(folder / "work")
    return folder


def built(**options: Any) -> DangerousLocalSandbox:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DangerousLocalHostWarning)
        return _Quick(**options)


def inside(use: Callable[[RunningSandbox], Awaitable[None]], **options: Any) -> None:
    """Open a sandbox, use it, close it, and see that this process is as it was before."""
    before = Census.take(folders=())

    async def run() -> None:
        async with asyncio.timeout(30), built(**options).open(REQUEST) as box:
            await use(box)

    try:
        asyncio.run(run())
    finally:
        deadline = time.monotonic() + PATIENCE
        while left := Census.take(folders=()).left_since(before):
            assert time.monotonic() < deadline, left
            time.sleep(0.02)


async def nothing(box: RunningSandbox) -> None:
    assert (await box.execute("echo $((6 * 7))")).stdout == "42\n"


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


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


# --- the workspace


def base_of(home: Path) -> Path:
    return home / ".cache" / "mistral-vibe-harness-local-host"


def test_without_a_workspace_there_is_a_new_private_one_and_then_nothing(home: Path) -> None:
    folders: list[Path] = []

    async def use(box: RunningSandbox) -> None:
        folder = Path((await box.execute("pwd")).stdout.strip())
        assert folder.parent == base_of(home)
        assert (await box.execute("stat -c %a .")).stdout == "700\n"
        await box.execute("mkdir d; echo x > d/f")
        folders.append(folder)
        if len(folders) == 1:
            async with built().open(REQUEST) as other:  # even under the same id
                assert (await other.execute("ls -A")).stdout == ""

    inside(use)
    assert not (home / ".cache").exists()
    (base_of(home) / "session-of-another").mkdir(parents=True)
    inside(use)
    assert os.listdir(base_of(home)) == ["session-of-another"]
    inside(use, delete_on_cleanup=False)
    assert (folders[-1] / "d" / "f").read_text() == "x\n"


def test_a_named_workspace_is_resolved_made_and_kept(home: Path, tmp_path: Path) -> None:
    async def use(box: RunningSandbox) -> None:
        await box.execute("echo x > f")

    inside(use, workspace="new/folder")
    assert (home / "work" / "new" / "folder" / "f").exists()
    inside(use, workspace=".")
    assert (home / "work" / "f").exists()
    deleted = tmp_path / "a" / "b"
    inside(use, workspace=str(deleted), delete_on_cleanup=True)
    # With the parent that was made for it.
    assert not deleted.parent.exists()
    assert (home / "work" / "canary").read_text() == "whole"


PRECIOUS = {
    "the home": "{home}",
    "what holds the home": "{home}/..",
    "the working folder": "{home}/work",
    "spelled with dots": "{home}/work/../work/.",
    "through a link": "{tmp}/link",
    "through a link in the middle": "{tmp}/link/work",
    "relative": "gone",
    "relative, the working folder": ".",
    "the root": "/",
}


@pytest.mark.parametrize("spelled", PRECIOUS.values(), ids=PRECIOUS.keys())
def test_what_holds_the_home_or_the_working_folder_is_not_deleted(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelled: str
) -> None:
    # Should a guard fail, the test must, and not the machine.
    monkeypatch.setattr(workspaces, "empty_folder", lambda folder: pytest.fail("it is deleted"))
    (tmp_path / "link").symlink_to(home)
    ran: list[bool] = []

    async def use(box: RunningSandbox) -> None:
        ran.append(True)

    text = spelled.format(home=home, tmp=tmp_path)
    with pytest.raises(SandboxStartError, match="must not be deleted"):
        inside(use, workspace=text, delete_on_cleanup=True)
    assert not ran
    assert (home / "canary").read_text() + (home / "work" / "canary").read_text() == "wholewhole"
    assert not (home / "work" / "gone").exists()


def test_a_home_that_is_only_a_link_is_held_by_both_folders(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspaces, "empty_folder", lambda folder: pytest.fail("it is deleted"))
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "me").symlink_to(home)
    monkeypatch.setenv("HOME", str(tmp_path / "links" / "me"))
    monkeypatch.chdir("/")
    for holder in (home.parent, tmp_path / "links"):
        with pytest.raises(SandboxStartError, match="home"):
            inside(nothing, workspace=str(holder), delete_on_cleanup=True)


def test_a_workspace_that_was_swapped_is_not_deleted_nor_what_took_its_place(
    home: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine"
    for target in (home, tmp_path / "other"):
        target.mkdir(exist_ok=True)
        (target / "canary").write_text("whole")

        async def use(box: RunningSandbox, target: Path = target) -> None:
            await box.execute("echo x > f")
            mine.rename(tmp_path / "moved")
            mine.symlink_to(target)

        with pytest.raises(SandboxError, match="nothing was deleted"):
            inside(use, workspace=str(mine), delete_on_cleanup=True)
        assert (target / "canary").read_text() == "whole"
        assert (tmp_path / "moved" / "f").exists()
        shutil.rmtree(tmp_path / "moved")
        mine.unlink()


def test_a_workspace_that_became_precious_is_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"

    async def use(box: RunningSandbox) -> None:
        await box.execute("mkdir deep")
        monkeypatch.chdir(mine / "deep")

    with pytest.raises(SandboxError, match="contains the working folder"):
        inside(use, workspace=str(mine), delete_on_cleanup=True)
    assert (mine / "deep").exists()


def dig(folder: str, depth: int) -> None:
    """Make folders in folders, far beyond what one path can name."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("deep", dir_fd=here)
        below = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def test_deleting_follows_no_link_and_is_stopped_by_no_depth(home: Path) -> None:
    async def use(box: RunningSandbox) -> None:
        text = (
            f"ln -s {home} link; mkdir -p inner/x; ln -s {home} inner/link; mkfifo inner/pipe; pwd"
        )
        # No path, no number of descriptors and no recursion goes that far.
        dig((await box.execute(text)).stdout.strip(), 1500)

    inside(use)
    assert not (home / ".cache").exists()
    assert (home / "canary").read_text() == "whole"


USER = """
import asyncio, sys, warnings
from sandboxes import DangerousLocalSandbox, OpenRequest
from sandboxes.contract import SandboxError
warnings.simplefilter("ignore")
workspace, command = sys.argv[1:]
async def main():
    box = DangerousLocalSandbox(workspace=workspace, delete_on_cleanup=True)
    async with box.open(OpenRequest(session_id="s")) as running:
        done = await running.execute(command)
        print(done.stdout, done.stderr)
try:
    asyncio.run(main())
except SandboxError as error:
    print(error)
"""


def apart(folder: Path, command: str, *flags: str) -> str:
    """What a session says whose process has a user namespace of its own."""
    done = subprocess.run(
        ["unshare", "--user", *flags, sys.executable, "-c", USER, folder, command],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("place", ["a", "a/b"])
def test_deleting_enters_no_mount(tmp_path: Path, place: str) -> None:
    canary = tmp_path / "canary"
    canary.mkdir()
    (canary / "file").write_text("whole")
    # Of the same file system: the number of the device tells nothing.
    command = f"mkdir -p {place} && mount --bind {canary} {place} && ls {place}"
    said = apart(tmp_path / "mine", command, "--map-root-user", "--mount")
    assert said.startswith("file\n"), said
    assert (canary / "file").read_text() == "whole"
    assert "could not be deleted whole" in said


def test_a_folder_that_its_owner_locked_is_deleted_too(tmp_path: Path) -> None:
    # Not mapped to anybody, not even root may ignore the mode.
    command = "mkdir -p a/b/c; touch a/f a/b/f; chmod 0 a/b a; ls a"
    said = apart(tmp_path / "mine", command)
    assert "Permission denied" in said
    assert "deleted" not in said
    assert not (tmp_path / "mine").exists()


def test_a_command_that_deletes_the_workspace_deletes_what_is_in_it(home: Path) -> None:
    async def use(box: RunningSandbox) -> None:
        await box.execute('touch f; rm -r "$PWD"')
        assert (await box.execute("ls -A; echo x > g; cat g")).stdout == "x\n"
        await box.execute('rm -r "$PWD"')
        await box.write_file("a/b", b"x")
        assert await box.read_file("a/b") == b"x"

    inside(use)
    assert not (home / ".cache").exists()


# --- files


def test_files_are_those_that_commands_see(home: Path, tmp_path: Path) -> None:
    every = bytes(range(256)) * 100

    async def use(box: RunningSandbox) -> None:
        await box.write_file("a b/ü/--f", every)
        assert (await box.execute("cat 'a b/ü/--f' | wc -c")).stdout.strip() == str(len(every))
        await box.write_file("a b/ü/--f", b"short")
        assert await box.read_file("a b/ü/--f") == b"short"
        assert (await box.execute("ls -A 'a b/ü'")).stdout == "--f\n"
        await box.execute("printf '\\377\\n' > g; chmod 750 g; ln -s g link; ln -s new dangling")
        assert await box.read_file("link") == b"\xff\n"
        await box.write_file("link", b"x")
        await box.write_file("dangling", b"y")
        shown = await box.execute("stat -c '%a' g; cat g new; readlink link dangling")
        assert shown.stdout == "750\nxyg\nnew\n"
        await box.write_file(str(tmp_path / "outside"), b"z")
        assert (tmp_path / "outside").read_bytes() == b"z"
        # The kernel's files have no size.
        assert (await box.read_file("/proc/self/status")).startswith(b"Name:")

    inside(use)


def test_a_file_is_replaced_at_once_or_not_at_all() -> None:
    async def use(box: RunningSandbox) -> None:
        await box.write_file("f", b"old")
        # Who has it open keeps what it was.
        await box.execute("(exec < f; while [ ! -e new ]; do sleep 0.05; done; cat > seen) &")
        await asyncio.sleep(0.2)
        await box.write_file("f", b"new")
        await box.write_file("new", b"")
        assert (
            await box.execute("until [ -s seen ]; do sleep 0.05; done; cat seen")
        ).stdout == "old"

    inside(use)


def test_what_cannot_be_read_or_written_is_told_with_its_path(tmp_path: Path) -> None:
    async def use(box: RunningSandbox) -> None:
        await box.execute("mkdir d; echo x > f; mkfifo p; ln -s loop loop; ln -s p link")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("s")
            cases: list[tuple[str, type[OSError], type[OSError] | None]] = [
                ("none", FileNotFoundError, None),
                ("none/none", FileNotFoundError, None),
                ("f/none", FileNotFoundError, FileNotFoundError),
                ("d", IsADirectoryError, IsADirectoryError),
                ("d/", IsADirectoryError, IsADirectoryError),
                ("", IsADirectoryError, IsADirectoryError),
                (".", IsADirectoryError, IsADirectoryError),
                ("p", PermissionError, PermissionError),
                ("link", PermissionError, PermissionError),
                ("s", PermissionError, PermissionError),
                ("loop", PermissionError, PermissionError),
                ("n" * 300, PermissionError, PermissionError),
                ("a\0b", PermissionError, PermissionError),
                ("/dev/null", PermissionError, None),
            ]
            for path, reading, writing in cases:
                with pytest.raises(reading) as read:
                    await asyncio.wait_for(box.read_file(path), 5)
                assert read.value.filename == path
                if writing is None:
                    continue
                with pytest.raises(writing) as wrote:
                    await asyncio.wait_for(box.write_file(path, b"x"), 5)
                assert wrote.value.filename == path
        kept = (await box.execute("stat -c %F p s; cat f; ls -A | wc -l")).stdout
        assert kept.split("\n")[:3] == ["fifo", "socket", "x"]

    folder = tmp_path / "w"
    folder.mkdir()
    os.chdir(folder)  # a socket's path must be short; the fixture goes back
    inside(use, workspace=".")
