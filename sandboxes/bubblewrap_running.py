"""Commands and files of one open Bubblewrap sandbox."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sandboxes.bubblewrap_space import WORKSPACE
from sandboxes.contract import RunningSandbox, SandboxClosed, SandboxExecutionResult, messages
from sandboxes.limits import check_command, check_limit, encoded_command
from sandboxes.output import decoded_both, with_notes
from sandboxes.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sandboxes.bubblewrap_server import SpaceServer
    from sandboxes.timeouts import Commands

T = TypeVar("T")

_CLOSE_SECONDS = 5.0


class BubblewrapRunning(RunningSandbox):
    """Each command is a bash of its own inside; its background outlives it.

    Attributes:
        default_timeout_seconds: 600, or what the sandbox was given.
    """

    def __init__(
        self,
        server: SpaceServer,
        commands: Commands,
        environ: Mapping[str, str],
        folder: Path,
        default_timeout_seconds: float,
    ) -> None:
        self.default_timeout_seconds = default_timeout_seconds
        self._server = server
        self._commands = commands
        self._environ = {os.fsencode(name): os.fsencode(text) for name, text in environ.items()}
        self._folder = folder
        self._file_calls: set[asyncio.Future[Any]] = set()
        self._closed = False

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
            # After -- a text that begins with a dash is a command too.
            [b"/bin/bash", b"-c", b"--", text],
            folder=Path(WORKSPACE),
            environ=self._environ,
            limit=limit,
        )
        if self._closed:
            self._check_open("finish the command")
        stdout, stderr = await decoded_both(ended.stdout, ended.stderr)
        return SandboxExecutionResult(ended.exit_code, stdout, with_notes(stderr, ended.notes))

    async def read_file(self, path: str) -> bytes:
        """Read a regular file; see `RunningSandbox.read_file`."""
        self._check_open("read files")
        return await self._file_call(lambda: self._server.read_file(path))

    async def write_file(self, path: str, data: bytes) -> None:
        """Write a regular file; see `RunningSandbox.write_file`."""
        self._check_open("write files")
        content = bytes(data)
        await self._file_call(lambda: self._server.write_file(path, content))

    async def _file_call(self, call: Callable[[], T]) -> T:
        future = in_thread(call)
        self._file_calls.add(future)
        future.add_done_callback(self._file_calls.discard)
        # Shielded: a cancelled caller cannot end the thread, and close() waits for it.
        return await asyncio.shield(future)

    def _check_open(self, action: str) -> None:
        if self._closed:
            raise SandboxClosed(messages.closed("the Bubblewrap sandbox", action))

    async def close(self) -> None:
        """End every process of the session, and refuse every later call."""
        self._closed = True
        try:
            if self._file_calls:
                await asyncio.wait(set(self._file_calls), timeout=_CLOSE_SECONDS)
        finally:
            await self._commands.close()

    async def inventory(self) -> Sequence[str]:
        """Name the session's folder, and the process that holds its namespaces."""
        folder = [f"folder {self._folder}"] if self._folder.exists() else []
        return (*folder, *([f"process {self._server.pid}"] if self._server.alive() else []))
