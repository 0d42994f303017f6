"""Supervisors, and the server that forks them, as the user's event loop sees them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sandboxes.contract import SandboxError
from sandboxes.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sandboxes.supervisor import Request

_CLOSE_SECONDS = 10.0
# struct ucred, which Linux adds to a message: the sender's process id, user and group.
_CREDENTIALS = struct.Struct("3i")
_HAS_CREDENTIALS = sys.platform == "linux"

# The package's own __init__ would import the whole library, and pydantic with it.
_PROGRAM = """
import sys, types
package = types.ModuleType("sandboxes")
package.__path__ = [sys.argv[1]]
sys.modules["sandboxes"] = package
from sandboxes.supervisor import serve
serve(int(sys.argv[2]))
"""


def _program(descriptor: int) -> Sequence[str]:
    # Neither the user's modules nor variables have a say in it.
    flags = ["-I", "-S", *(["-B"] if sys.dont_write_bytecode else [])]
    words = [_PROGRAM, str(Path(__file__).parent), str(descriptor)]
    return [sys.executable, *flags, "-c", *words]


class Server:
    """The process that forks supervisors.

    Args:
        program: What to run, given the descriptor of its socket; it ends up in
            `supervisor.serve`.
        stderr: Where it complains.

    Raises:
        SandboxError: It could not be started.
    """

    def __init__(
        self,
        program: Callable[[int], Sequence[str]] = _program,
        *,
        stderr: int = subprocess.DEVNULL,
    ) -> None:
        self._retired = False
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        with theirs:
            words = program(theirs.fileno())
            try:
                self._process = subprocess.Popen(
                    words,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=stderr,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,  # Ctrl-C is for the user's process
                    cwd="/",
                )
            except OSError as error:
                self._socket.close()
                raise SandboxError(
                    f"commands cannot be supervised: there is no {words[0]!r} "
                    f"({error.strerror}); install it, or set sys.executable to a Python"
                ) from error

    def alive(self) -> bool:
        """Whether it is there to be asked."""
        return not self._retired and self._process.poll() is None

    def retire(self) -> None:
        """Ask it nothing more; it goes on looking after its supervisors."""
        self._retired = True

    def fork(self, control: socket.socket, kind: bytes = b"+") -> None:
        """Have a supervisor forked that listens to this.

        Args:
            control: Its end of a socket pair.
            kind: A byte that asks for somebody other than a supervisor.

        Raises:
            OSError: The server is no more, or does not read.
        """
        socket.send_fds(self._socket, [kind], [control.fileno()])

    async def close(self) -> None:
        """See it to its end, which comes after that of all its supervisors."""
        self._socket.close()
        self._process.send_signal(signal.SIGCONT)  # a command may have stopped it
        ending = in_thread(lambda: self._process.wait(timeout=_CLOSE_SECONDS))
        await asyncio.wait({ending})
        if ending.exception() is not None:
            self._process.kill()
            await asyncio.wait({in_thread(self._process.wait)})


class Listener(Protocol):
    """Whoever a supervisor works for."""

    def hear(self, word: str, numbers: list[int]) -> None:
        """Take in a word of the supervisor's; the last one is `lost` when it is no more."""


class Supervisor:
    """A process that runs one command at a time, and knows all that comes of it.

    Attributes:
        server: Who forked it, and looks after what it would leave if it were killed.
        pid: Its process id; 0 until it is known.
        gone: Done when it is no more, or when we do without it.
    """

    def __init__(self, server: Server) -> None:
        self._loop = asyncio.get_running_loop()
        self.server = server
        self._listener: Listener | None = None
        self._words = b""
        self._unsent = memoryview(b"")
        self.pid = 0
        self._sender = 0
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._control, theirs = socket.socketpair()
        self._control.setblocking(False)
        if _HAS_CREDENTIALS:
            self._control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._loop.add_reader(self._control.fileno(), self._listen)
        with theirs:
            try:
                server.fork(theirs)
            except OSError:
                self.let_go()

    def alive(self) -> bool:
        """Whether it is there to be asked; the event loop may not have heard yet."""
        if self.gone.done():
            return False
        try:
            return self._control.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def ask(self, request: Request, streams: Sequence[int], listener: Listener) -> None:
        """Have a command run.

        Args:
            request: What to run.
            streams: Its stdout and stderr.
            listener: Who hears what becomes of it.

        Raises:
            OSError: It is no more.
        """
        if self.gone.done():
            raise ConnectionError("its supervisor is no more")
        self._listener = listener
        packed = memoryview(request.packed())
        sent = socket.send_fds(self._control, [packed], streams)
        self._unsent = packed[sent:]
        self._push()

    def _push(self) -> None:
        try:
            if self._unsent:
                self._unsent = self._unsent[self._control.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:  # it is gone, and we hear of that from the other direction
            self._unsent = memoryview(b"")
        if self._unsent:
            self._loop.add_writer(self._control.fileno(), self._push)
        else:
            self._loop.remove_writer(self._control.fileno())

    def _listen(self) -> None:
        try:
            piece = self._received()
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        *lines, self._words = (self._words + piece).split(b"\n")
        for line in lines:
            word, *numbers = line.decode().split()
            self._hear(word, [int(number) for number in numbers])
        if not piece:
            self.let_go()

    def _received(self) -> bytes:
        piece, extras, _, _ = self._control.recvmsg(4096, socket.CMSG_SPACE(_CREDENTIALS.size))
        if _HAS_CREDENTIALS:
            for level, kind, data in extras:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                    self._sender = _CREDENTIALS.unpack(data)[0] or self._sender
        return piece

    def _hear(self, word: str, numbers: list[int]) -> None:
        if word == "started":
            # In a process namespace of its own it does not know what we call it: the kernel does.
            self.pid = self._sender or numbers[0]
        elif self._listener is not None:
            listener = self._listener
            if word == "idle":
                self._listener = None
            listener.hear(word, numbers)

    def end(self) -> None:
        """Have everything of its command ended: what it does when nobody talks to it."""
        if not self.gone.done():
            with suppress(OSError):
                self._control.shutdown(socket.SHUT_WR)
            self._signal(signal.SIGCONT)  # its command may have stopped it

    def kill(self) -> bool:
        """Kill it; False if it never said who it is.

        It is there for as long as it has its end of the socket.
        """
        self._signal(signal.SIGKILL)
        return self.pid != 0

    def _signal(self, number: signal.Signals) -> None:
        if self.pid and self.alive():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def let_go(self) -> None:
        """Do without it; it ends what it has, and itself."""
        if self.gone.done():
            return
        self.gone.set_result(None)
        self._loop.remove_reader(self._control.fileno())
        self._loop.remove_writer(self._control.fileno())
        self._control.close()
        if self._listener is not None:
            self._listener.hear("lost", [])
