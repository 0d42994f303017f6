from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from honest.local_process import LocalProcess, LocalProcessRunning

import sandboxes as agents
from sandboxes import BackgroundProcessError, OpenRequest, SandboxClosed, Session
from sandboxes.processes import BackgroundProcesses

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from sandboxes import SandboxExecutionResult
    from sandboxes.experimental import SyncRunningSandbox


class Background(LocalProcess):
    """Processes of this machine, with a throwaway home and temporary folder."""

    supports_background_processes = True
    wrapper: ClassVar[Sequence[str]] = ()
    path = f"{Path(shutil.which('python3') or '').parent}:/usr/bin:/bin"

    def __init__(self, temp: Path) -> None:
        super().__init__()
        self.temp = temp

    def start(self, request: OpenRequest) -> SyncRunningSandbox:
        environ = {"PATH": self.path, "HOME": str(self.temp), "TMPDIR": str(self.temp)}
        return self.running_type(self.wrapper, environ)


@asynccontextmanager
async def processes(temp: Path) -> AsyncIterator[BackgroundProcesses]:
    async with Background(temp).open(OpenRequest(session_id="s")) as running:
        found = BackgroundProcesses(running, "Background")
        try:
            yield found
        finally:
            await found.close()
    assert left(temp) == []


def left(temp: Path) -> list[Path]:
    return list(temp.iterdir())


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def keepers(temp: Path) -> list[Path]:
    return list(temp.glob("sandbox-processes-*"))


async def read(found: BackgroundProcesses, name: str, until: str, cursor: int = 0) -> str:
    """Read until a text was written, or the process has ended."""
    texts: list[str] = []
    for _ in range(200):
        output = await found.output(name, cursor)
        texts.append(output.text)
        assert output.dropped == 0
        cursor = output.cursor
        if until in "".join(texts) or (output.exit_code is not None and not output.more):
            return "".join(texts)
    raise AssertionError(f"{until!r} did not come: {''.join(texts)!r}")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def ended(pids: Sequence[int], seconds: float = 2.0) -> bool:
    for _ in range(int(seconds / 0.05)):
        if not any(map(alive, pids)):
            return True
        await asyncio.sleep(0.05)
    return False


def test_a_process_is_started_written_to_read_and_keeps_its_exit_code(temp: Path) -> None:
    async def use() -> None:
        async with processes(temp) as found:
            assert await found.list() == ()
            first = await found.start(
                'pwd; umask; while read line; do echo "<$line>" >&2; done; exit 7'
            )
            assert (first.state, first.exit_code) == ("running", None)
            head = await read(found, first.id, "\n0")
            await found.write(first.id, "hä\n")
            assert await read(found, first.id, "\n", len(head.encode())) == "<hä>\n"
            await found.write(first.id, "last", close=True)
            await found.write(first.id, close=True)  # closing again is harmless
            everything = await read(found, first.id, "never")
            assert everything == f"{head}<hä>\n"
            second = await found.start("true")
            assert second.id != first.id
            (shown, _) = await found.list()
            assert (shown.id, shown.state, shown.exit_code) == (first.id, "exited", 7)
            assert shown.cursor == len(everything.encode())
            workspace, mask = head.split()
            assert workspace.endswith("/workspace")
            assert int(mask, 8) == os.umask(os.umask(0o22))

    asyncio.run(use())


def test_output_in_pieces_is_the_output_whatever_the_bytes(temp: Path) -> None:
    # A character of three bytes in pieces of 4099, and then bytes that are no text.
    script = (
        "import sys, time; data = 'a€'.encode() * 30000 + b'\\xff\\xe2\\x82'\n"
        "for at in range(0, len(data), 4099):\n"
        "    sys.stdout.buffer.write(data[at:at + 4099]); sys.stdout.buffer.flush()\n"
    )

    async def use() -> None:
        async with processes(temp) as found:
            started = await found.start(f'python3 -I -c "{script}"')
            text = await read(found, started.id, "never")
            assert text == "a€" * 30000 + "\N{REPLACEMENT CHARACTER}" * 2
            end = (await found.list())[0].cursor
            assert end == 4 * 30000 + 3
            assert (await found.output(started.id, end)).text == ""

    asyncio.run(use())


def test_a_part_of_a_character_waits_for_its_rest(temp: Path) -> None:
    async def use() -> None:
        async with processes(temp) as found:
            started = await found.start(
                "printf 'a\\342'; read line; printf '\\202\\254'; read line"
            )
            first = await found.output(started.id)
            while not first.text:
                first = await found.output(started.id)
            assert (first.text, first.cursor) == ("a", 1)
            await found.write(started.id, "\n")
            assert await read(found, started.id, "€", first.cursor) == "€"

    asyncio.run(use())


def test_what_is_no_longer_kept_is_counted_and_never_read_twice(temp: Path) -> None:
    async def use() -> None:
        async with processes(temp) as found:
            started = await found.start("yes € | head -c 3000002; exit 0")  # ends within one
            for _ in range(200):
                if (await found.list())[0].exit_code is not None:
                    break
            first = await found.output(started.id)
            assert first.text.startswith(("€\n", "\n€"))
            assert first.dropped + len(first.text.encode()) == first.cursor
            assert 1_000_000 < 3_000_002 - first.dropped <= 1_048_576
            assert first.more
            again = await found.output(started.id, first.cursor)
            assert again.dropped == 0
            assert again.text.startswith(("€\n", "\n€")) or again.text[0] == "€"

    asyncio.run(use())


def test_stop_ends_the_whole_tree_and_says_so(temp: Path) -> None:
    async def use() -> None:
        async with processes(temp) as found:
            gentle = await found.start(
                "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done"
            )
            stubborn = await found.start(
                "trap '' TERM; echo $$; (setsid sh -c 'echo $$; exec sleep 600' &); sleep 600"
            )
            await read(found, gentle.id, "up")
            await asyncio.sleep(0.3)
            pids = [int(line) for line in (await read(found, stubborn.id, "\n")).split()]
            begun = time.monotonic()
            stops = await asyncio.gather(found.stop(gentle.id), found.stop(stubborn.id))
            assert 5 <= time.monotonic() - begun < 15
            assert [(one.state, one.exit_code) for one in stops] == [
                ("stopped", 3),
                ("stopped", 137),
            ]
            assert (await read(found, gentle.id, "bye")).endswith("bye\n")
            assert len(pids) == 2
            assert await ended(pids)
            assert (await found.stop(gentle.id)).exit_code == 3  # again: as it is

    asyncio.run(use())


def test_what_an_ended_command_left_behind_is_ended_by_stop(temp: Path) -> None:
    async def use() -> None:
        async with processes(temp) as found:
            started = await found.start("setsid sleep 600 & echo $!; exit 4")
            pid = int(await read(found, started.id, "\n"))
            for _ in range(50):
                if (await found.list())[0].state == "exited":
                    break
            assert alive(pid)
            stopped = await found.stop(started.id)
            assert (stopped.state, stopped.exit_code) == ("exited", 4)
            assert await ended([pid])

    asyncio.run(use())


def test_bad_ids_cursors_and_inputs_are_named(temp: Path) -> None:
    async def use() -> None:
        async with processes(temp) as found:
            with pytest.raises(BackgroundProcessError, match="no process process-1"):
                await found.output("process-1")
            done = await found.start("echo out")
            await read(found, done.id, "never")
            with pytest.raises(BackgroundProcessError, match="4 bytes and there is no cursor 5"):
                await found.output(done.id, 5)
            assert (await found.output(done.id, 4)).text == ""  # the error cost nothing
            for cursor in (-1, 1.5, True, "0"):
                with pytest.raises(BackgroundProcessError, match="cursor is"):
                    await found.output(done.id, cursor)  # type: ignore[arg-type]
            for call in (found.stop("x'; touch no"), found.write("nope", "x"), found.output("")):
                with pytest.raises(BackgroundProcessError, match="there is no process"):
                    await call
            with pytest.raises(BackgroundProcessError, match=f"input of {done.id} is closed"):
                await found.write(done.id, "x")
            deaf = await found.start("sleep 600")
            await found.write(deaf.id, "x" * 900_000)
            with pytest.raises(BackgroundProcessError, match=r"has not read \d+ bytes"):
                await found.write(deaf.id, "x" * 300_000)
            with pytest.raises(BackgroundProcessError, match="at most 1048576"):
                await found.write(deaf.id, "x" * 1_048_577)
            with pytest.raises(ValueError, match="NUL"):
                await found.start("a\0b")

    asyncio.run(use())


def test_long_commands_and_inputs_arrive_whole(temp: Path) -> None:
    async def use() -> None:
        async with processes(temp) as found:
            started = await found.start(f": {'x' * 100_000}; cat | wc -c")
            await found.write(started.id, "é" * 200_000, close=True)
            assert (await read(found, started.id, "never")).split() == ["400000"]

    asyncio.run(use())


def test_all_is_gone_when_the_session_closes_and_then_every_call_raises(temp: Path) -> None:
    async def use() -> None:
        session = await Session.start(Background(temp), OpenRequest(session_id="s"))
        start, listing = session.tools["process.start"], session.tools["process.list"]
        started = await start("echo $$; (setsid sh -c 'echo $$; exec sleep 600' &); sleep 600")
        output = session.tools["process.output"]
        text = ""
        while text.count("\n") < 2:
            text = (await output(started.id)).text
        pids = [int(line) for line in text.split()]
        await session.close()
        assert await ended(pids, 0.5)
        for call in (listing(), start("true"), output(started.id)):
            with pytest.raises(SandboxClosed):
                await call

    asyncio.run(use())
    assert list(temp.iterdir()) == []


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8])
def test_a_start_that_is_cancelled_leaves_nothing(temp: Path, steps: int) -> None:
    async def use() -> None:
        async with processes(temp) as found:
            starting = asyncio.create_task(found.start(f"echo $$ > {temp}/pid; exec sleep 600"))
            await asyncio.sleep(0.03 * steps**2)
            starting.cancel()
            await asyncio.wait({starting})
            await found.close()
            pid = temp / "pid"
            if pid.exists():
                assert await ended([int(pid.read_text())])
                pid.unlink()

    asyncio.run(use())


def test_the_end_of_the_keeper_is_the_end_of_its_processes(temp: Path) -> None:
    async def use() -> None:
        async with processes(temp) as found:
            started = await found.start("echo $$; sh -c 'exec sleep 600'; true")
            pid = int(await read(found, started.id, "\n"))
            os.kill(parent(parent(pid)), 9)  # the leader's parent, which we started
            assert await ended([pid])
            with pytest.raises(BackgroundProcessError, match="does not outlive its command"):
                await found.list()
            assert keepers(temp)  # which the close removes

    asyncio.run(use())


def test_a_keeper_that_nobody_can_reach_any_more_ends_all_and_itself(temp: Path) -> None:
    async def use() -> None:
        async with processes(temp) as found:
            started = await found.start("echo $$; exec sleep 600")
            pid = int(await read(found, started.id, "\n"))
            keeper = parent(parent(pid))
            shutil.rmtree(keepers(temp)[0])
            assert await ended([pid, keeper], 8.0)

    asyncio.run(use())


class NoPython(Background):
    def start(self, request: OpenRequest) -> SyncRunningSandbox:
        (self.temp / "sh").symlink_to("/bin/sh")
        return self.running_type((), {"PATH": str(self.temp), "TMPDIR": str(self.temp)})


class EndsAll(LocalProcessRunning):
    """Ends whatever a command leaves, as a sandbox that wrongly declares the fact."""

    def execute(self, command: str, *, timeout_seconds: float) -> SandboxExecutionResult:
        result = super().execute(command, timeout_seconds=timeout_seconds)
        for folder in keepers(Path(self._environ["TMPDIR"])):
            shutil.rmtree(folder)
        return result


class Forgets(Background):
    running_type: ClassVar[type[LocalProcessRunning]] = EndsAll


@pytest.mark.parametrize(
    ("kind", "fact"), [(NoPython, "exit code 127 .*not found"), (Forgets, "not outlive")]
)
def test_a_sandbox_that_declares_too_much_is_found_out_at_first_use(
    temp: Path, kind: type[Background], fact: str
) -> None:
    async def use() -> Any:
        async with kind(temp).open(OpenRequest(session_id="s")) as running:
            await BackgroundProcesses(running, kind.__name__).start("true")

    with pytest.raises(
        BackgroundProcessError, match=rf"{kind.__name__} declares .*{fact}"
    ) as raised:
        asyncio.run(use())
    assert "\n" not in str(raised.value)


def test_the_end_of_a_command_leaves_background_processes_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ALLOW_DANGEROUS_LOCAL_HOST", "1")
    with pytest.warns(agents.DangerousLocalHostWarning):
        local = agents.DangerousLocalSandbox(shell="sh")

    async def use() -> None:
        async with await agents.Agent(environment=local).start_session() as session:
            tools: Any = session.tools
            started = await tools["process.start"]("echo $$ $0; read line; echo got $line")
            output = await tools["process.output"](started.id)
            pid, shell = output.text.split()
            assert shell == "sh"
            ended_at_limit = await tools["bash"]("sleep 600 & sleep 600", timeout_seconds=0.3)
            assert ended_at_limit.exit_code == 124
            cancelled = asyncio.create_task(tools["bash"]("sleep 600"))
            await asyncio.sleep(0.3)
            cancelled.cancel()
            await asyncio.wait({cancelled})
            await tools["process.write"](started.id, "it\n")
            while "got" not in output.text:
                output = await tools["process.output"](started.id, output.cursor)
            assert output.text == "got it\n"
            lasting = await tools["process.start"]("echo $$; exec sleep 600")
            pid = (await tools["process.output"](lasting.id)).text
        assert await ended([int(pid)], 0.5)

    asyncio.run(use())


def test_the_keeper_has_left_the_group_of_its_command_when_that_ends(temp: Path) -> None:
    # A sandbox may end the group of a command with it, and a child may be slow to leave it.
    code = (
        "import os, sys, time\n"
        "leave = os.setsid\n"
        "os.setsid = lambda: (time.sleep(0.3), leave())\n"
        "from sandboxes.inside.process_keeper import main\n"
        "main('keeper', 'sh')\n"
    )
    command = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(temp)},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert command.wait(10) == 0
    with contextlib.suppress(ProcessLookupError):
        os.killpg(command.pid, signal.SIGKILL)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(temp / "keeper" / "s"))
        client.sendall(b'{"do": "close"}')
        client.shutdown(socket.SHUT_WR)
        client.settimeout(10)
        assert client.recv(100) == b"{}"
    assert left(temp) == []
