from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandboxes import (
    BashkitSandbox,
    OpenRequest,
    RunningSandbox,
    SandboxClosed,
    SandboxStartError,
    Session,
    output,
)
from sandboxes.contract import SandboxError
from sandboxes.pattern.sandbox_hook import GitIdentity

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

REQUEST = OpenRequest(session_id="s")
BUSY = "echo early; while :; do :; done"
IDLE = "echo early; sleep 30"
JOB = "sleep 30 & wait"

pytestmark = pytest.mark.usefixtures("temp")


def inside(
    use: Callable[[RunningSandbox], Awaitable[None]],
    request: OpenRequest = REQUEST,
    **options: Any,
) -> None:
    """Open a sandbox, use it, and close it."""

    async def run() -> None:
        async with asyncio.timeout(30), BashkitSandbox(**options).open(request) as box:
            await use(box)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(run())


def folders(temp: Path) -> list[Path]:
    return list(temp.iterdir())


def test_commands_share_files_and_nothing_else() -> None:
    async def use(box: RunningSandbox) -> None:
        first = await box.execute("echo one > f; echo two > /tmp/g; export X=1; cd /; exit 3")
        assert first.exit_code == 3
        then = await box.execute('pwd; cat f /tmp/g; printf "%s" "$X"; echo err >&2')
        assert then.stdout == "/workspace\none\ntwo\n"
        assert (then.exit_code, then.stderr) == (0, "err\n")

    inside(use)


@pytest.mark.parametrize("command", [BUSY, IDLE])
def test_a_command_over_its_limit_is_124_and_keeps_its_output(command: str) -> None:
    async def use(box: RunningSandbox) -> None:
        start = time.monotonic()
        result = await box.execute(command, timeout_seconds=0.5)
        assert 0.5 <= time.monotonic() - start < 3
        assert (result.exit_code, result.stdout) == (124, "early\n")
        assert "0.5 s" in result.stderr
        assert (await box.execute("echo on")).stdout == "on\n"

    inside(use)


def test_a_builtin_that_never_looks_at_the_clock_is_answered_too(temp: Path) -> None:
    # In a process of its own, because the builtin's thread goes on for seconds.
    program = """
import asyncio, time
from sandboxes import BashkitSandbox, OpenRequest
async def main():
    async with BashkitSandbox().open(OpenRequest(session_id="s")) as box:
        start = time.monotonic()
        result = await box.execute("awk 'BEGIN{while(1);}'", timeout_seconds=0.5)
        print(result.exit_code, time.monotonic() - start < 0.5 + 5)
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"TMPDIR": str(temp)},
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.stdout == b"124 True\n", done.stderr
    assert folders(temp) == []


def test_a_command_in_time_may_itself_say_124_or_the_words_of_a_timeout() -> None:
    async def use(box: RunningSandbox) -> None:
        assert (await box.execute("exit 124")).stderr == ""
        words = "resource limit exceeded: execution timeout (1s)"
        result = await box.execute(f"echo '{words}' >&2; exit 1")
        assert (result.exit_code, result.stderr) == (1, f"{words}\n")

    inside(use)


def test_the_default_limit_is_300_seconds_and_is_enforced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = BashkitSandbox.running_type
    assert running.default_timeout_seconds == 300
    monkeypatch.setattr(running, "default_timeout_seconds", 0.2)

    async def use(box: RunningSandbox) -> None:
        assert (await box.execute("sleep 9")).exit_code == 124
        assert (await box.execute("sleep 0.4", timeout_seconds=5)).exit_code == 0

    inside(use)


@pytest.mark.parametrize("limit", [0, -1, -0.0, float("nan"), float("inf"), "1", True, [1]])
def test_a_limit_that_is_no_positive_number_raises(limit: Any) -> None:
    async def use(box: RunningSandbox) -> None:
        with pytest.raises(ValueError, match="timeout_seconds"):
            await box.execute("echo x", timeout_seconds=limit)

    inside(use)


@pytest.mark.parametrize("limit", [10**400, 1e308])
def test_a_huge_limit_is_no_limit(limit: float) -> None:
    async def use(box: RunningSandbox) -> None:
        assert (await box.execute("echo x", timeout_seconds=limit)).exit_code == 0

    inside(use)


def test_a_nul_in_the_command_raises() -> None:
    async def use(box: RunningSandbox) -> None:
        with pytest.raises(ValueError, match="NUL"):
            await box.execute("echo a\0b")

    inside(use)


@pytest.mark.parametrize("mark", ["\x1e", "\x1f"])
def test_a_mark_of_the_interpreter_is_refused_and_can_be_written_otherwise(mark: str) -> None:
    async def use(box: RunningSandbox) -> None:
        escape = f"$'\\x{ord(mark):02x}'"
        with pytest.raises(ValueError, match=re.escape(escape)):
            await box.execute(f'printf %s "a{mark}b" > made')
        assert (await box.execute("cat made")).exit_code == 1
        assert (await box.execute(f"printf %s a{escape}b")).stdout == f"a{mark}b"

    inside(use)


@pytest.mark.parametrize("command", [BUSY, IDLE, JOB])
def test_cancelling_the_caller_ends_the_command(command: str) -> None:
    async def use(box: RunningSandbox) -> None:
        beside = asyncio.create_task(box.execute("sleep 0.5; echo beside"))
        task = asyncio.create_task(box.execute(command))
        await asyncio.sleep(0.2)
        task.cancel()
        start = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - start < 1
        assert (await beside).stdout == "beside\n"
        used = time.process_time()
        await asyncio.sleep(0.3)
        assert time.process_time() - used < 0.15  # nothing turns in another thread

    inside(use)


def test_an_idle_sandbox_refuses_calls_after_its_close() -> None:
    async def run() -> None:
        async with BashkitSandbox().open(REQUEST) as box:
            pass
        for call in (box.execute("x"), box.read_file("x"), box.write_file("x", b"")):
            with pytest.raises(SandboxClosed):
                await call

    asyncio.run(run())


@pytest.mark.parametrize("command", [BUSY, IDLE, JOB])
def test_closing_ends_the_command_and_refuses_later_calls(command: str) -> None:
    async def run() -> None:
        session = await Session.start(BashkitSandbox(), REQUEST)
        box = session.running
        assert box is not None
        task = asyncio.create_task(box.execute(command))
        await asyncio.sleep(0.2)
        start = time.monotonic()
        await session.close()
        assert time.monotonic() - start < 1
        for call in (task, box.execute("x"), box.read_file("x"), box.write_file("x", b"")):
            with pytest.raises(SandboxClosed):
                await call

    asyncio.run(run())


def test_a_session_has_no_quota_of_commands_or_loops() -> None:
    async def use(box: RunningSandbox) -> None:
        for _ in range(1001):
            result = await box.execute("exit 5")
        assert result.exit_code == 5
        loop = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo $i"
        assert (await box.execute(loop)).stdout == "20000\n"

    inside(use)


def test_output_is_complete_up_to_10_mib_and_then_says_so() -> None:
    async def use(box: RunningSandbox) -> None:
        text = "é" * 2_000_000  # also split across the interpreter's pieces
        await box.write_file("big", text.encode())
        assert (await box.execute("cat big")).stdout == text
        result = await box.execute("cat big big big; echo end >&2")
        assert result.stdout.rstrip("\ufffd") == "é" * (10 * 1024 * 1024 // 2)
        assert result.stderr == "end\nsandbox: stdout was cut off at 10 MiB; write it to a file\n"

    inside(use)


def test_output_that_is_no_utf8_is_replaced() -> None:
    async def use(box: RunningSandbox) -> None:
        await box.write_file("odd", b"\xef\xbb\xbfa\xff\xc3\r\n\0")
        assert (await box.execute("cat odd")).stdout == "\ufeffa\ufffd\ufffd\r\n\0"

    inside(use)


def test_the_event_loop_keeps_turning_while_a_command_works() -> None:
    async def use(box: RunningSandbox) -> None:
        turns, work = 0, asyncio.ensure_future(box.execute(BUSY, timeout_seconds=0.5))
        while not work.done():
            await asyncio.sleep(0.001)
            turns += 1
        assert turns > 5  # a command in the loop's own thread leaves one or two

    inside(use)


def test_long_output_is_decoded_outside_of_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded, threads = output.decoded, set[int]()

    def watched(data: bytes) -> str:
        if len(data) >= 5_000_000:
            threads.add(threading.get_ident())
        return decoded(data)

    async def use(box: RunningSandbox) -> None:
        await box.write_file("big", b"\xff" * 5_000_000)
        await box.execute("cat big")
        assert threads
        assert threading.get_ident() not in threads

    monkeypatch.setattr(output, "decoded", watched)
    inside(use)


@given(st.binary(max_size=300), st.binary(max_size=300))
@settings(max_examples=20, deadline=None)
def test_files_keep_their_bytes(first: bytes, second: bytes) -> None:
    async def use(box: RunningSandbox) -> None:
        for data in (first, second):
            await box.write_file("a b/ü/f", data)
            assert await box.read_file("/workspace/a b/ü/../ü/f") == data
        listed = await box.execute("ls -A 'a b/ü'")
        assert listed.stdout == "f\n"  # nothing of the writing is left

    inside(use)


def test_an_overwritten_script_stays_executable_and_a_link_stays_a_link() -> None:
    async def use(box: RunningSandbox) -> None:
        await box.write_file("run", b"#!/bin/bash\necho one\n")
        await box.execute("chmod 755 run; ln -s run link")
        await box.write_file("run", b"#!/bin/bash\necho two\n")
        assert (await box.execute("./run")).stdout == "two\n"
        await box.write_file("link", b"#!/bin/bash\necho three\n")
        assert (await box.execute("./run; readlink link")).stdout == "three\nrun\n"

    inside(use)


@pytest.mark.parametrize(
    ("path", "reading", "writing"),
    [
        ("none", FileNotFoundError, None),
        ("file/below", FileNotFoundError, PermissionError),
        ("folder", IsADirectoryError, IsADirectoryError),
        ("", IsADirectoryError, IsADirectoryError),
        ("/tmp", IsADirectoryError, IsADirectoryError),
        ("../outside", FileNotFoundError, PermissionError),
        ("/etc/new", FileNotFoundError, PermissionError),
        ("a\nb", PermissionError, PermissionError),
        ("a\0b", PermissionError, PermissionError),
    ],
)
def test_file_errors_are_pythons_own_and_name_the_path(
    path: str, reading: type[OSError], writing: type[OSError] | None
) -> None:
    async def use(box: RunningSandbox) -> None:
        await box.execute("mkdir folder; echo x > file")
        with pytest.raises(reading) as raised:
            await box.read_file(path)
        assert raised.value.filename == path
        if writing is not None:
            with pytest.raises(writing) as raised:
                await box.write_file(path, b"x")
            assert raised.value.filename == path

    inside(use)


def test_no_path_and_no_late_link_leads_to_the_host(temp: Path, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.write_text("secret")

    async def use(box: RunningSandbox) -> None:
        (folder,) = folders(temp)
        (folder / "workspace/late").symlink_to(canary)
        (folder / "workspace/up").symlink_to("../../../canary")
        for path in (str(canary), "../../../canary", "late", "up"):
            # What it may read and write there are files of its own, below its own /tmp.
            with contextlib.suppress(OSError):
                assert await box.read_file(path) == b"x\n"
            with contextlib.suppress(PermissionError):
                await box.write_file(path, b"x\n")
            shown = await box.execute(f"cat {path}; echo x > {path}")
            assert "secret" not in shown.stdout + shown.stderr

    inside(use)
    assert canary.read_text() == "secret"


def test_a_command_that_deletes_its_workspace_harms_only_itself() -> None:
    async def use(box: RunningSandbox) -> None:
        await box.execute("rm -rf /workspace /tmp")
        assert (await box.execute("echo x > f; cat f")).stdout == "x\n"

    inside(use)


def test_folders_are_private_and_deleted_without_an_instance_id(temp: Path) -> None:
    async def use(box: RunningSandbox) -> None:
        (folder,) = folders(temp)
        assert folder.stat().st_mode & 0o777 == 0o700
        assert list(await box.inventory()) == [f"folder {folder}"]
        await box.execute("mkdir -p a/b; ln -s b a/c; chmod 0 a/b a; chmod 0 /workspace")

    inside(use)
    assert folders(temp) == []


def test_a_session_reopened_with_its_instance_id_finds_its_files(temp: Path) -> None:
    async def write(box: RunningSandbox) -> None:
        await box.execute("echo kept > f; chmod 0 f; chmod 777 /tmp; chmod 0 /workspace")

    async def read(box: RunningSandbox) -> None:
        await box.execute("chmod 600 f")
        assert await box.read_file("f") == b"kept\n"

    async def nothing(box: RunningSandbox) -> None:
        with pytest.raises(FileNotFoundError):
            await box.read_file("f")

    inside(write, instance_id="one")
    inside(read, instance_id="one")
    inside(nothing, instance_id="two")
    inside(nothing, OpenRequest(session_id="other"), instance_id="one")
    inside(nothing)
    assert len(folders(temp)) == 3


def test_two_sessions_at_once_on_one_folder_are_refused() -> None:
    async def use(box: RunningSandbox) -> None:
        await box.write_file("f", b"first")
        with pytest.raises(SandboxStartError, match="in use"):
            async with BashkitSandbox(instance_id="i").open(REQUEST):
                pass
        async with BashkitSandbox(instance_id="i").open(OpenRequest(session_id="t")) as other:
            with pytest.raises(FileNotFoundError):
                await other.read_file("f")
        assert await box.read_file("f") == b"first"

    inside(use, instance_id="i")


@pytest.mark.parametrize("session_id", ["", "..", "../x", "a/b", "a\0", "x" * 129])
def test_a_session_id_that_names_no_folder_is_refused(temp: Path, session_id: str) -> None:
    async def use(box: RunningSandbox) -> None:
        raise AssertionError("opened")

    with pytest.raises(SandboxStartError, match="session_id"):
        inside(use, OpenRequest(session_id=session_id))
    assert folders(temp) == []


def test_a_bundle_that_the_process_does_not_trust_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use(box: RunningSandbox) -> None:
        opened.append(box)

    opened: list[RunningSandbox] = []
    bundle = tmp_path / "ca.pem"
    bundle.touch()
    request = OpenRequest(session_id="s", ca_bundle=bundle)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(SandboxStartError, match="set SSL_CERT_FILE"):
        inside(use, request)
    monkeypatch.setenv("SSL_CERT_FILE", os.path.relpath(bundle))
    inside(use, request)
    assert len(opened) == 1


def test_a_sandbox_without_git_refuses_the_git_identity_and_leaves_nothing(temp: Path) -> None:
    sandbox = BashkitSandbox(hooks=[GitIdentity(name="a", email="a@b")])
    with pytest.raises(SandboxStartError, match="git is not in this sandbox"):
        asyncio.run(Session.start(sandbox, REQUEST))
    assert folders(temp) == []


def test_every_way_out_of_an_open_sandbox_deletes_it(temp: Path) -> None:
    async def fail(box: RunningSandbox) -> None:
        raise SandboxError("mine")

    with pytest.raises(SandboxError, match="mine"):
        inside(fail)
    assert folders(temp) == []


@pytest.mark.parametrize("turns", range(0, 12, 2))
def test_a_cancelled_start_leaves_no_folder(temp: Path, turns: int) -> None:
    async def run() -> None:
        task = asyncio.create_task(Session.start(BashkitSandbox(), REQUEST))
        for _ in range(turns):
            await asyncio.sleep(0.0002)
        if task.cancel():
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            await task.result().close()

    asyncio.run(run())
    assert folders(temp) == []
