"""Time limits, once for every backend whose commands are processes.

A command over its limit, and one whose caller is cancelled, is ended with all that it
started: SIGTERM, a grace, SIGKILL. What is left of a command that ended by itself goes
on in the background until the session closes. `supervisor` is where that is done; this
is the side of the user's event loop.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandboxes.contract import SandboxError
from sandboxes.limits import TIMED_OUT
from sandboxes.output import KEPT_BYTES, Drain
from sandboxes.supervision import Server, Supervisor
from sandboxes.supervisor import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

GRACE_SECONDS = 5.0
"""Between SIGTERM and SIGKILL."""

# For output that somebody else in the background may still hold back.
_OUTPUT_SECONDS = 0.2
# A supervisor that was stopped or killed says nothing in time; then we do without it.
_OVERDUE_SECONDS = 2.0
# The same where nobody waits for a limit: on a busy machine many take longer.
_ENDING_SECONDS = 10.0
_KILLED = 128 + signal.SIGKILL
_CANNOT_RUN, _NOT_FOUND = 126, 127
# Of supervisors with nothing to do; a fork takes longer than a command.
_MOST_IDLE = 4


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended.

    Attributes:
        exit_code: Its own, 128 and the number of the signal that ended it, or 124.
        stdout: What it wrote.
        stderr: The same for standard error.
        notes: What else the user should know, a line each.
    """

    exit_code: int
    # Megabytes, which an event loop in debug mode would write into its log.
    stdout: bytes = field(repr=False)
    stderr: bytes = field(repr=False)
    notes: Sequence[str]


class Commands:
    """The commands of one session, and whatever they leave in the background.

    Args:
        grace_seconds: Between SIGTERM and SIGKILL.
        kept_bytes: How much of each stream is kept; the rest is counted and dropped.
        server: Starts what forks supervisors; by default a process of the host.
    """

    def __init__(
        self,
        *,
        grace_seconds: float = GRACE_SECONDS,
        kept_bytes: int = KEPT_BYTES,
        server: Callable[[], Server] = Server,
    ) -> None:
        self._grace = grace_seconds
        self._kept = kept_bytes
        self._start_server = server
        # All but the last one are retired, or killed by a command.
        self._servers: list[Server] = []
        self._idle: list[Supervisor] = []
        self._works: set[_Work] = set()

    async def run(
        self,
        arguments: Sequence[bytes],
        *,
        folder: Path,
        environ: Mapping[bytes, bytes],
        limit: float,
    ) -> Ended:
        """Run a program to its end, or to its limit.

        Cancelling ends it in the same way, and is delivered when nothing is left. Who is
        cancelled twice does not wait for that; `close` does.

        Args:
            arguments: The program, as a path, and its arguments.
            folder: Its working folder.
            environ: Its whole environment.
            limit: Seconds until it is ended.

        Raises:
            SandboxError: No process could be started at all.
        """
        entries = [name + b"=" + value for name, value in environ.items()]
        request = Request([*arguments], os.fsencode(folder), entries, limit, self._grace)
        ended = await self._attempt(request)
        if ended is None:  # the server was just being killed, and another one is asked
            ended = await self._attempt(request)
        if ended is None:
            raise _cannot_start("no process could be made")
        return ended

    async def _attempt(self, request: Request) -> Ended | None:
        """Run a command; None if nobody ever read what it is."""
        work = self._work()
        try:
            work.start(request)
            overdue = request.limit + request.grace + _OVERDUE_SECONDS
            await asyncio.wait({work.answered}, timeout=overdue)
            if not work.answered.done():
                await self._end_by_force(work)
            if work.was_lost():
                work.supervisor.server.retire()
                work.close()
                return None
            return await work.result(request.limit)
        except BaseException:  # a cancellation, most of all
            await self._end({work})
            work.close()
            raise

    def _work(self) -> _Work:
        """Everything that a command needs, or nothing."""
        streams: list[Drain] = []
        try:
            streams = [Drain(self._kept)]
            streams.append(Drain(self._kept))
            work = _Work(self._supervisor(), streams, self._over)
        except OSError as error:  # such as no descriptors
            for stream in streams:
                stream.close()
            raise _cannot_start(error.strerror or str(error)) from error
        self._works.add(work)
        return work

    def _supervisor(self) -> Supervisor:
        while self._idle:
            supervisor = self._idle.pop()
            if supervisor.alive():
                return supervisor
            supervisor.let_go()
        # A command may have killed the server; the supervisors go on without it.
        if not self._servers or not self._servers[-1].alive():
            self._servers.append(self._start_server())
        return Supervisor(self._servers[-1])

    def _over(self, work: _Work) -> None:
        self._works.discard(work)
        supervisor = work.supervisor
        if len(self._idle) < _MOST_IDLE and not supervisor.gone.done():
            self._idle.append(supervisor)
        else:
            supervisor.let_go()

    async def _end(self, works: set[_Work]) -> None:
        """Have commands ended, with all that they started."""
        for work in works:
            work.supervisor.end()
        waiting = {work.gone for work in works}
        if waiting:
            await asyncio.wait(waiting, timeout=self._grace + _ENDING_SECONDS)
        for work in works:
            if not work.gone.done():
                await self._end_by_force(work)

    async def _end_by_force(self, work: _Work) -> None:
        """End the supervisor itself; its server then kills what it leaves."""
        work.late = work.late or not work.answered.done()
        if not work.supervisor.kill():
            work.supervisor.server.retire()  # it does not even fork
        await asyncio.wait({work.gone}, timeout=_OUTPUT_SECONDS)
        work.supervisor.let_go()

    def background(self) -> Sequence[int]:
        """The ids of the processes that supervise what still runs."""
        return sorted(work.supervisor.pid for work in self._works)

    async def close(self) -> None:
        """End everything that was started, in the background too.

        Raises:
            SandboxError: Something could not be ended.
        """
        works = set(self._works)
        try:
            await self._end(works)
        finally:
            for work in works:
                work.close()
            for supervisor in self._idle:
                supervisor.let_go()
            self._idle.clear()
        await asyncio.gather(*(server.close() for server in self._servers))
        self._servers.clear()
        left = sorted({pid for work in works for pid in work.left})
        if left:
            raise SandboxError(
                f"the processes {_listed(left)} of the session could not be ended; end them by hand"
            )


class _Work:
    """One command: its pipes, and what its supervisor says of it.

    Attributes:
        supervisor: Who runs it.
        answered: Done when the command has ended, or is as good as ended.
        gone: Done when nothing of it is left, in the background either.
        late: Whether it ran into its limit.
        left: The processes that could not be ended.
    """

    def __init__(
        self, supervisor: Supervisor, streams: Sequence[Drain], over: Callable[[_Work], None]
    ) -> None:
        loop = asyncio.get_running_loop()
        self.supervisor = supervisor
        self.answered: asyncio.Future[None] = loop.create_future()
        self.gone: asyncio.Future[None] = loop.create_future()
        self.late = False
        self.left: list[int] = []
        self._code: int | None = None
        self._failed = 0
        self._asked = False
        self._streams = streams
        self._over = over
        self._pending = 1 + len(self._streams)
        for future in (self.gone, *(stream.ended for stream in self._streams)):
            future.add_done_callback(self._count)

    def _count(self, _: asyncio.Future[None]) -> None:
        self._pending -= 1
        if self._pending == 0:
            self._over(self)

    def start(self, request: Request) -> None:
        """Have it run, if there is anybody who could."""
        try:
            self.supervisor.ask(request, [stream.writing_end for stream in self._streams], self)
            self._asked = True
        except OSError:
            self.hear("lost", [])
        finally:
            for stream in self._streams:
                stream.close_writing_end()

    def hear(self, word: str, numbers: list[int]) -> None:
        """Take in what the supervisor says."""
        if word == "failed":
            self._failed = numbers[0]
        elif word == "late":
            self.late = True
        elif word == "exited" and not self.late:
            self._code = numbers[0]
            _settle(self.answered)
        elif word == "gone":
            self.left = numbers
        elif word in ("idle", "lost"):
            _settle(self.answered)
            _settle(self.gone)

    def close(self) -> None:
        """Let go of everything."""
        self.supervisor.let_go()
        for stream in self._streams:
            stream.close()

    def was_lost(self) -> bool:
        """Whether there was never anybody to run it."""
        return not self._asked or not (self.supervisor.pid or self.late)

    async def result(self, limit: float) -> Ended:
        """What became of the command, with the output up to now."""
        await asyncio.wait({stream.ended for stream in self._streams}, timeout=_OUTPUT_SECONDS)
        code, notes = self._verdict(limit)
        for stream in self._streams:
            stream.catch_up()
        (stdout, more_out), (stderr, more_err) = (stream.taken() for stream in self._streams)
        for name, kept, more in (
            ("stdout", len(stdout), more_out),
            ("stderr", len(stderr), more_err),
        ):
            if more:
                notes.append(
                    f"sandbox: {name} was cut off after {kept} bytes, and {more} more were "
                    "dropped; write it to a file"
                )
        return Ended(code, stdout, stderr, notes)

    def _verdict(self, limit: float) -> tuple[int, list[str]]:
        if self._code is not None:
            return self._code, []
        if self._failed:
            missing = self._failed in (errno.ENOENT, errno.ENOTDIR)
            note = f"sandbox: the command could not be started ({os.strerror(self._failed)})"
            return _NOT_FOUND if missing else _CANNOT_RUN, [note]
        if self.late:
            notes = [f"sandbox: the command was ended at its limit of {limit:g} s"]
            if self.left:
                notes.append(f"sandbox: the processes {_listed(self.left)} could not be ended")
            return TIMED_OUT, notes
        return _KILLED, ["sandbox: the command's supervisor was killed, and the command with it"]


def _listed(pids: list[int]) -> str:
    return ", ".join(map(str, pids))


def _cannot_start(fact: str) -> SandboxError:
    return SandboxError(f"the sandbox cannot start commands ({fact}); end other processes first")


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
