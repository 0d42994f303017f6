"""A live sandbox whose commands are processes that `Commands` looks after."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sandboxes import host_files
from sandboxes.contract import RunningSandbox, SandboxClosed, SandboxExecutionResult, messages
from sandboxes.limits import check_command, check_limit, encoded_command
from sandboxes.output import decoded_both, with_notes
from sandboxes.threads import in_thread
from sandboxes.timeouts import Commands

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")

_CLOSE_SECONDS = 5.0


class ProcessRunning(RunningSandbox):
    """Each command is a shell of its own; what it leaves in the background outlives it.

    As it is it serves a sandbox that shares the host's files: what is read and written is
    what commands see. A sandbox with files of its own overrides `_read` and `_write`.

    Args:
        shell: The program and its arguments, behind which a command's text comes, such as
            `["/bin/bash", "-c", "--"]`; what confines commands stands before it.
        folder: Where commands run, and where relative paths begin.
        environ: The whole environment of commands; that of this process, at each command,
            where it is None.
        default_timeout_seconds: The limit of a command that brings none.
        commands: Runs them; on the host if None.
        called: What errors call the sandbox.

    Attributes:
        default_timeout_seconds: What it was given.
    """

    def __init__(
        self,
        shell: Sequence[str],
        folder: Path | str,
        environ: Mapping[str, str] | None = None,
        *,
        default_timeout_seconds: float = 600.0,
        commands: Commands | None = None,
        called: str = "the sandbox",
    ) -> None:
        self.default_timeout_seconds = default_timeout_seconds
        self._shell = [os.fsencode(word) for word in shell]
        self._place = Path(folder)
        self._environ = None if environ is None else _encoded(environ)
        self._commands = Commands() if commands is None else commands
        self._called = called
        self._file_calls: set[asyncio.Future[Any]] = set()
        self._closed = False

    def _folder(self) -> Path:
        """Where commands run; a sandbox that may have lost its folder makes it anew here."""
        return self._place

    async def execute(
        self, command: str, *, timeout_seconds: float | None = None
    ) -> SandboxExecutionResult:
        """Run a command; see `RunningSandbox.execute`.

        Of each stream 64 MiB are kept; a line on stderr says how much more there was.
        """
        text = encoded_command(check_command(command))
        limit = check_limit(timeout_seconds, self.default_timeout_seconds)
        self._check_open("run commands")
        ended = await self._commands.run(
            [*self._shell, text],
            folder=self._folder(),
            environ=dict(os.environb) if self._environ is None else self._environ,
            limit=limit,
        )
        self._check_open("finish the command")
        stdout, stderr = await decoded_both(ended.stdout, ended.stderr)
        return SandboxExecutionResult(ended.exit_code, stdout, with_notes(stderr, ended.notes))

    async def read_file(self, path: str) -> bytes:
        """Read a regular file; see `RunningSandbox.read_file`."""
        self._check_open("read files")
        return await self._file_call(lambda: self._read(path))

    async def write_file(self, path: str, data: bytes) -> None:
        """Write a regular file; see `RunningSandbox.write_file`."""
        self._check_open("write files")
        content = bytes(data)
        await self._file_call(lambda: self._write(path, content))

    def _read(self, path: str) -> bytes:
        return host_files.read(self._folder(), path)

    def _write(self, path: str, data: bytes) -> None:
        host_files.write(self._folder(), path, data)

    async def _file_call(self, call: Callable[[], T]) -> T:
        future = in_thread(call)
        self._file_calls.add(future)
        future.add_done_callback(self._file_calls.discard)
        # Shielded: a cancelled caller cannot end the thread, and close() waits for it.
        return await asyncio.shield(future)

    def _check_open(self, action: str) -> None:
        if self._closed:
            raise SandboxClosed(messages.closed(self._called, action))

    async def close(self) -> None:
        """End every process of the session, and refuse every later call.

        Raises:
            SandboxError: A process could not be ended.
        """
        self._closed = True
        try:
            # First: whoever uses files may belong to what ends the commands.
            if self._file_calls:
                await asyncio.wait(set(self._file_calls), timeout=_CLOSE_SECONDS)
        finally:
            await self._commands.close()


def _encoded(environ: Mapping[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(text) for name, text in environ.items()}
