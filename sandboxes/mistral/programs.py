"""Our programs inside a sandbox: each call is one command of the executor.

The executor's own calls lose bytes, stop at 64 KiB on standard error, know no time limit and
hand its secret to what they run. So it is only asked to run a program of ours, which does it
properly and answers in one line of ASCII.
"""

from __future__ import annotations

import base64
import json
import marshal
import uuid
import zlib
from importlib.util import MAGIC_NUMBER
from typing import TYPE_CHECKING, Any

from sandboxes.inside.cloud_call import MARK
from sandboxes.mistral import errors
from sandboxes.mistral.definition import SECRET_VARIABLE
from sandboxes.mistral.errors import CloudError
from sandboxes.packing import PLAIN, compiled, packed
from sandboxes.threads import in_thread

if TYPE_CHECKING:
    from sandboxes.mistral.definition import Json
    from sandboxes.mistral.executor import Executor

_INSIDE = "sandboxes.inside"
_BARE = "sandboxes.bare"
_CALL = f"{_INSIDE}.cloud_call"
_BUNDLE = f"{_INSIDE}.cloud_bundle"
_ENVIRONMENT = f"{_INSIDE}.cloud_environment"
_PROGRAMS = {
    "start": (_BARE, _CALL, _BUNDLE, f"{_INSIDE}.cloud_probe", f"{_INSIDE}.cloud_start"),
    "install": (_BARE, _CALL, _BUNDLE, _ENVIRONMENT, f"{_INSIDE}.cloud_install"),
    "end": (_BARE, _CALL, f"{_INSIDE}.cloud_end"),
    "files": (
        _BARE,
        _CALL,
        "sandboxes.host_files",
        f"{_INSIDE}.cloud_secrecy",
        f"{_INSIDE}.cloud_files",
    ),
    "command": (
        _BARE,
        _CALL,
        "sandboxes.process_tree",
        "sandboxes.supervisor",
        _ENVIRONMENT,
        f"{_INSIDE}.cloud_secrecy",
        f"{_INSIDE}.cloud_command",
    ),
}
# Linux takes 128 KiB for all of a shell's text, and the program is in it.
_LONGEST_WORD = 60_000
_END = "sandbox-cloud"
_SHOWN = 300
_QUICKLY = 1


class Programs:
    """Runs them.

    Args:
        executor: Of the sandbox.
        sandbox: What errors call it.
    """

    def __init__(self, executor: Executor, sandbox: str) -> None:
        self._executor = executor
        self._sandbox = sandbox
        self._pack = packed

    def speak(self, magic: str) -> None:
        """Send compiled programs from now on, if the python3 inside reads what ours compiles.

        Args:
            magic: Its `importlib.util.MAGIC_NUMBER`, in hexadecimal.
        """
        self._pack = compiled if magic == MAGIC_NUMBER.hex() else packed

    async def ask(self, program: str, request: Json, *, seconds: float, token: str = "") -> Json:
        """Run a program and give its answer.

        Args:
            program: Which one.
            request: What it is to do.
            seconds: How long it may take at most.
            token: Names the call among the processes inside.

        Raises:
            CloudError: There is no answer.
        """
        token = token or uuid.uuid4().hex
        text = marshal.dumps(request, PLAIN)
        if len(text) > _LONGEST_WORD:  # megabytes take milliseconds
            word = await in_thread(lambda: _word(text))
        else:
            word = _word(text)
        if len(word) > _LONGEST_WORD:
            path = f"/tmp/sandbox-{uuid.uuid4().hex}"  # noqa: S108 - in the sandbox
            await self._executor.write_text(path, word)
            word = f"@{path}"
        # The variable goes before python3 starts: a process shows what it started with. And
        # it also shows its arguments, so that a command that lists processes sees a short line.
        line = (
            f"unset {SECRET_VARIABLE}; exec python3 -I -S - {token} <<'{_END}'\n"
            f"import sys\nsys.argv.append('{word}')\n{self._pack(*_PROGRAMS[program])}{_END}\n"
        )
        body = await self._executor.run(line, seconds=seconds)
        return self._answer(program, body)

    def _answer(self, program: str, body: Json) -> Json:
        for line in reversed(str(body.get("stdout") or "").splitlines()):
            if line.startswith(MARK):
                found: Json = json.loads(line[len(MARK) :])
                if found.get("restarted"):
                    raise CloudError(errors.restarted(self._sandbox))
                return found
        said = str(body.get("stderr") or body.get("stdout") or "").strip().splitlines()
        shown = said[-1][:_SHOWN] if said else ""
        if body.get("code") in (126, 127):
            raise CloudError(errors.no_python(self._sandbox, shown))
        raise CloudError(errors.broken(self._sandbox, program, body.get("code"), shown))


def _word(data: bytes) -> str:
    return base64.b64encode(compressed(data)).decode()


def compressed(data: bytes) -> bytes:
    """Many bytes as a request has them."""
    return zlib.compress(data, _QUICKLY)


def bytes_of(text: Any) -> bytes:  # noqa: ANN401 - from an answer
    """Bytes as an answer has them."""
    return zlib.decompress(base64.b64decode(str(text)))
