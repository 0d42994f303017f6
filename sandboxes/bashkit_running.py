"""Commands and files of one open Bashkit sandbox."""

from __future__ import annotations

import asyncio
import errno
import posixpath
import unicodedata
import uuid
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from sandboxes.contract import RunningSandbox, SandboxClosed, SandboxExecutionResult, messages
from sandboxes.limits import TIMED_OUT, check_command, check_limit
from sandboxes.output import decoded_both, with_notes
from sandboxes.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from bashkit import Bash, ExecResult, FileSystem
    from bashkit._bashkit import NetworkConfig

T = TypeVar("T")

_TIMEOUT_ERROR = "resource limit exceeded: execution timeout"
# How long the interpreter may take to notice its own limit; a few of its commands,
# such as a sort of megabytes, look at the clock only when they are done.
_OVERRUN_SECONDS = 1.5
_SETTLE_SECONDS = 1.5
_CLOSE_SECONDS = 5.0
# Interactive lifts this limit altogether, and then awk 'BEGIN{while(1);}' would turn
# for the rest of the process's life; no loop of this length ends within a default limit.
_MAX_LOOP_ITERATIONS = 100_000_000


# The interpreter marks quoted parts of a word with these, and drops those that it is given
# in double quotes and without quotes (bashkit 0.20.1).
_MARKS = "\x1e\x1f"


def _check_marks(command: str) -> None:
    """Refuse a command of which the interpreter would silently run another.

    Raises:
        ValueError: It holds a character that the interpreter keeps for itself.
    """
    for mark in _MARKS:
        if mark in command:
            escape = f"\\x{ord(mark):02x}"
            raise ValueError(
                f"command holds the control character U+{ord(mark):04X}, which Bashkit drops; "
                f"write it as $'{escape}'"
            )


class _Work:
    """One command on its way: the interpreter, its future, and the output so far."""

    def __init__(self, shell: Bash, command: str) -> None:
        self._shell = shell
        self.stdout = bytearray()
        self.stderr = bytearray()
        # Only what is told on the way is kept at a limit. Not by the interpreter's two
        # byte sinks: it calls them in one context, and where they meet the command fails.
        self.future: asyncio.Future[ExecResult] = asyncio.ensure_future(
            shell.execute(command, on_output=self._take)
        )

    def _take(self, stdout: str, stderr: str) -> None:
        self.stdout.extend(stdout.encode())
        self.stderr.extend(stderr.encode())

    def complete(self, done: ExecResult) -> None:
        """Take the output of a command that came to its end, which is exact to the byte."""
        if not done.error:
            self.stdout[:] = done.stdout_bytes  # type: ignore[attr-defined] # its stubs lack it
            self.stderr[:] = done.stderr_bytes  # type: ignore[attr-defined] # the same

    async def stop(self) -> None:
        """End it, and wait a moment until it has ended.

        `cancel()` is what ends loops, waits, jobs and requests; the future's cancellation
        leaves loops and jobs going, but lets go of a builtin that notices neither.
        """
        self._shell.cancel()
        self.future.cancel()
        idle = asyncio.ensure_future(self._shell.execute(":"))
        await asyncio.wait({idle}, timeout=_SETTLE_SECONDS)
        idle.cancel()


class BashkitRunning(RunningSandbox):
    """Commands run in a fresh interpreter each; only files outlive them.

    Attributes:
        default_timeout_seconds: 300.
        subfolders: The folders on the host that commands see, by their name there.
        mounts: Where they see them.
    """

    default_timeout_seconds: float = 300.0
    subfolders: ClassVar[tuple[str, ...]] = ("workspace", "tmp")
    mounts: ClassVar[tuple[str, ...]] = ("/workspace", "/tmp")  # noqa: S108 - inside the sandbox
    workspace: ClassVar[str] = "/workspace"

    def __init__(self, folder: Path, network: dict[str, Any] | None) -> None:
        self._folder = folder
        self._network = network
        self._works: set[_Work] = set()
        self._stopping: set[asyncio.Task[None]] = set()
        self._file_calls: set[asyncio.Future[Any]] = set()
        self._closed = False

    async def execute(
        self, command: str, *, timeout_seconds: float | None = None
    ) -> SandboxExecutionResult:
        """Run a command; see `RunningSandbox.execute`."""
        _check_marks(check_command(command))
        limit = self._limit(timeout_seconds)
        self._check_open("run commands")
        work = _Work(self._new_shell(limit), command)
        self._works.add(work)
        try:
            await asyncio.wait({work.future}, timeout=limit + _OVERRUN_SECONDS)
            if self._closed:
                self._check_open("finish the command")
            if work.future.done():
                return await self._result(work, work.future.result(), limit)
            return self._timed_out(*await self._output(work), limit)
        finally:
            self._works.discard(work)
            if not work.future.done():
                await self._stopped(work)

    def _limit(self, timeout_seconds: float | None) -> float:
        """The limit that a command gets, in seconds."""
        return check_limit(timeout_seconds, self.default_timeout_seconds)

    def _new_shell(self, limit: float) -> Bash:
        """Make the interpreter of one command."""
        from bashkit import Bash, ExecutionProfile, FileSystem

        # The other profiles end a session after 1,000 commands and a command after
        # 10,000 loop turns or 1 MB of output.
        shell = Bash(
            cwd=self.workspace,
            timeout_seconds=limit,
            profile=ExecutionProfile.Interactive,
            max_loop_iterations=_MAX_LOOP_ITERATIONS,
            network=cast("NetworkConfig | None", self._network),
        )
        for mount, name in zip(self.mounts, self.subfolders, strict=True):
            # A command that deletes the workspace deletes what is in it, not the sandbox.
            (self._folder / name).mkdir(mode=0o700, exist_ok=True)
            shell.mount(mount, FileSystem.real(str(self._folder / name), writable=True))
        return shell

    async def _result(self, work: _Work, done: ExecResult, limit: float) -> SandboxExecutionResult:
        work.complete(done)
        stdout, stderr = await self._output(work)
        error = done.error or ""
        if error.startswith(_TIMEOUT_ERROR):
            return self._timed_out(stdout, stderr, limit)
        notes = [f"bash: {error}"] if error else []
        for stream, cut in (("stdout", done.stdout_truncated), ("stderr", done.stderr_truncated)):
            if cut:
                notes.append(f"sandbox: {stream} was cut off at 10 MiB; write it to a file")
        return SandboxExecutionResult(done.exit_code, stdout, with_notes(stderr, notes))

    def _timed_out(self, stdout: str, stderr: str, limit: float) -> SandboxExecutionResult:
        """The result of a command that ran into its limit."""
        note = f"sandbox: the command was ended at its limit of {limit:g} s"
        return SandboxExecutionResult(TIMED_OUT, stdout, with_notes(stderr, [note]))

    async def _output(self, work: _Work) -> tuple[str, str]:
        return await decoded_both(bytes(work.stdout), bytes(work.stderr))

    async def _stopped(self, work: _Work) -> None:
        """End a command, in a task that goes on where the caller is cancelled again."""
        stopping = asyncio.create_task(work.stop())
        self._stopping.add(stopping)
        stopping.add_done_callback(self._stopping.discard)
        await asyncio.wait({stopping})

    async def read_file(self, path: str) -> bytes:
        """Read a file; see `RunningSandbox.read_file`."""
        self._check_open("read files")
        return await self._file_call(lambda: self._read(path))

    async def write_file(self, path: str, data: bytes) -> None:
        """Write a file; see `RunningSandbox.write_file`."""
        self._check_open("write files")
        content = bytes(data)
        await self._file_call(lambda: self._write(path, content))

    async def _file_call(self, call: Callable[[], T]) -> T:
        future = in_thread(call)
        self._file_calls.add(future)
        future.add_done_callback(self._file_calls.discard)
        # Shielded: a cancelled caller cannot end the thread, and close() waits for it.
        return await asyncio.shield(future)

    def _inside(self, path: str) -> str:
        """The absolute, normal form of a path, as the interpreter reads it."""
        if not isinstance(path, str):
            raise TypeError(f"path is of type {type(path).__name__}; pass text")
        if any(unicodedata.category(character) in ("Cc", "Cs") for character in path):
            fact = "the sandbox refuses control characters in a path"
            raise PermissionError(errno.EPERM, fact, path)
        return "/" + posixpath.normpath(posixpath.join(self.workspace, path)).lstrip("/")

    def _read(self, path: str) -> bytes:
        inside = self._inside(path)
        files = self._new_shell(self.default_timeout_seconds).fs()
        try:
            return files.read_file(inside)
        except RuntimeError as error:
            raise _file_error(path, error) from error

    def _write(self, path: str, data: bytes) -> None:
        inside = self._inside(path)
        if inside in self.mounts:
            raise IsADirectoryError(errno.EISDIR, "is a directory", path)
        if not any(inside.startswith(f"{mount}/") for mount in self.mounts):
            kept = " and ".join(self.mounts)
            fact = f"the sandbox keeps only files below {kept}"
            raise PermissionError(errno.EPERM, fact, path)
        files = self._new_shell(self.default_timeout_seconds).fs()
        try:
            files.mkdir(posixpath.dirname(inside), recursive=True)
            _replace(files, inside, data)
        except RuntimeError as error:
            raise _file_error(path, error) from error

    def _check_open(self, action: str) -> None:
        if self._closed:
            raise SandboxClosed(messages.closed("the Bashkit sandbox", action))

    async def close(self) -> None:
        """End what runs, and refuse every later call."""
        self._closed = True
        for work in self._works:
            stopping = asyncio.create_task(work.stop())
            self._stopping.add(stopping)
            stopping.add_done_callback(self._stopping.discard)
        last = {*self._stopping, *self._file_calls}
        if last:
            await asyncio.wait(last, timeout=_CLOSE_SECONDS)

    async def inventory(self) -> Sequence[str]:
        """Name the folder on the host."""
        return (f"folder {self._folder}",) if self._folder.exists() else ()


def _replace(files: FileSystem, path: str, data: bytes) -> None:
    """Write a file so that no reader sees a part of it; a link's target is written in place."""
    if _is_link(files, path):
        files.write_file(path, data)
        return
    part = f"{posixpath.dirname(path)}/.{uuid.uuid4().hex}.part"
    try:
        files.write_file(part, data)
        if files.exists(path):
            files.chmod(part, files.stat(path)["mode"])
        files.rename(part, path)
    except RuntimeError:
        if files.exists(part):
            files.remove(part)
        raise


def _is_link(files: FileSystem, path: str) -> bool:
    try:
        files.read_link(path)
    except RuntimeError:
        return False
    return True


def _file_error(path: str, error: RuntimeError) -> OSError:
    """Python's own error for what the interpreter's file system says in words."""
    fact = str(error).removeprefix("io error: ")
    text = fact.lower()
    if "is a directory" in text:
        return IsADirectoryError(errno.EISDIR, fact, path)
    if "no such file" in text or "not found" in text or "not a directory" in text:
        return FileNotFoundError(errno.ENOENT, fact, path)
    return PermissionError(errno.EPERM, fact, path)
