"""Commands and files of a Mistral sandbox: our programs run here, for real."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import respx

from sandboxes import Network, SandboxClosed, SandboxError
from sandboxes.processes import BackgroundProcesses
from tests.sandboxes.mistral_help import REQUEST, TOKEN, Cloud, sandbox_in

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path

    from sandboxes import RunningSandbox

    Use = Callable[[RunningSandbox], Coroutine[Any, Any, Any]]


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    monkeypatch.setenv("KOYEB_API_KEY", TOKEN)
    with respx.mock(assert_all_called=False) as router:
        yield Cloud(router, tmp_path)


def used(cloud: Cloud, use: Use, **options: Any) -> Any:
    async def session() -> Any:
        sandbox = sandbox_in(cloud.folder)(network=Network.all(), **options)
        async with sandbox.open(REQUEST) as box:
            return await use(box)

    return asyncio.run(asyncio.wait_for(session(), 60))


def test_bytes_come_back_as_they_are_and_both_streams_apart(cloud: Cloud) -> None:
    async def use(box: RunningSandbox) -> None:
        result = await box.execute("printf 'a\\nb\\r\\n\\377'; echo e >&2; exit 3")
        assert (result.exit_code, result.stdout, result.stderr) == (3, "a\nb\r\n\ufffd", "e\n")
        flood = "head -c 300000 /dev/zero | tr '\\0' e >&2; head -c 300000 /dev/zero | tr '\\0' o"
        result = await box.execute(flood)
        assert (result.stdout, result.stderr) == ("o" * 300_000, "e" * 300_000)
        assert (await box.execute("read x; echo $?")).stdout == "1\n"
        assert (await box.execute("kill -9 $$")).exit_code == 137
        assert (await box.execute("exec /nowhere")).exit_code == 127

    used(cloud, use)


def test_a_long_command_arrives_whole(cloud: Cloud) -> None:
    text = secrets.token_hex(60_000)

    async def use(box: RunningSandbox) -> None:
        assert (await box.execute(f"printf %s '{text}' é")).stdout == text + "é"

    used(cloud, use)


def test_the_executors_secret_is_in_no_environment_of_a_command(cloud: Cloud) -> None:
    look = "env; for f in /proc/$PPID /proc/$$; do tr '\\0' '\\n' <$f/environ; done; echo end"

    async def use(box: RunningSandbox) -> None:
        result = await box.execute(look)
        assert result.stdout.endswith("end\n")
        assert cloud.secret not in result.stdout + result.stderr
        assert "PATH=" in result.stdout  # the look itself sees variables

    used(cloud, use)


def test_a_command_over_its_limit_is_ended_with_its_children(cloud: Cloud) -> None:
    async def use(box: RunningSandbox) -> None:
        beats = (
            f"echo begun; (setsid sh -c 'while :; do date >{cloud.folder}/beat; sleep .05; done' &)"
        )
        result = await box.execute(f"{beats}; trap 'echo asked' TERM; sleep 30 & wait; sleep 30")
        assert result.exit_code == 124
        assert result.stdout == "begun\nasked\n"
        before = (cloud.folder / "beat").stat().st_mtime_ns
        await asyncio.sleep(0.3)
        assert (cloud.folder / "beat").stat().st_mtime_ns == before

    used(cloud, use, default_exec_timeout_seconds=1)


def test_what_is_left_in_the_background_goes_on_and_can_write(cloud: Cloud) -> None:
    async def use(box: RunningSandbox) -> None:
        began = time.monotonic()
        loop = f"while :; do echo beat; date +%N >{cloud.folder}/beat; sleep .05; done"
        assert (await box.execute(f"({loop}) & echo started")).exit_code == 0
        assert time.monotonic() - began < 20
        await asyncio.sleep(0.5)
        first = (cloud.folder / "beat").read_text()
        await asyncio.sleep(0.5)
        assert (cloud.folder / "beat").read_text() != first
        await box.leave()  # type: ignore[attr-defined]
        last = (cloud.folder / "beat").read_text()
        await asyncio.sleep(0.3)
        assert (cloud.folder / "beat").read_text() == last

    used(cloud, use)


def test_cancelling_ends_the_command_and_not_the_session(cloud: Cloud) -> None:
    async def use(box: RunningSandbox) -> None:
        beat = cloud.folder / "beat"
        call = asyncio.ensure_future(box.execute(f"while :; do date +%N >{beat}; sleep .05; done"))
        while not beat.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.05)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        before = beat.read_text()
        await asyncio.sleep(0.3)
        assert beat.read_text() == before
        assert (await box.execute("echo on")).stdout == "on\n"

    used(cloud, use)


def test_files_are_exact_and_their_errors_python_s(cloud: Cloud) -> None:
    data = secrets.token_bytes(200_000)

    async def use(box: RunningSandbox) -> None:
        await box.write_file("a folder/ä\udcff.bin", data)
        assert await box.read_file("a folder/ä\udcff.bin") == data
        assert (await box.execute("wc -c <a*/*")).stdout.strip() == "200000"
        await box.write_file("short", b"")
        assert await box.read_file("short") == b""
        with pytest.raises(FileNotFoundError, match="nothing"):
            await box.read_file("nothing")
        with pytest.raises(IsADirectoryError):
            await box.read_file("a folder")
        with pytest.raises(IsADirectoryError):
            await box.write_file("a folder", b"")
        with pytest.raises(PermissionError):
            await box.read_file("a\0b")

    used(cloud, use)


def test_background_processes_are_the_shared_ones(cloud: Cloud) -> None:
    async def use(box: RunningSandbox) -> None:
        processes = BackgroundProcesses(box, "MistralSandbox")
        one = await processes.start("read line; echo got $line; exit 5")
        await processes.write(one.id, "text\n")
        output = await processes.output(one.id)
        while output.state == "running":
            await asyncio.sleep(0.05)
            output = await processes.output(one.id)
        assert (output.text, output.exit_code) == ("got text\n", 5)
        await processes.close()

    used(cloud, use)


def test_a_command_is_sent_once_even_if_its_answer_is_lost(cloud: Cloud) -> None:
    async def use(box: RunningSandbox) -> None:
        for fault in (httpx.ReadTimeout("late"), httpx.RemoteProtocolError("closed")):
            sent = cloud.calls.count("POST /run")
            cloud.faults["POST /run"] = [fault]
            with pytest.raises(SandboxError, match="not sent again because it may have run"):
                await box.execute("echo once")
            assert cloud.calls.count("POST /run") == sent + 1
        sent = cloud.calls.count("POST /run")
        cloud.faults["POST /run"] = [httpx.Response(503, text="no healthy upstream")]
        with pytest.raises(SandboxError, match="is gone"):
            await box.execute("echo once")
        assert cloud.calls.count("POST /run") == sent + 1
        cloud.faults["POST /run"] = [httpx.ConnectError("refused")]  # nothing can have arrived
        assert (await box.execute("echo twice")).stdout == "twice\n"

    used(cloud, use)


def test_an_instance_that_was_started_anew_is_found_out(cloud: Cloud) -> None:
    async def use(box: RunningSandbox) -> None:
        answer = {"stdout": 'sandbox-cloud:{"restarted": true}\n', "code": 0}
        cloud.faults["POST /run"] = [httpx.Response(200, json=answer)]
        with pytest.raises(SandboxError, match="started the sandbox anew"):
            await box.execute("true")

    used(cloud, use)


def test_closing_ends_a_command_that_runs(cloud: Cloud) -> None:
    call: asyncio.Future[Any]

    async def session() -> None:
        nonlocal call
        sandbox = sandbox_in(cloud.folder)(network=Network.all())
        async with sandbox.open(REQUEST) as box:
            call = asyncio.ensure_future(box.execute("sleep 3"))
            await asyncio.sleep(0.3)
        with pytest.raises(SandboxClosed, match="cannot finish the command"):
            await call
        with pytest.raises(SandboxClosed, match="cannot read files"):
            await box.read_file("x")

    asyncio.run(asyncio.wait_for(session(), 60))
    assert cloud.apps == {}
