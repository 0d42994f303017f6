"""Commands and files of one open sandbox on Mistral Cloud."""

from __future__ import annotations

import asyncio
import errno
import os
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from sandboxes.contract import RunningSandbox, SandboxClosed, SandboxExecutionResult, messages
from sandboxes.limits import TIMED_OUT, check_command, check_limit, encoded_command
from sandboxes.mistral.programs import bytes_of, compressed
from sandboxes.output import decoded_both, with_notes
from sandboxes.threads import in_thread
from sandboxes.timeouts import GRACE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from sandboxes.mistral.definition import Json
    from sandboxes.mistral.programs import Programs
    from sandboxes.mistral.proxy_environment import ProxyEnvironment

T = TypeVar("T")

KEPT_BYTES = 16 * 1024 * 1024
"""Of each stream of a command; small machines hold it in memory, and it comes in one answer."""

_FILE_SECONDS = 180.0
_END_SECONDS = 30.0
# For an answer to come over after a command was ended.
_SLACK_SECONDS = 30.0
_LARGE = 65_536
_KILLED = 137
_CANNOT_RUN, _NOT_FOUND = 126, 127
_RESTORED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a session found, or set up, inside.

    Attributes:
        folder: Where commands run.
        instance: What differs once it was started anew.
        shell: The shell of commands, as a path.
        environ: Variables that commands get beside those of the image.
    """

    folder: str
    instance: str
    shell: str
    environ: Mapping[str, str] = field(default_factory=dict)


class MistralRunning(RunningSandbox):
    """Each command is a shell of its own in the cloud; its background outlives it.

    Attributes:
        default_timeout_seconds: 600, or what the sandbox was given.
    """

    def __init__(
        self,
        programs: Programs,
        place: Place,
        default_timeout_seconds: float,
        things: Callable[[], Sequence[str]],
        proxied: ProxyEnvironment | None = None,
    ) -> None:
        self.default_timeout_seconds = default_timeout_seconds
        self._programs = programs
        self._place = place
        self._things = things
        self._proxied = proxied
        # All calls of the session begin with it.
        self._token = uuid.uuid4().hex
        self._calls: set[asyncio.Future[Any]] = set()
        self._closed = False

    async def execute(
        self, command: str, *, timeout_seconds: float | None = None
    ) -> SandboxExecutionResult:
        """Run a command; see `RunningSandbox.execute`.

        Of each stream 16 MiB are kept; a line on stderr says how much more there was. A
        command is sent once: where its answer is lost, an error says that it may have run.
        """
        text = encoded_command(check_command(command))
        limit = check_limit(timeout_seconds, self.default_timeout_seconds)
        self._check_open("run commands")
        token = f"{self._token}-{uuid.uuid4().hex}"
        call = self._begin(self._run(token, text, limit))
        try:
            answer = await self._outcome(call, "finish the command")
        except asyncio.CancelledError:
            if not self._closed:
                await self._end(token, call)
            raise
        return await self._result(answer, limit)

    async def _run(self, token: str, text: bytes, limit: float) -> Json:
        """Run a command, under the environment of Sandbox Proxy if the session has one."""
        if self._proxied is None:
            return await self._sent(token, text, limit, {})
        for _ in range(_RESTORED):
            setup = await self._proxied.ready()
            answer = await self._sent(token, text, limit, setup)
            if "setup" not in answer:
                return answer
            await self._proxied.restore(setup)  # nothing has run
        raise self._proxied.broken_off("each time it was gone again before the next command")

    def _sent(
        self, token: str, text: bytes, limit: float, setup: Json
    ) -> Coroutine[Any, Any, Json]:
        request = {
            **self._here(),
            # After -- a text that begins with a dash is a command too.
            "arguments": [self._place.shell.encode(), b"-c", b"--", text],
            "environ": dict(self._place.environ),
            "setup": setup,
            "limit": limit,
            "grace": GRACE_SECONDS,
            "kept": KEPT_BYTES,
        }
        longest = limit + GRACE_SECONDS + _SLACK_SECONDS
        return self._programs.ask("command", request, seconds=longest, token=token)

    def _here(self) -> Json:
        return {"folder": self._place.folder, "instance": self._place.instance}

    async def _end(self, token: str, call: asyncio.Future[Json]) -> None:
        """End a command; who is cancelled again does not wait for that.

        The request may still be on its way, and so it is looked for until it ends.
        """
        deadline = asyncio.get_running_loop().time() + _END_SECONDS
        while not call.done() and asyncio.get_running_loop().time() < deadline:
            ending = self._begin(self._end_calls(token))
            await asyncio.wait({ending})
            await asyncio.wait({call}, timeout=0.1)
        call.cancel()

    async def _end_calls(self, token: str) -> Json:
        request = {"token": token[::-1], "seconds": GRACE_SECONDS + 3}
        return await self._programs.ask("end", request, seconds=_END_SECONDS)

    async def _result(self, answer: Json, limit: float) -> SandboxExecutionResult:
        code, notes = _verdict(answer, limit)
        packed = answer["stdout"], answer["stderr"]
        if sum(map(len, packed)) > _LARGE:
            stdout, stderr = await in_thread(lambda: (bytes_of(packed[0]), bytes_of(packed[1])))
        else:
            stdout, stderr = bytes_of(packed[0]), bytes_of(packed[1])
        for name, kept, more in (
            ("stdout", len(stdout), answer["dropped"][0]),
            ("stderr", len(stderr), answer["dropped"][1]),
        ):
            if more:
                notes.append(
                    f"sandbox: {name} was cut off after {kept} bytes, and {more} more were "
                    "dropped; write it to a file"
                )
        out, err = await decoded_both(stdout, stderr)
        return SandboxExecutionResult(code, out, with_notes(err, notes))

    async def read_file(self, path: str) -> bytes:
        """Read a regular file; see `RunningSandbox.read_file`."""
        self._check_open("read files")
        answer = await self._file_call(path, {}, "read the file")
        return await in_thread(lambda: bytes_of(answer["data"]))

    async def write_file(self, path: str, data: bytes) -> None:
        """Write a regular file; see `RunningSandbox.write_file`."""
        self._check_open("write files")
        content = bytes(data)
        packed = await in_thread(lambda: compressed(content))
        await self._file_call(path, {"data": packed}, "write the file")

    async def _file_call(self, path: str, further: Json, action: str) -> Json:
        request = {**self._here(), "path": _encoded(path), **further}
        call = self._begin(self._programs.ask("files", request, seconds=_FILE_SECONDS))
        answer = await self._outcome(call, action)
        if answer["errno"]:
            # OSError itself picks the class that goes with the number.
            raise OSError(int(answer["errno"]), str(answer["fact"]), path)
        return answer

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        call = asyncio.ensure_future(work)
        self._calls.add(call)
        call.add_done_callback(self._over)
        return call

    def _over(self, call: asyncio.Future[Any]) -> None:
        self._calls.discard(call)
        if not call.cancelled():
            call.exception()  # retrieved: a cancelled caller does not hear of it

    async def _outcome(self, call: asyncio.Future[T], action: str) -> T:
        # Waited for and not awaited: a cancelled caller ends it in its own way.
        await asyncio.wait({call})
        if self._closed:
            self._check_open(action)
        return call.result()

    def _check_open(self, action: str) -> None:
        if self._closed:
            raise SandboxClosed(messages.closed("the Mistral sandbox", action))
        if self._proxied is not None:
            self._proxied.check()

    def shut(self) -> None:
        """Refuse every later call, and let go of those that wait; the sandbox is deleted next."""
        self._closed = True
        for call in set(self._calls):
            call.cancel()

    async def leave(self) -> None:
        """End what the session started in a sandbox that stays, and take its environment away.

        Raises:
            CloudError: Nobody knows whether it ended.
        """
        await self._end_calls(self._token)
        if self._proxied is not None:
            await self._proxied.remove()

    async def settled(self) -> None:
        """Wait until no call is under way."""
        if self._calls:
            await asyncio.wait(set(self._calls))

    async def inventory(self) -> Sequence[str]:
        """Name the app in the cloud, if it is the session's own."""
        return tuple(self._things())


def _verdict(answer: Json, limit: float) -> tuple[int, list[str]]:
    if answer["code"] is not None:
        return int(answer["code"]), []
    if answer["failed"]:
        missing = answer["failed"] in (errno.ENOENT, errno.ENOTDIR)
        note = f"sandbox: the command could not be started ({os.strerror(answer['failed'])})"
        return _NOT_FOUND if missing else _CANNOT_RUN, [note]
    if answer["late"]:
        notes = [f"sandbox: the command was ended at its limit of {limit:g} s"]
        if answer["left"]:
            pids = ", ".join(map(str, answer["left"]))
            notes.append(f"sandbox: the processes {pids} could not be ended")
        return TIMED_OUT, notes
    return _KILLED, ["sandbox: the command's supervisor was killed, and the command with it"]


def _encoded(path: str) -> bytes:
    if not isinstance(path, str):
        raise TypeError(f"path is of type {type(path).__name__}; pass text")
    try:
        return path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        fact = "no file can have half of a surrogate pair in its name"
        raise PermissionError(errno.EPERM, fact, path) from None
