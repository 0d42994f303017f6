from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.lab.census import Census
from sandboxes import timeouts
from sandboxes.timeouts import Commands, Ended

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable

GRACE = 0.5
# Time enough for a loaded machine to start what is to be late.
LIMIT = 1.0
# What a loaded machine may add.
SLACK = 4.0
# For what must come, however late.
PATIENCE = 20.0


@asynccontextmanager
async def opened(kept_bytes: int = 10**8) -> AsyncIterator[Commands]:
    commands = Commands(grace_seconds=GRACE, kept_bytes=kept_bytes)
    try:
        yield commands
    finally:
        await commands.close()


def run(test: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run a test's coroutine; what it opened must all be closed at its end."""
    before = Census.take(folders=())
    asyncio.run(asyncio.wait_for(test(), 40))
    deadline = time.monotonic() + PATIENCE
    while left := Census.take(folders=()).left_since(before):
        assert time.monotonic() < deadline, left
        time.sleep(0.02)


async def shell(
    commands: Commands, text: str, folder: Path, *, limit: float = 30, sh: str = "bash"
) -> Ended:
    program = shutil.which(sh)
    assert program is not None
    return await commands.run(
        [program.encode(), b"-c", b"--", text.encode()],
        folder=folder,
        environ=dict(os.environb),
        limit=limit,
    )


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


async def gone(pids: Iterable[int]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while any(alive(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


def pids_in(folder: Path) -> list[int]:
    return [int(line) for file in folder.glob("pids*") for line in file.read_text().split()]


async def noted(folder: Path, count: int) -> list[int]:
    """The process ids that a command wrote down, once it has written them all."""
    deadline = time.monotonic() + PATIENCE
    while len(pids := pids_in(folder)) < count:
        assert time.monotonic() < deadline, pids
        await asyncio.sleep(0.02)
    return pids


def test_a_bare_name_is_looked_for_along_the_commands_own_path(tmp_path: Path) -> None:
    program = tmp_path / "programs" / "greets"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho $1\n")
    program.chmod(0o755)
    path = os.fsencode(f"{tmp_path}/missing:{program}:{program.parent}")

    async def test() -> None:
        async with opened() as commands:
            for environ, code, stdout in (
                ({b"PATH": path}, 0, b"hello\n"),
                ({b"PATH": b"/nowhere"}, 127, b""),
                ({}, 127, b""),
            ):
                ended = await commands.run(
                    [b"greets", b"hello"], folder=tmp_path, environ=environ, limit=5
                )
                assert (ended.exit_code, ended.stdout) == (code, stdout)

    run(test)


def test_how_a_command_ended_and_what_it_wrote_is_told_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeouts, "_OUTPUT_SECONDS", PATIENCE)
    cases: list[tuple[str, int, bytes, bytes]] = [
        ("exit 255", 255, b"", b""),
        ("exit 124", 124, b"", b""),
        ("kill -KILL $$", 137, b"", b""),
        ("kill -TERM $$", 143, b"", b""),
        ("printf 'a\\r\\n\\xff\\0b'; printf e >&2", 0, b"a\r\n\xff\0b", b"e"),
        ("cat; read x; echo $?", 0, b"1\n", b""),
        # SIGPIPE is ignored in Python, and must not be in commands.
        ("yes | head -1; echo ${PIPESTATUS[0]}", 0, b"y\n141\n", b""),
        # But for 32 and 33, which the C library keeps for its threads, and sets as they begin.
        (
            "s=$(sed -n 's/SigIgn:.//p' /proc/self/status); printf %x $((0x$s & ~0x180000000))",
            *(0, b"0", b""),
        ),
        # The last is the listing's own.
        ("cd /proc/self/fd; echo *", 0, b"0 1 2 3\n", b""),
        ("exec >&- 2>&-; sleep 0.2; exit 7", 7, b"", b""),
        # Which the shell does not wait for.
        ("echo late > >(sleep 0.1; cat)", 0, b"late\n", b""),
        ("head -c 10000000 /dev/zero | tr '\\0' e", 0, b"e" * 10_000_000, b""),
    ]

    async def test() -> None:
        async with opened() as commands:
            ended = await asyncio.gather(*(shell(commands, case[0], tmp_path) for case in cases))
            for (text, code, stdout, stderr), found in zip(cases, ended, strict=True):
                assert (found.exit_code, found.stderr) == (code, stderr), text
                assert found.stdout == stdout, text
                assert not found.notes, text
            again = await asyncio.gather(
                *(shell(commands, f"echo {n}; echo {n} >&2", tmp_path) for n in range(20))
            )
            assert [int(found.stdout) for found in again] == [*range(20)]
            assert [int(found.stderr) for found in again] == [*range(20)]

    run(test)


def test_what_cannot_be_started_is_an_exit_code_and_a_reason(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened() as commands:
            long = await shell(commands, f": {'x' * 200_000}", tmp_path)
            assert (long.exit_code, len(long.notes)) == (126, 1)
            assert "Argument list too long" in long.notes[0]
            missing = await commands.run([b"/no/such"], folder=tmp_path, environ={}, limit=5)
            assert missing.exit_code == 127
            assert (await shell(commands, f": {'x' * 120_000}", tmp_path)).exit_code == 0

    run(test)


# Each writes down the ids of its processes, and one word.
OVER_THE_LIMIT = {
    "plain": "echo $$ > pids; echo early; sleep 30",
    "compound, so that sh does not become sleep": "echo $$ > pids; echo early; sleep 30; :",
    "busy": "echo $$ > pids; echo early; while :; do :; done",
    "in the background and waited for": "sleep 30 & echo $! > pids; echo early; wait",
    "a pipeline": "echo early; sleep 30 | (echo $BASHPID > pids; exec sleep 30)",
    "a here-document": "echo early; bash <<< 'echo $$ > pids; sleep 30'",
    "ignoring TERM and INT": (
        "trap '' TERM INT; echo $$ > pids; echo early; while :; do sleep 0.1; done"
    ),
    "a session of its own": (
        "setsid -f bash -c 'echo $$ > pids; exec sleep 30'; echo early; sleep 9"
    ),
    "forked twice, deaf, without a word of ours in its environment": (
        "(setsid env -i bash -c 'trap \"\" TERM; echo $$ > pids; sleep 30; sleep 30' &);"
        "echo early; sleep 30"
    ),
    "stopped": "echo $$ > pids; echo early; kill -STOP $$",
    "another one stopped": "sleep 30 & echo $! > pids; kill -STOP $!; echo early; wait",
    "forking and ending for ever": (
        "echo $$ > pids; echo early; f() { echo x >> beats; (f &); }; f; sleep 30"
    ),
}


@pytest.mark.parametrize("sh", ["bash", "sh"])
def test_a_command_over_its_limit_is_124_and_leaves_nothing(tmp_path: Path, sh: str) -> None:
    texts = {
        name: text
        for name, text in OVER_THE_LIMIT.items()
        if sh == "bash" or not ("<<<" in text or "BASHPID" in text)
    }

    async def one(commands: Commands, name: str, text: str) -> None:
        folder = tmp_path / name
        folder.mkdir()
        began = time.monotonic()
        found = await shell(commands, text, folder, limit=LIMIT, sh=sh)
        took = time.monotonic() - began
        pids = pids_in(folder)
        assert pids, name
        assert not [pid for pid in pids if alive(pid)], name
        assert (found.exit_code, found.stdout) == (124, b"early\n"), name
        assert LIMIT <= took < LIMIT + GRACE + SLACK, name
        assert any("of 1 s" in note for note in found.notes), name
        # Whoever starts others without end is in no list of ids.
        beats = folder / "beats"
        written = beats.stat().st_size if beats.exists() else 0
        await asyncio.sleep(0.3)
        assert not beats.exists() or beats.stat().st_size == written, name

    async def test() -> None:
        async with opened() as commands:
            await shell(commands, ":", tmp_path)
            await asyncio.gather(*(one(commands, *item) for item in texts.items()))
            assert (await shell(commands, "echo on", tmp_path)).stdout == b"on\n"

    run(test)


def test_term_comes_once_and_first_and_is_heard(tmp_path: Path) -> None:
    tidy = "trap 'echo heard; sleep 0.2; echo tidied; exit 0' TERM; sleep 30 & wait"
    stopped = "trap 'echo heard; exit 0' TERM; kill -STOP $$; sleep 30"
    deaf = "trap '' TERM; sleep 30; sleep 30"

    async def timed(commands: Commands, text: str) -> tuple[bytes, float]:
        began = time.monotonic()
        found = await shell(commands, text, tmp_path, limit=LIMIT)
        assert found.exit_code == 124
        return found.stdout, time.monotonic() - began

    async def test() -> None:
        async with opened() as commands:
            found = await asyncio.gather(*(timed(commands, t) for t in (tidy, stopped, deaf)))
        # What a trap starts is not asked to end, and has the whole grace.
        assert [stdout for stdout, _ in found] == [b"heard\ntidied\n", b"heard\n", b""]
        assert found[2][1] >= LIMIT + GRACE

    run(test)


def test_a_flood_is_bounded_and_does_not_hold_up_the_loop(tmp_path: Path) -> None:
    async def test() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.05)
                ticks += 1

        ticking = asyncio.create_task(tick())
        async with opened(kept_bytes=100_001) as commands:
            found = await shell(commands, "echo e >&2; yes", tmp_path, limit=1)
            assert (found.exit_code, found.stderr) == (124, b"e\n")
            assert found.stdout == b"y\n" * 50_000 + b"y"
            assert len(found.notes) == 2
            assert "stdout was cut off after 100001 bytes" in found.notes[1]
        ticking.cancel()
        assert ticks >= 5

    run(test)


BEATING = "(while :; do echo x; echo x >> beats; sleep 0.05; done) & echo $! > pids; echo hi"


async def beats_on(folder: Path) -> bool:
    beats = folder / "beats"
    before = beats.stat().st_size if beats.exists() else 0
    deadline = time.monotonic() + PATIENCE
    while not beats.exists() or beats.stat().st_size < before + 10:
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


def test_the_background_outlives_its_command_and_others_but_not_the_session(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened() as commands:
            for _ in range(3):
                began = time.monotonic()
                # Its limit is over long before we look whether the background goes on.
                found = await shell(commands, BEATING, tmp_path, limit=LIMIT)
                assert found.exit_code == 0
                assert b"hi\n" in found.stdout
                assert time.monotonic() - began < SLACK
            (pid,) = pids_in(tmp_path)
            late = await shell(commands, "sleep 9", tmp_path, limit=LIMIT + 0.1)
            cancelled = asyncio.create_task(shell(commands, "sleep 9", tmp_path))
            await asyncio.sleep(0.2)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            assert late.exit_code == 124
            # It writes to a pipe that nobody waits for any more.
            assert await beats_on(tmp_path)
            assert len(commands.background()) == 3
        assert not alive(pid)

    run(test)


def test_a_cancelled_command_is_ended_like_one_that_is_late(tmp_path: Path) -> None:
    text = "(setsid sleep 30 & echo $! >> pids); echo $$ >> pids; trap '' TERM; sleep 30; sleep 30"

    async def test() -> None:
        async with opened() as commands:
            beside = asyncio.create_task(shell(commands, "sleep 1; echo on", tmp_path))
            once, twice = tmp_path / "once", tmp_path / "twice"
            once.mkdir()
            twice.mkdir()
            tasks = [asyncio.create_task(shell(commands, text, f)) for f in (once, twice)]
            pids = [pid for folder in (once, twice) for pid in await noted(folder, 2)]
            began = time.monotonic()
            for task in tasks:
                task.cancel()
            await asyncio.sleep(0.1)
            tasks[1].cancel()
            with pytest.raises(asyncio.CancelledError):
                await tasks[1]
            assert time.monotonic() - began < GRACE
            with pytest.raises(asyncio.CancelledError):
                await tasks[0]
            assert time.monotonic() - began >= GRACE
            assert not [pid for pid in pids_in(once) if alive(pid)]
            assert (await beside).stdout == b"on\n"
        assert not [pid for pid in pids if alive(pid)]

    run(test)


def test_fifty_commands_cancelled_at_once_leave_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened() as commands:
            tasks = [
                asyncio.create_task(shell(commands, "echo $$ >> pids; sleep 30", tmp_path))
                for _ in range(50)
            ]
            # At every point of their lives: some were not even asked for.
            await asyncio.sleep(0.3)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            assert all(task.cancelled() for task in tasks)
            assert await gone(pids_in(tmp_path))
            assert (await shell(commands, "echo on", tmp_path)).stdout == b"on\n"

    run(test)


def test_the_limit_is_kept_while_the_event_loop_is_blocked(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened() as commands:
            await shell(commands, ":", tmp_path)
            text = "echo $$ > pids; exec sleep 30"
            late = asyncio.create_task(shell(commands, text, tmp_path, limit=LIMIT))
            (pid,) = await noted(tmp_path, 1)
            deadline = time.monotonic() + LIMIT + GRACE + PATIENCE
            while alive(pid):
                assert time.monotonic() < deadline
                time.sleep(0.02)  # noqa: ASYNC251 - it is the loop that is held up
            assert (await late).exit_code == 124

    run(test)


def send_to_server(commands: Commands, number: signal.Signals) -> None:
    # By its object: an id that a command looked up could be that of whoever adopted it.
    commands._servers[-1]._process.send_signal(number)


def test_a_command_that_harms_what_supervises_it_harms_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeouts, "_OVERDUE_SECONDS", 0.5)
    mine = "setsid sleep 30 & echo $! > pids; "

    async def test() -> None:
        async with opened() as commands:
            (tmp_path / "background").mkdir()
            await shell(commands, BEATING, tmp_path / "background")
            for name, text in (("kill", "kill -KILL $PPID"), ("stop", "kill -STOP $PPID")):
                folder = tmp_path / name
                folder.mkdir()
                found = await shell(commands, f"{mine}{text}; sleep 9", folder, limit=LIMIT)
                assert found.exit_code == (137 if name == "kill" else 124)
                assert len(found.notes) == 1
                assert await gone(pids_in(folder))
            cancelled = asyncio.create_task(
                shell(commands, "echo $$ > pids; kill -STOP $PPID; sleep 30", tmp_path)
            )
            pids = await noted(tmp_path, 1)
            await asyncio.sleep(0.2)
            began = time.monotonic()
            cancelled.cancel()
            assert await gone(pids)
            assert time.monotonic() - began < GRACE + SLACK
            send_to_server(commands, signal.SIGKILL)
            found = await shell(commands, "sleep 9", tmp_path, limit=LIMIT)
            assert found.exit_code == 124
            assert (await shell(commands, "echo on", tmp_path)).stdout == b"on\n"
            async with asyncio.TaskGroup() as group:  # more than idle ones: a new server
                for _ in range(6):
                    group.create_task(shell(commands, "sleep 0.2", tmp_path))
            send_to_server(commands, signal.SIGSTOP)
            # Some have a supervisor that is idle, others would need to have one forked.
            many = (shell(commands, "sleep 0.2", tmp_path, limit=LIMIT) for _ in range(6))
            assert 124 in [found.exit_code for found in await asyncio.gather(*many)]
            many = (shell(commands, "sleep 0.2", tmp_path) for _ in range(6))
            assert [found.exit_code for found in await asyncio.gather(*many)] == [0] * 6
            assert await beats_on(tmp_path / "background")
        assert not [pid for pid in pids_in(tmp_path / "background") if alive(pid)]

    run(test)


USER = """
import asyncio, sys
from pathlib import Path
from sandboxes.timeouts import Commands
async def main():
    commands = Commands(grace_seconds=0.3)
    text = b"trap '' TERM; echo $$ > pids.1; (setsid sleep 30 & echo $! > pids.2); sleep 30; :"
    await commands.run([b"/bin/sh", b"-c", text], folder=Path(sys.argv[1]), environ={}, limit=60)
asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_outlives_the_users_process(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", USER, tmp_path], stderr=subprocess.DEVNULL
    ) as user:
        try:
            pids = asyncio.run(noted(tmp_path, 2))
        finally:
            user.send_signal(number)
    try:
        assert asyncio.run(gone(pids))
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
