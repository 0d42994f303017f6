"""The processes that start commands, and end them with everything that they started.

A server for a session, which does nothing but fork supervisors. A supervisor runs one
command at a time and is the subreaper of all that comes of it: so an orphan belongs to
the command that it came from, and the user's own process adopts nothing. Once nothing
is left of a command, its supervisor runs another one; until then it stays with it. The
clock is the supervisor's: an event loop that is blocked ends no command late. When the
user's process is gone, so are its sockets, and everything is ended.

Standard library only, in an interpreter that was told to look at nothing else.
"""

from __future__ import annotations

import errno
import gc
import os
import select
import struct
import time

from sandboxes import process_tree
from sandboxes.bare import receive, signal, socket, suppress

# Every session waits for this file's imports, and typing is half as dear as the interpreter.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Worker = Callable[[socket.socket], None]

NAME = "sandbox-exec"

_LENGTH = struct.Struct("!I")
# Between two looks at what would not end.
_AGAIN_SECONDS = 0.02
# For what was killed to be gone; only a process that hangs in the kernel takes longer.
_KILLED_SECONDS = 1.0
# For supervisors that nobody listens to any more; one that was stopped never ends itself.
_ORPHANED_SECONDS = 20.0
_LONGEST_WAIT = 3600.0
_CAUGHT = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGCHLD,
)
# The interpreter ignores these, and a command would go on doing so.
_IGNORED = [signal.SIGPIPE, signal.SIGXFSZ]


class Request:
    """What a supervisor is told to run.

    Args:
        arguments: The program, as a path or a bare name, and its arguments.
        folder: Its working folder.
        environment: Entries such as `b"HOME=/root"`.
        limit: Seconds until it is ended.
        grace: Seconds between asking and killing.
    """

    def __init__(
        self,
        arguments: list[bytes],
        folder: bytes,
        environment: list[bytes],
        limit: float,
        grace: float,
    ) -> None:
        self.arguments = arguments
        self.folder = folder
        self.environment = environment
        self.limit = limit
        self.grace = grace

    def packed(self) -> bytes:
        """The request as bytes: no part of it can hold a NUL, which parts them."""
        parts = [
            repr(self.limit).encode(),
            repr(self.grace).encode(),
            self.folder,
            str(len(self.arguments)).encode(),
            *self.arguments,
            *self.environment,
        ]
        body = b"\0".join(parts)
        return _LENGTH.pack(len(body)) + body

    @classmethod
    def unpacked(cls, body: bytes) -> Request:
        """The request that `packed` gave, without its length."""
        limit, grace, folder, count, *rest = body.split(b"\0")
        arguments = int(count)
        return cls(rest[:arguments], folder, rest[arguments:], float(limit), float(grace))


def serve(descriptor: int, others: Mapping[bytes, Worker] | None = None) -> None:
    """Fork supervisors until the other end is closed.

    A message is one byte with the socket that a supervisor is to listen to.

    Args:
        descriptor: A socket.
        others: Whom to fork instead where the byte is one of these.
    """
    wakeup = _prepare()
    process_tree.become_subreaper()
    gc.freeze()
    os.set_inheritable(descriptor, False)
    server = socket.socket(fileno=descriptor)
    supervisors: set[int] = set()
    strays = False
    while True:
        ready = _ready([server.fileno(), wakeup], _AGAIN_SECONDS if strays else None)
        _emptied(wakeup, ready)
        strays = _reap(supervisors) or strays
        if strays:
            strays = _kill_strays(supervisors)
        if server.fileno() not in ready:
            continue
        kind, passed = receive(server, 1, 1)
        if not passed:
            break
        os.set_inheritable(passed[0], False)
        _fork(server, passed[0], supervisors, (others or {}).get(kind, _supervise))
    server.close()
    _wait_for(supervisors, wakeup)


def _prepare() -> int:
    """Be a process that commands meet rarely, and give what is readable after each signal."""
    # A command may end things by name, such as every python.
    with suppress(OSError), open("/proc/self/comm", "w") as file:
        file.write(NAME)
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # Caught and not ignored: an ignored signal would stay ignored in every command.
    for number in _CAUGHT:
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    return read


def _ready(descriptors: list[int], seconds: float | None) -> set[int]:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    wait = None if seconds is None else min(max(seconds, 0), _LONGEST_WAIT) * 1000
    return {found for found, _ in poll.poll(wait)}


def _emptied(wakeup: int, ready: set[int]) -> None:
    if wakeup in ready:
        with suppress(BlockingIOError):
            os.read(wakeup, 4096)


def _supervise(control: socket.socket) -> None:
    Supervising(control).serve()


def _fork(server: socket.socket, passed: int, supervisors: set[int], work: Worker) -> None:
    try:
        pid = os.fork()
    except OSError:  # the other end sees its socket closed, and says that nothing started
        pid = -1
    if pid == 0:
        code = 1
        try:
            server.close()
            work(socket.socket(fileno=passed))
            code = 0
        finally:
            os._exit(code)
    if pid > 0:
        supervisors.add(pid)
    os.close(passed)


def _reap(supervisors: set[int]) -> bool:
    """Take note of what has ended; True where a supervisor did not end by itself."""
    killed = False
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            killed = killed or (pid in supervisors and status != 0)
            supervisors.discard(pid)
    return killed


def _kill_strays(supervisors: set[int]) -> bool:
    """Kill what a killed supervisor left behind; True while there is some."""
    left = process_tree.descendants(os.getpid(), spared=frozenset(supervisors))
    process_tree.send(left, signal.SIGKILL)
    return bool(left)


def _wait_for(supervisors: set[int], wakeup: int) -> None:
    """See the supervisors to their ends: each knows that nobody listens any more."""
    deadline = time.monotonic() + _ORPHANED_SECONDS
    strays = False
    while supervisors or strays:
        left = deadline - time.monotonic()
        if left <= 0:
            process_tree.send(supervisors, signal.SIGKILL)
        _emptied(wakeup, _ready([wakeup], _AGAIN_SECONDS if strays or left <= 0 else left))
        strays = _reap(supervisors) or strays
        if strays:
            strays = _kill_strays(supervisors)


def _places(program: bytes, environment: dict[bytes, bytes]) -> list[bytes]:
    """Where a program may be: a bare name is looked for along the command's own path."""
    if b"/" in program:
        return [program]
    path = environment.get(b"PATH", os.fsencode(os.defpath))
    return [os.path.join(folder, program) for folder in path.split(b":")]


def _spawn(
    place: bytes,
    arguments: list[bytes],
    environment: dict[bytes, bytes],
    stdout: int,
    stderr: int,
) -> int:
    return os.posix_spawn(
        place,
        arguments,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, stdout, 1),
            (os.POSIX_SPAWN_DUP2, stderr, 2),
        ],
        setsid=True,
        setsigdef=_IGNORED,
    )


class Supervising:
    """Runs one command after the other; each to the end of the last process of it.

    What it says, a line each: `started` with its id, `exited` with a command's code or
    `failed` with an error number, `late` at a limit, `idle` when nothing is left, and as
    a last word `gone` with the ids of what could not be ended.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._wakeup = _prepare()
        self._exact = process_tree.become_subreaper()
        self._main = 0
        self._running = False

    def serve(self) -> None:
        """Run commands until one is to be ended, or nobody asks for another."""
        self._tell(f"started {os.getpid()}")
        while self._serve_next():
            pass

    def serve_one(self) -> None:
        """Run one command, to the end of all that it leaves."""
        self._tell(f"started {os.getpid()}")
        self._serve_next()

    def _serve_next(self) -> bool:
        received = self._receive()
        if received is None:
            return False
        request, streams = received
        if self._run(request, streams):
            self._tell("idle")
            return True
        left = self._end(request.grace)
        self._tell(" ".join(["gone", *map(str, sorted(left))]))
        return False

    def _receive(self) -> tuple[Request, list[int]] | None:
        """A request with the command's stdout and stderr; None when there will be none."""
        head, streams = receive(self._control, _LENGTH.size, 2)
        for stream in streams:  # what a command inherits beside its own, it could keep open
            os.set_inheritable(stream, False)
        if len(head) < _LENGTH.size or len(streams) < 2:
            return None
        wanted = _LENGTH.unpack(head)[0]
        body = bytearray()
        while len(body) < wanted:
            piece = self._control.recv(wanted - len(body))
            if not piece:
                return None
            body += piece
        return Request.unpacked(bytes(body)), streams

    def _run(self, request: Request, streams: list[int]) -> bool:
        """Run a command; False where it is to be ended with all that is left of it."""
        try:
            self._main = self._start(request, *streams)
        except OSError as error:
            self._tell(f"failed {error.errno or errno.EINVAL}")
            return True
        finally:
            for stream in streams:
                os.close(stream)
        self._running = True
        return self._watch(time.monotonic() + request.limit)

    def _start(self, request: Request, stdout: int, stderr: int) -> int:
        entries = (entry.partition(b"=") for entry in request.environment)
        environment = {name: value for name, _, value in entries}
        *others, last = _places(request.arguments[0], environment)
        os.chdir(request.folder)
        try:
            for place in others:
                with suppress(FileNotFoundError, NotADirectoryError):
                    return _spawn(place, request.arguments, environment, stdout, stderr)
            return _spawn(last, request.arguments, environment, stdout, stderr)
        finally:
            os.chdir("/")  # the folder is the command's, and may be deleted when that has ended

    def _watch(self, deadline: float) -> bool:
        """Wait until nothing is left; False where time is over, or nobody wants it to go on."""
        while not self._is_empty():
            left = deadline - time.monotonic() if self._running else None
            if left is not None and left <= 0:
                self._tell("late")
                return False
            ready = _ready([self._wakeup, self._control.fileno()], self._pause(left))
            _emptied(self._wakeup, ready)
            if self._control.fileno() in ready:
                return False
        return True

    def _pause(self, left: float | None) -> float | None:
        """How long nothing may happen: orphans of others end without our hearing of it."""
        if self._exact or self._running:
            return left
        return 1.0

    def _is_empty(self) -> bool:
        """Reap what has ended, and say whether anything is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return self._exact or not self._left()
            if pid == 0:
                return False
            if self._running and pid == self._main:
                self._running = False
                code = os.waitstatus_to_exitcode(status)
                self._tell(f"exited {128 - code if code < 0 else code}")

    def _left(self) -> set[int]:
        return process_tree.descendants(os.getpid(), group=0 if self._exact else self._main)

    def _end(self, grace: float) -> set[int]:
        """Ask everything to end, kill what does not, and give what is still there."""
        group = 0 if self._exact else self._main
        process_tree.terminate(os.getpid(), group=group)
        if self._emptied_by(time.monotonic() + grace):
            return set()
        deadline = time.monotonic() + _KILLED_SECONDS
        while time.monotonic() < deadline:
            # Again and again: what was about to start another one is gone by the next time.
            process_tree.kill(os.getpid(), group=group)
            if self._emptied_by(min(deadline, time.monotonic() + _AGAIN_SECONDS)):
                return set()
        return self._left()

    def _emptied_by(self, deadline: float) -> bool:
        while not self._is_empty():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            ready = _ready([self._wakeup], left if self._exact else min(left, 0.1))
            _emptied(self._wakeup, ready)
        return True

    def _tell(self, line: str) -> None:
        with suppress(OSError):  # nobody listens any more
            self._control.sendall(line.encode() + b"\n")
