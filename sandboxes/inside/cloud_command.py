"""Run one command of a cloud sandbox to its end or its limit, and say how it ended.

The process that the executor started waits and drains both pipes. Its child supervises: it is
the subreaper of all that comes of the command, as on a machine of one's own, and stays with
what the command leaves in the background; a third process then drains what that writes, so
that it does not fail for want of a reader. SIGTERM to any of them ends the command.
"""

from __future__ import annotations

import os
import select
import time

from sandboxes import process_tree, supervisor
from sandboxes.bare import send_descriptors, signal, socket, suppress
from sandboxes.inside import cloud_call, cloud_environment, cloud_secrecy

# Every command waits for the imports.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PIECE = 65_536
_LARGEST_PIPE = 1024 * 1024
# For output that somebody else in the background may still hold back.
_OUTPUT_SECONDS = 0.2
# A supervisor that was stopped or killed says nothing in time; then we do without it.
_OVERDUE_SECONDS = 2.0
_REST_SECONDS = 0.01
_KILLED_SECONDS = 1.0


class Stream:
    """The reading end of a pipe, and the first bytes that came."""

    def __init__(self, kept: int) -> None:
        self.end, self.writing_end = os.pipe()
        os.set_blocking(self.end, False)
        self.kept = kept
        self.data = bytearray()
        self.dropped = 0
        self.open = True

    def read(self) -> int:
        """Take a piece; 0 where there is none now, or will be none."""
        try:
            piece = os.read(self.end, _PIECE)
        except BlockingIOError:
            return 0
        if not piece:
            self.open = False
        room = self.kept - len(self.data)
        self.data += piece[:room]
        self.dropped += max(0, len(piece) - room)
        return len(piece)

    def catch_up(self) -> None:
        """Take what a command that has ended left in the pipe, whoever else writes on."""
        read = 0
        while self.open and read < _LARGEST_PIPE and (piece := self.read()):
            read += piece


class Command:
    """A command that runs, as the process sees it that waits for it."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.limit, self.grace = float(asked["limit"]), float(asked["grace"])
        self.control, theirs = socket.socketpair()
        self.pid = _fork_supervisor(theirs, self.control)
        theirs.close()
        self.streams = [Stream(asked["kept"]), Stream(asked["kept"])]
        self.code: int | None = None
        self.failed = 0
        self.late = self.killed = self.idle = False
        self.left: list[int] = []
        self.words = b""
        self._ask(asked)

    def _ask(self, asked: dict[str, Any]) -> None:
        environ = dict(os.environb)
        environ.pop(b"SANDBOX_SECRET", None)
        environ.update({k.encode(): v.encode() for k, v in asked["environ"].items()})
        wanted = supervisor.Request(
            asked["arguments"],
            os.fsencode(asked["folder"]),
            [name + b"=" + value for name, value in environ.items()],
            self.limit,
            self.grace,
        )
        packed = memoryview(wanted.packed())
        ends = [stream.writing_end for stream in self.streams]
        with suppress(OSError):  # it is gone already, which is heard of
            rest = packed[send_descriptors(self.control, packed, ends) :]
            self.control.sendall(rest)
        for end in ends:
            os.close(end)

    def end(self) -> None:
        """Have all of it ended."""
        _shut(self.control)

    def wait(self) -> None:
        """Stay until it ended and wrote what it had to write."""
        overdue = time.monotonic() + self.limit + self.grace + _OVERDUE_SECONDS
        enough: float | None = None
        while enough is None or (time.monotonic() < enough and self._is_writing()):
            if enough is None and time.monotonic() > overdue:
                self._kill()
            left = (overdue if enough is None else enough) - time.monotonic()
            self._step(max(0.0, min(left, 3600.0)))
            if enough is None and self._is_over():
                enough = time.monotonic() + _OUTPUT_SECONDS
        for stream in self.streams:
            stream.catch_up()

    def _is_over(self) -> bool:
        return self.code is not None or self.idle or self.killed

    def _is_writing(self) -> bool:
        return any(stream.open for stream in self.streams)

    def _step(self, seconds: float) -> None:
        by_end = {stream.end: stream for stream in self.streams if stream.open}
        poll = select.poll()
        for end in [*by_end, *([] if self.idle or self.killed else [self.control.fileno()])]:
            poll.register(end, select.POLLIN)
        for end, _ in poll.poll(seconds * 1000):
            if end in by_end:
                by_end[end].read()
            else:
                self._listen()

    def _listen(self) -> None:
        try:
            piece = self.control.recv(4096)
        except OSError:
            piece = b""
        *lines, self.words = (self.words + piece).split(b"\n")
        for line in lines:
            word, *numbers = line.decode().split()
            self._hear(word, [int(number) for number in numbers])
        if not piece and not self.idle:
            self._kill()

    def _hear(self, word: str, numbers: list[int]) -> None:
        if word == "failed":
            self.failed = numbers[0]
        elif word == "late":
            self.late = True
        elif word == "exited" and not self.late:
            self.code = numbers[0]
        elif word == "gone":
            self.left, self.idle = numbers, True
        elif word == "idle":
            self.idle = True

    def _kill(self) -> None:
        """Do without a supervisor that does not answer, and end what it leaves to us."""
        self.killed = True
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        deadline = time.monotonic() + _KILLED_SECONDS
        while time.monotonic() < deadline and process_tree.descendants(os.getpid()):
            process_tree.kill(os.getpid())
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass

    def leave(self) -> None:
        """Let what is in the background write on; give up what nobody reads."""
        if not self._is_writing() or self.idle or self.killed or os.fork():
            return
        _detach()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        while self._is_writing():
            for stream in self.streams:
                stream.kept = 0
            self._step(3600.0)
            time.sleep(_REST_SECONDS)
        os._exit(0)

    def verdict(self) -> dict[str, Any]:
        """How it ended."""
        stdout, stderr = self.streams
        return {
            "code": self.code,
            "failed": self.failed,
            "late": self.late,
            "left": self.left,
            "stdout": cloud_call.packed(bytes(stdout.data)),
            "stderr": cloud_call.packed(bytes(stderr.data)),
            "dropped": [stdout.dropped, stderr.dropped],
        }


def _fork_supervisor(control: socket.socket, other: socket.socket) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        _detach()
        cloud_secrecy.lose_sight()
        # It keeps the other end too: it goes on when nobody waits any more.
        one = supervisor.Supervising(control)
        signal.signal(signal.SIGTERM, lambda *_: _shut(other))
        one.serve_one()
    finally:
        os._exit(0)


def _shut(control: socket.socket) -> None:
    with suppress(OSError):
        control.shutdown(socket.SHUT_WR)


def _detach() -> None:
    """Belong to nobody, and hold nothing that the executor waits for."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)


def main() -> None:
    """Do what the arguments ask."""
    asked = cloud_call.request()
    if asked["instance"] != cloud_call.instance():
        cloud_call.answer({"restarted": True})
        return
    if asked["setup"]:
        variables = cloud_environment.variables(asked["setup"])
        if variables is None:
            cloud_call.answer({"setup": "missing"})  # and nothing runs without it
            return
        asked["environ"].update(variables)
    os.makedirs(asked["folder"], exist_ok=True)
    with suppress(OSError), open("/proc/self/comm", "w") as file:
        file.write(supervisor.NAME)
    process_tree.become_subreaper()
    command = Command(asked)
    signal.signal(signal.SIGTERM, lambda *_: command.end())
    command.wait()
    command.leave()
    cloud_call.answer(command.verdict())


if __name__ == "__main__":
    main()
