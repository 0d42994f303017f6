from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sandboxes import RunningSandbox, SandboxStartError
from sandboxes import workspace as workspaces
from sandboxes.contract import SandboxError
from tests.sandboxes.local_help import REQUEST, built, inside, nothing

pytestmark = pytest.mark.usefixtures("home")


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
