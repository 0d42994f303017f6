"""Background processes: commands that go on while the agent does other work.

Built on `execute` alone. A keeper, a small Python program, stays inside the sandbox and
holds the processes and what they wrote; each call is one command that talks to it. So
whoever can run commands in the sandbox, in this process or another, finds them again.
"""

from __future__ import annotations

import asyncio
import base64
import codecs
import json
import logging
import shlex
import uuid
import zlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

from sandboxes.contract import BackgroundProcessError, SandboxClosed, messages
from sandboxes.limits import check_command
from sandboxes.threads import to_the_end

if TYPE_CHECKING:
    from pydantic import JsonValue

    from sandboxes.contract import RunningSandbox, SandboxExecutionResult

ProcessState = Literal["running", "exited", "stopped"]

MOST_INPUT_BYTES = 1_048_576
"""What one `write` takes, and what may wait to be read by a process."""

# A single argument of a command may have 128 KiB on Linux, and the client's text joins it.
_PIECE = 80_000
# A stop takes 5 seconds where a process ignores SIGTERM.
_CALL_SECONDS = 40.0
_MARK = "sandbox-processes:"
_CONTINUATION = bytes(range(0x80, 0xC0))
_LONGEST_CHARACTER = 4

_Decoder = codecs.getincrementaldecoder("utf-8")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BackgroundProcess:
    """What is known of one background process.

    Attributes:
        id: Names it for the rest of the session.
        command: What it runs; the first 1,000 characters.
        state: `"running"`; `"exited"` by itself; `"stopped"` by a stop.
        exit_code: That of the command, 128 and the number for a signal; None while it
            runs.
        cursor: Where its output ends by now, in bytes.
    """

    id: str
    command: str
    state: ProcessState
    exit_code: int | None
    cursor: int


@dataclass(frozen=True, slots=True)
class ProcessOutput:
    """What a process wrote after a cursor, standard output and error in one.

    Attributes:
        text: UTF-8 with replacement of what is none. A character of which only a part
            has been written comes with the next output.
        cursor: Where to go on, in bytes.
        dropped: Bytes after the cursor asked for that are no longer kept, and so are
            missing before `text`.
        more: Whether there is more already.
        state: The state of the process.
        exit_code: Its exit code; None while it runs.
    """

    text: str
    cursor: int
    dropped: int
    more: bool
    state: ProcessState
    exit_code: int | None


class BackgroundProcesses:
    """The background processes of one session.

    Args:
        running: The sandbox they run in.
        sandbox: What errors call it.
        keeper: The folder that `state` gave in an earlier part of the session.
    """

    def __init__(self, running: RunningSandbox, sandbox: str, keeper: str | None = None) -> None:
        self._running = running
        self._sandbox = sandbox
        self._kept = keeper is not None
        self._keeper = keeper or f"sandbox-processes-{uuid.uuid4().hex}"
        self._starting = asyncio.Lock()
        self._tried = self._kept
        self._closed = False

    @property
    def state(self) -> JsonValue:
        """What a later part of the session needs to find the processes; None without any."""
        return self._keeper if self._kept else None

    async def start(self, command: str) -> BackgroundProcess:
        """Run a command in the workspace, without a time limit.

        Args:
            command: Text for the sandbox's shell.

        Raises:
            ValueError: The command holds a NUL or is no text.
            BackgroundProcessError: The sandbox cannot have background processes, too
                many run already, or the command did not start.
            SandboxClosed: The session is closed.
        """
        check_command(command)
        await self._ready()
        answer = await self._ask({"do": "start", "command": _encodable(command)})
        return _process(answer["process"])

    async def output(self, process_id: str, cursor: int = 0) -> ProcessOutput:
        """Return what a process has written after a cursor, up to 32 KiB.

        Args:
            process_id: Which process.
            cursor: The `cursor` of the output read last; 0 for all that is kept.

        Raises:
            BackgroundProcessError: The id is unknown, or the cursor is negative, beyond
                what was written, or no whole number.
            SandboxClosed: The session is closed.
        """
        if isinstance(cursor, bool) or not isinstance(cursor, int) or cursor < 0:
            shown = cursor if isinstance(cursor, int) else f"of type {type(cursor).__name__}"
            raise BackgroundProcessError(
                f"cursor is {shown}; pass 0, or the cursor of the output read last"
            )
        return _output(await self._ask({"do": "output", "id": process_id, "cursor": cursor}))

    async def write(self, process_id: str, text: str = "", *, close: bool = False) -> None:
        """Write to a process's standard input.

        Args:
            process_id: Which process.
            text: Sent as UTF-8, as it is: a line needs its line feed.
            close: Close its standard input afterwards.

        Raises:
            BackgroundProcessError: The id is unknown, its standard input is closed, the
                text is no UTF-8 or more than 1 MiB, or that much waits to be read.
            SandboxClosed: The session is closed.
        """
        data = _encodable(text).encode()
        if len(data) > MOST_INPUT_BYTES:
            raise BackgroundProcessError(
                f"text has {len(data)} bytes; write at most {MOST_INPUT_BYTES} at once"
            )
        sent = base64.b64encode(data).decode()
        await self._ask({"do": "write", "id": process_id, "data": sent, "close": bool(close)})

    async def list(self) -> tuple[BackgroundProcess, ...]:
        """Return all processes of the session, those that have ended too.

        Raises:
            SandboxClosed: The session is closed.
        """
        if not self._tried:
            self._check_open("list background processes")
            return ()
        answer = await self._ask({"do": "list"})
        return tuple(_process(entry) for entry in answer["processes"])

    async def stop(self, process_id: str) -> BackgroundProcess:
        """End a process and all that it started: SIGTERM, and SIGKILL 5 seconds later.

        One that has ended is left as it is.

        Raises:
            BackgroundProcessError: The id is unknown.
            SandboxClosed: The session is closed.
        """
        return _process((await self._ask({"do": "stop", "id": process_id}))["process"])

    async def close(self) -> None:
        """End all processes and the keeper. Closing again is harmless."""
        if self._closed:
            return
        self._closed = True
        await to_the_end(asyncio.ensure_future(self._end()))

    def let_go(self) -> None:
        """Refuse every later call, and leave the processes to a later part of the session."""
        self._closed = True

    async def _end(self) -> None:
        async with self._starting:  # a keeper that is just being started is ended too
            if not self._tried:
                return
            try:
                await self._call({"do": "close"})
            except Exception:  # noqa: BLE001 - the sandbox is deleted all the same
                _log.exception("the background processes of %s could not be ended", self._sandbox)

    async def _ready(self) -> None:
        async with self._starting:
            self._check_open("start background processes")
            if self._kept:
                return
            self._tried = True  # cancelled half-way, the keeper may live: close() ends it
            result = await self._running.execute(
                f'python3 -I -S -c {_boot()} {self._keeper} "${{BASH_VERSION:+ba}}sh"',
                timeout_seconds=_CALL_SECONDS,
            )
            folder = _marked(result)
            if folder is None:
                raise self._unavailable(
                    f"it ended with exit code {result.exit_code} ({_last_line(result)})"
                )
            self._keeper = json.loads(folder)
            self._kept = True

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Have the keeper do something for a user of the session."""
        self._check_open("use background processes")
        if not self._kept:
            raise BackgroundProcessError(
                f"there is no process {request['id']}; start one, or list those that there are"
            )
        answer = await self._call(request)
        if answer.get("gone"):
            raise self._unavailable("what it starts does not outlive its command")
        if "refused" in answer:
            raise BackgroundProcessError(answer["refused"])
        return answer

    async def _call(self, request: dict[str, Any]) -> dict[str, Any]:
        payload = base64.b64encode(json.dumps(request).encode()).decode()
        pieces = [payload[at : at + _PIECE] for at in range(0, len(payload), _PIECE)]
        token, keeper = uuid.uuid4().hex, shlex.quote(self._keeper)
        answer: dict[str, Any] = {}
        for number, piece in enumerate(pieces, 1):
            kind = "last" if number == len(pieces) else "part"
            result = await self._running.execute(
                f"python3 -I -S -c {_client()} {keeper} {token} {kind} {piece}",
                timeout_seconds=_CALL_SECONDS,
            )
            text = _marked(result)
            if text is None:
                raise BackgroundProcessError(
                    f"{self._sandbox}: the call ended with exit code {result.exit_code} "
                    f"({_last_line(result)}); see what its python3 says"
                )
            answer = json.loads(text)
            if answer.get("gone"):
                break
        return answer

    def _unavailable(self, fact: str) -> BackgroundProcessError:
        return BackgroundProcessError(
            f"{self._sandbox} declares supports_background_processes and cannot have any: "
            f"they need python3 -I with socket and subprocess, and {fact}; "
            "use an image that has them, or declare it False"
        )

    def _check_open(self, action: str) -> None:
        if self._closed:
            raise SandboxClosed(messages.closed("the session", action))


def _process(entry: dict[str, Any]) -> BackgroundProcess:
    return BackgroundProcess(**entry)


def _output(answer: dict[str, Any]) -> ProcessOutput:
    data, dropped, first = base64.b64decode(answer["data"]), answer["dropped"], answer["first"]
    process = _process(answer["process"])
    if dropped:
        # What was dropped may end within a character, whose rest is no text.
        head = data[: _LONGEST_CHARACTER - 1]
        rest = len(head) - len(head.lstrip(_CONTINUATION))
        data, dropped, first = data[rest:], dropped + rest, first + rest
    decoder = _Decoder(errors="replace")
    text = decoder.decode(data, final=answer["last"])
    cursor = first + len(data) - len(decoder.getstate()[0])
    more = process.cursor > first + len(data)
    return ProcessOutput(text, cursor, dropped, more, process.state, process.exit_code)


def _encodable(text: object) -> str:
    if not isinstance(text, str):
        raise BackgroundProcessError(f"text is of type {type(text).__name__}; pass text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BackgroundProcessError("text holds a lone surrogate; leave it out") from None
    return text


def _marked(result: SandboxExecutionResult) -> str | None:
    """What a program of ours printed; a shell may greet before it."""
    for line in reversed(result.stdout.splitlines()):
        if line.startswith(_MARK):
            return line[len(_MARK) :]
    return None


def _last_line(result: SandboxExecutionResult) -> str:
    lines = (result.stderr.strip() or result.stdout.strip() or "no output").splitlines()
    return lines[-1][:200]


@cache
def _client() -> str:
    return _packed({"__main__": "process_client"})


@cache
def _boot() -> str:
    return _packed(
        {"sandboxes.inside.process_leader": "process_leader", "__main__": "process_keeper"}
    )


def _packed(modules: dict[str, str]) -> str:
    """A `python3 -c` argument that runs files of `sandboxes.inside`, the last one as main."""
    folder = resources.files("sandboxes.inside")
    texts = [(name, folder.joinpath(f"{file}.py").read_text()) for name, file in modules.items()]
    packed = base64.b64encode(zlib.compress(json.dumps(texts).encode(), 9)).decode()
    return shlex.quote(
        "import base64,json,sys,types,zlib\n"
        f"for n,t in json.loads(zlib.decompress(base64.b64decode('{packed}'))):\n"
        " m=types.ModuleType(n)\n"
        " if n!='__main__':sys.modules[n]=m\n"
        " exec(compile(t,n,'exec'),m.__dict__)\n"
    )
