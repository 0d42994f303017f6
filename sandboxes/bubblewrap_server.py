"""The server of supervisors that is the first process inside, as the host's side sees it."""

from __future__ import annotations

import errno
import select
import socket
import tempfile
import time
from typing import TYPE_CHECKING

from sandboxes.contract import SandboxError, SandboxStartError
from sandboxes.inside.bubblewrap_server import ANSWER, FILES, HEAD, READ, WRITE, exactly
from sandboxes.supervision import Server
from sandboxes.threads import in_thread, to_the_end

if TYPE_CHECKING:
    from sandboxes.bubblewrap_space import Space

_READY_SECONDS = 30.0
_FILE_SECONDS = 120.0
# A command may kill whoever reads a file for us, but not the one who forks another; and there
# may be no room for one more process for a moment.
_PAUSES = (0.0, 0.05, 0.2, 0.5)
_SHOWN = 300


class SpaceServer(Server):
    """Starts bwrap with the server inside.

    To be built on a thread that lives as long as the sandbox: when it ends, the kernel
    ends what it has started.

    Args:
        sandbox: What errors call the sandbox.
        bwrap: The program.
        space: What the inside sees.

    Attributes:
        listener: When it is ready, the socket that listens inside, if one is to; it is
            its user's to close.

    Raises:
        SandboxError: bwrap could not be started.
    """

    def __init__(self, sandbox: str, bwrap: str, space: Space) -> None:
        self.listener: socket.socket | None = None
        self._sandbox = sandbox
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the server
        try:
            super().__init__(
                lambda descriptor: space.command(bwrap, descriptor),
                stderr=self._complaints.fileno(),
            )
        except BaseException:
            self._complaints.close()
            raise

    @property
    def pid(self) -> int:
        """The process that holds the namespaces."""
        return self._process.pid

    def retire(self) -> None:
        """Go on asking it: nothing that a command does ends or stops it."""

    def same(self) -> Server:
        """Give itself, where another server would be another sandbox.

        Raises:
            SandboxError: It is no more.
        """
        if not self.alive():
            raise SandboxError(
                f"{self._sandbox}: its first process was ended from outside; start another session"
            )
        return self

    async def ready(self) -> None:
        """Wait for the inside.

        Raises:
            SandboxStartError: It does not come to be.
        """
        await to_the_end(in_thread(self._ready))

    def _ready(self) -> None:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        word, passed = b"", list[int]()
        if poll.poll(_READY_SECONDS * 1000):
            word, passed, _, _ = socket.recv_fds(self._socket, 1, 1)
        if not word:
            raise SandboxStartError(self._complaint())
        self.listener = socket.socket(fileno=passed[0]) if passed else None

    def _complaint(self) -> str:
        self._complaints.seek(0)
        text = self._complaints.read().decode(errors="replace").strip()
        told = text.splitlines()[-1][:_SHOWN] if text else "it says nothing"
        if "ermission" in told or "namespace" in told or "uid map" in told:
            remedy = (
                "let your user make user namespaces (sysctl user.max_user_namespaces, "
                "kernel.unprivileged_userns_clone, on Ubuntu an AppArmor profile for bwrap)"
            )
        else:
            remedy = "install bubblewrap 0.8 or newer, and see that bwrap runs by hand"
        return f"{self._sandbox}: bwrap makes no sandbox here ({told}); {remedy}"

    def read_file(self, path: str) -> bytes:
        """Read a file inside, blocking; see `RunningSandbox.read_file`."""
        return self._use_file(READ, path, b"")

    def write_file(self, path: str, data: bytes) -> None:
        """Write a file inside, blocking; see `RunningSandbox.write_file`."""
        self._use_file(WRITE, path, data)

    def _use_file(self, action: bytes, path: str, data: bytes) -> bytes:
        if not isinstance(path, str):
            raise TypeError(f"path is of type {type(path).__name__}; pass text")
        try:
            name = path.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            fact = "no file has half of a surrogate pair in its name"
            raise PermissionError(errno.EPERM, fact, path) from None
        for pause in _PAUSES:
            time.sleep(pause)
            try:
                return self._asked(HEAD.pack(action, len(name), len(data)) + name, data, path)
            except (EOFError, ConnectionError):
                continue
        raise SandboxError(
            f"{self._sandbox}: {path!r} cannot be used, something inside ends whoever tries; "
            "end the command that does"
        )

    def _asked(self, head: bytes, data: bytes, path: str) -> bytes:
        control, theirs = socket.socketpair()
        with control:
            control.settimeout(_FILE_SECONDS)
            with theirs:
                try:
                    self.fork(theirs, FILES)
                except OSError as error:
                    raise SandboxError(f"{self._sandbox}: it is no more ({error})") from error
            control.sendall(head)
            control.sendall(data)
            number, length, size = ANSWER.unpack(exactly(control, ANSWER.size))
            fact = exactly(control, length).decode(errors="replace")
            found = exactly(control, size)
        if number:
            raise OSError(number, fact, path)
        return found

    async def close(self) -> None:
        """End the namespaces, and with them everything inside."""
        try:
            await super().close()
        finally:
            self._complaints.close()
