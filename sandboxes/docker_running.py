"""Commands and files of one open Docker sandbox, beside the event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from sandboxes import docker_files
from sandboxes.contract import RunningSandbox, SandboxClosed, SandboxExecutionResult, messages
from sandboxes.docker_commands import Command, shell_words
from sandboxes.limits import check_command, check_limit
from sandboxes.output import decoded_both, with_notes
from sandboxes.threads import in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sandboxes.docker_container import Container
    from sandboxes.timeouts import Ended

T = TypeVar("T")

_CLOSE_SECONDS = 5.0


class DockerRunning(RunningSandbox):
    """Each command is a shell of its own in the container; its background outlives it.

    Attributes:
        default_timeout_seconds: 600, or what the sandbox was given.
    """

    def __init__(self, container: Container, shell: str, default_timeout_seconds: float) -> None:
        self.default_timeout_seconds = default_timeout_seconds
        self._container = container
        self._shell = shell
        self._calls: set[asyncio.Future[Any]] = set()
        self._closed = False

    async def execute(
        self, command: str, *, timeout_seconds: float | None = None
    ) -> SandboxExecutionResult:
        """Run a command; see `RunningSandbox.execute`.

        Of each stream 64 MiB are kept; a line on stderr says how much more there was.
        """
        arguments = shell_words(self._shell, check_command(command))
        limit = check_limit(timeout_seconds, self.default_timeout_seconds)
        self._check_open("run commands")
        work = self._command(arguments, limit)
        call = self._begin(work.run)
        try:
            ended = await self._outcome(call, "finish the command")
        except asyncio.CancelledError:
            await self._end(work, call)
            raise
        stdout, stderr = await decoded_both(ended.stdout, ended.stderr)
        return SandboxExecutionResult(ended.exit_code, stdout, with_notes(stderr, ended.notes))

    def _command(self, arguments: Sequence[str], limit: float) -> Command:
        return Command(self._container, arguments, limit)

    async def _end(self, work: Command, call: asyncio.Future[Ended]) -> None:
        """End a command; who is cancelled again does not wait for that."""
        both: set[asyncio.Future[Any]] = {self._begin(work.end), call}
        await asyncio.wait(both)

    async def read_file(self, path: str) -> bytes:
        """Read a regular file; see `RunningSandbox.read_file`."""
        self._check_open("read files")
        call = self._begin(lambda: docker_files.read(self._container, path))
        return await self._outcome(call, "read the file")

    async def write_file(self, path: str, data: bytes) -> None:
        """Write a regular file; see `RunningSandbox.write_file`."""
        self._check_open("write files")
        content = bytes(data)
        call = self._begin(lambda: docker_files.write(self._container, path, content))
        await self._outcome(call, "write the file")

    def _begin(self, blocking: Callable[[], T]) -> asyncio.Future[T]:
        call = in_thread(blocking)
        self._calls.add(call)
        call.add_done_callback(self._over)
        return call

    def _over(self, call: asyncio.Future[Any]) -> None:
        self._calls.discard(call)
        if not call.cancelled():
            call.exception()  # retrieved: a cancelled caller does not hear of it

    async def _outcome(self, call: asyncio.Future[T], action: str) -> T:
        # Shielded: a cancelled caller cannot end the thread, and close() waits for it.
        await asyncio.wait({call})
        if self._closed:
            self._check_open(action)
        return call.result()

    def _check_open(self, action: str) -> None:
        if self._closed:
            raise SandboxClosed(messages.closed("the Docker sandbox", action))

    async def inventory(self) -> Sequence[str]:
        """Name the container and the volume of its workspace."""
        return tuple(await self._begin(self._container.inventory))

    def shut(self) -> None:
        """Refuse every later call."""
        self._closed = True

    async def settled(self) -> None:
        """Wait for the calls that were cut off when the container was removed."""
        if self._calls:
            await asyncio.wait(set(self._calls), timeout=_CLOSE_SECONDS)
