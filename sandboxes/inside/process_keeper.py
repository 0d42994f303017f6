"""Keep commands running between the commands of a sandbox, and what they wrote.

Started once per session with a name and the name of a shell; listens on a socket in a
private folder of that name. One loop, no threads: each background process has a leader,
forked from here, which is the subreaper of all that the command starts, and so can end
all of it. When the keeper is gone, the leaders end their commands and themselves.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from sandboxes.inside.process_leader import lead

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Answer = dict[str, Any]
    Reply = Callable[[Answer], None]

KEPT = 1048576  # bytes of output that are kept of each process
KEPT_OF_ENDED = 64  # processes whose output is kept after they have ended
RUNNING = 64  # processes at once
UNREAD_INPUT = 1048576
PIECE = 32768  # bytes of output in one answer
GRACE_SECONDS = 5.0
CLIENT_SECONDS = 5.0
LOOK_SECONDS = 5.0


class Refused(Exception):
    """A request that cannot be met, and why."""


class Process:
    """One background process, seen from the keeper."""

    def __init__(self, name: str, command: str) -> None:
        self.name = name
        self.command = command
        self.state = "starting"
        self.exit_code: int | None = None
        self.failure = ""
        self.output = bytearray()
        self.dropped = 0
        self.unread = bytearray()
        self.closing = False  # close its standard input once `unread` is written
        self.input = self.source = self.status = self.control = -1
        self.lines = b""
        self.waiting: list[Reply] = []
        self.kill_at: float | None = None

    @property
    def end(self) -> int:
        """The cursor after all that it wrote."""
        return self.dropped + len(self.output)

    @property
    def alive(self) -> bool:
        """Whether anything that it started still runs."""
        return self.status >= 0

    def add(self, data: bytes) -> None:
        """Keep what it wrote, and only the last part of too much."""
        self.output += data
        excess = len(self.output) - KEPT
        if excess > 0:
            self.forget(excess)

    def forget(self, count: int) -> None:
        """Drop the oldest output; cursors still count it."""
        del self.output[:count]
        self.dropped += count

    def shown(self) -> Answer:
        """What a list says of it."""
        return {
            "id": self.name,
            "command": self.command[:1000],
            "state": "running" if self.state == "starting" else self.state,
            "exit_code": self.exit_code,
            "cursor": self.end,
        }


class Keeper:
    """The loop: clients, pipes and deadlines."""

    def __init__(self, listener: socket.socket, folder: str, shell: str) -> None:
        self.listener = listener
        self.folder = folder
        self.shell = shell
        self.processes: dict[str, Process] = {}
        self.selector = selectors.DefaultSelector()
        self.farewell: list[Reply] = []
        self.over = False
        self.started = 0
        self.selector.register(listener, selectors.EVENT_READ, self.accept)

    def serve(self) -> None:
        """Work until a client says that the session is over."""
        while not self.over or any(process.alive for process in self.processes.values()):
            events = self.selector.select(self.next_deadline())
            for key, _ in events:
                if self.selector.get_map().get(key.fd) is key:  # no other call let go of it
                    key.data()
            self.kill_overdue()
            if not self.over and not os.path.exists(os.path.join(self.folder, "s")):
                self.end()  # whoever deleted it deleted the only way to come here
        shutil.rmtree(self.folder, ignore_errors=True)
        for reply in self.farewell:
            reply({})

    def next_deadline(self) -> float:
        """Seconds until a process has to be killed, or until the next look at the folder."""
        ends = [process.kill_at for process in self.processes.values() if process.kill_at]
        return max(0.0, min(ends) - time.monotonic()) if ends else LOOK_SECONDS

    def end(self) -> None:
        """End all processes, and then the keeper."""
        self.over = True
        for process in self.processes.values():
            self.stop(process)

    def kill_overdue(self) -> None:
        """Kill what did not end when it was asked to."""
        for process in self.processes.values():
            if process.kill_at and process.kill_at <= time.monotonic():
                process.kill_at = None
                order(process, b"K")

    def accept(self) -> None:
        """Let a client in."""
        try:
            client, _ = self.listener.accept()
        except OSError:  # too many open files, or it is gone already
            return
        client.setblocking(False)
        request = bytearray()

        def read() -> None:
            data = b""
            try:
                data = client.recv(65536)
            except BlockingIOError:
                return
            except OSError:
                request.clear()
            request.extend(data)
            if not data:
                self.selector.unregister(client)
                self.answer(bytes(request), lambda answer: send(client, answer))

        self.selector.register(client, selectors.EVENT_READ, read)

    def answer(self, request: bytes, reply: Reply) -> None:
        """Do what a client asks."""
        try:
            message = json.loads(request)
        except ValueError:  # the client was ended half-way
            return reply({})
        for process in list(self.processes.values()):
            self.read_output(process)
        try:
            self.handle(message, reply)
        except Refused as refused:
            reply({"refused": str(refused)})
        except OSError as error:
            reply({"refused": f"the sandbox cannot do it ({error}); stop some processes"})
        return None

    def handle(self, message: Answer, reply: Reply) -> None:
        """Meet one request, now or later."""
        what = message["do"]
        if what == "start":
            return self.start(message, reply)
        if what == "list":
            return reply({"processes": [one.shown() for one in self.processes.values()]})
        if what == "close":
            self.farewell.append(reply)
            return self.end()
        process = self.processes.get(message["id"])
        if process is None:
            raise Refused(f"there is no process {message['id']}; list shows those that there are")
        if what == "output":
            return reply(self.output(process, message["cursor"]))
        if what == "write":
            return reply(self.write(process, base64.b64decode(message["data"]), message["close"]))
        process.waiting.append(lambda answer: reply({"process": process.shown()}))
        self.stop(process)
        return None

    def start(self, message: Answer, reply: Reply) -> None:
        """Fork a leader for a command."""
        if sum(process.alive for process in self.processes.values()) >= RUNNING:
            raise Refused(f"{RUNNING} processes run already; stop one first")
        self.started += 1
        process = Process(f"process-{self.started}", message["command"])
        inside, process.input = os.pipe()
        process.source, outside = os.pipe()
        process.status, told = os.pipe()
        orders, process.control = os.pipe()
        others = (inside, outside, told, orders)
        try:
            if os.fork() == 0:
                lead(message, self.shell, others)
        except OSError:  # too many processes
            for end in (process.input, process.source, process.status, process.control):
                os.close(end)
            raise
        finally:
            for end in others:
                os.close(end)
        self.processes[process.name] = process
        process.waiting.append(
            lambda answer: reply(
                {"refused": process.failure} if process.failure else {"process": process.shown()}
            )
        )
        for descriptor in (process.source, process.status, process.input):
            os.set_blocking(descriptor, False)
        self.selector.register(
            process.source, selectors.EVENT_READ, lambda: self.read_output(process)
        )
        self.selector.register(
            process.status, selectors.EVENT_READ, lambda: self.read_status(process)
        )

    def output(self, process: Process, cursor: int) -> Answer:
        """What a process wrote after a cursor."""
        if not 0 <= cursor <= process.end:
            raise Refused(
                f"{process.name} has written {process.end} bytes and there is no cursor {cursor}; "
                "pass 0 or one that was given"
            )
        first = max(cursor, process.dropped)
        data = bytes(process.output[first - process.dropped :][:PIECE])
        return {
            "data": base64.b64encode(data).decode(),
            "dropped": first - cursor,
            "first": first,
            "last": first + len(data) == process.end and process.source < 0,
            "process": process.shown(),
        }

    def write(self, process: Process, data: bytes, close: bool) -> Answer:
        """Queue bytes for the standard input of a process."""
        if process.input < 0 or process.closing:
            if not data and close:
                return {}
            raise Refused(f"the standard input of {process.name} is closed; start another one")
        if len(process.unread) + len(data) > UNREAD_INPUT:
            raise Refused(
                f"{process.name} has not read {len(process.unread)} bytes of its standard input; "
                "write less, or wait until it has"
            )
        process.unread += data
        process.closing = close
        self.feed(process)
        return {}

    def feed(self, process: Process) -> None:
        """Pass on what waits for a process's standard input."""
        try:
            while process.unread:
                del process.unread[: os.write(process.input, process.unread[:65536])]
        except BlockingIOError:
            if process.input not in self.selector.get_map():
                self.selector.register(
                    process.input, selectors.EVENT_WRITE, lambda: self.feed(process)
                )
            return
        except OSError:  # it closed its end
            self.close_input(process)
            return
        if process.input in self.selector.get_map():
            self.selector.unregister(process.input)
        if process.closing:
            self.close_input(process)

    def close_input(self, process: Process) -> None:
        """Close the standard input of a process."""
        process.unread.clear()
        process.input = self.closed(process.input)

    def closed(self, descriptor: int) -> int:
        """Let go of a descriptor."""
        if descriptor >= 0:
            if descriptor in self.selector.get_map():
                self.selector.unregister(descriptor)
            os.close(descriptor)
        return -1

    def read_output(self, process: Process, limit: int = 16) -> None:
        """Read what there is; a flood leaves the others their turn."""
        while process.source >= 0 and limit:
            limit -= 1
            try:
                data = os.read(process.source, 65536)
            except BlockingIOError:
                return
            if not data:
                process.source = self.closed(process.source)
            process.add(data)

    def read_status(self, process: Process) -> None:
        """Hear from a leader: that the command runs, its exit code, and that all has ended."""
        try:
            news = os.read(process.status, 65536)
        except BlockingIOError:
            return
        process.lines += news
        if not news:
            self.gone(process)
        while b"\n" in process.lines:
            line, _, process.lines = process.lines.partition(b"\n")
            word, _, rest = line.decode().partition(" ")
            if word == "failed":
                process.failure = rest
            elif word == "running":
                process.state = word if process.state == "starting" else process.state
                if process.kill_at is None:
                    settle(process)
            elif word == "ended":
                self.ended(process, int(rest))

    def ended(self, process: Process, code: int) -> None:
        """Keep the exit code of a command, after all that it wrote itself."""
        self.read_output(process, limit=2 * KEPT // 65536)
        process.exit_code = code
        process.state = "exited" if process.state != "stopped" else process.state
        self.close_input(process)

    def gone(self, process: Process) -> None:
        """A leader ended, and with it all that its command had started."""
        process.status = self.closed(process.status)
        process.control = self.closed(process.control)
        self.read_output(process, limit=2 * KEPT // 65536)
        process.source = self.closed(process.source)
        self.close_input(process)
        process.kill_at = None
        if process.failure:
            del self.processes[process.name]
        elif process.exit_code is None:
            self.ended(process, 128 + signal.SIGKILL)  # somebody killed the leader
        settle(process)
        over = [one for one in self.processes.values() if not one.alive]
        for one in over[:-KEPT_OF_ENDED]:
            one.forget(len(one.output))
        reap()

    def stop(self, process: Process) -> None:
        """Ask all that a process started to end; what does not is killed."""
        if not process.alive:
            return settle(process)
        if process.kill_at is None:
            if process.exit_code is None:
                process.state = "stopped"
            process.kill_at = time.monotonic() + GRACE_SECONDS
            order(process, b"T")
        return None


def settle(process: Process) -> None:
    """Answer those who waited for a process."""
    waiting, process.waiting = process.waiting, []
    for reply in waiting:
        reply({})


def order(process: Process, letter: bytes) -> None:
    """Tell a leader to end its command."""
    with contextlib.suppress(OSError):  # it just ended by itself
        os.write(process.control, letter)


def send(client: socket.socket, answer: Answer) -> None:
    """Answer a client, which may be gone."""
    with client:
        client.settimeout(CLIENT_SECONDS)
        with contextlib.suppress(OSError):
            client.sendall(json.dumps(answer).encode())


def reap() -> None:
    """Collect the leaders that ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main(name: str, shell: str) -> None:
    """Listen, and go on in the background."""
    folder = os.path.join(tempfile.gettempdir(), name)
    listener = socket.socket(socket.AF_UNIX)
    os.mkdir(folder, 0o700)
    try:
        os.chdir(folder)
        listener.bind("s")
        listener.listen(64)
        apart, told = os.pipe()
        child = os.fork()
    except OSError:
        shutil.rmtree(folder)
        raise
    if child != 0:
        # Some sandboxes end the group of a command with it: the child has to be out of it.
        os.close(told)
        os.read(apart, 1)
        sys.stdout.write("sandbox-processes:" + json.dumps(folder) + "\n")
        return
    os.setsid()
    os.close(told)
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.closerange(3, listener.fileno())
    os.closerange(listener.fileno() + 1, 65536)
    Keeper(listener, folder, shell).serve()


if __name__ == "__main__":
    main(*sys.argv[1:])
