"""Tool output that is too long for a model: its middle is left out, and kept in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandboxes.contract import SandboxError

if TYPE_CHECKING:
    from sandboxes.contract import RunningSandbox

MOST_CHARACTERS = 30_000
"""How much of one output the model gets."""

MOST_FILE_BYTES = 67_108_864
"""How much all the files of one session may hold."""

FOLDER = ".tool-output"
"""Where the files are, in the workspace: the one place that every sandbox can write to."""

_HEAD = 2 * MOST_CHARACTERS // 3
_TAIL = MOST_CHARACTERS - _HEAD


class Truncation:
    """Cuts the tool output of one session.

    What is left out goes, with the rest, to a file in the sandbox where Python can write
    one there. Without Python, it is dropped in place.

    Args:
        sandbox: Where the files go; None for a session without sandbox.
    """

    def __init__(self, sandbox: RunningSandbox | None) -> None:
        self._sandbox = sandbox
        self._can_write: bool | None = None if sandbox is not None else False
        self._written = 0
        self._files = 0

    async def cut(self, text: str, label: str = "output", *, where: str = "") -> str:
        """Return a text whole if it is short, and without its middle otherwise.

        Args:
            text: The output.
            label: The beginning of its file's name, such as `"bash-stdout"`.
            where: How to come by the whole, where it is kept already.
        """
        if len(text) <= MOST_CHARACTERS:
            return text
        left_out = len(text) - MOST_CHARACTERS
        return "\n".join(
            (
                text[:_HEAD],
                f"[{left_out} of {len(text)} characters were left out here; "
                f"{where or await self._kept(text, label)}]",
                text[-_TAIL:],
            )
        )

    async def _kept(self, text: str, label: str) -> str:
        """Keep the whole text, and say where."""
        data = text.encode(errors="replace")
        if not await self._writes() or self._sandbox is None:
            return "they are not kept"
        if self._written + len(data) > MOST_FILE_BYTES:
            return f"they are not kept, since {FOLDER} is full"
        self._written += len(data)
        self._files += 1
        path = f"{FOLDER}/{label}-{self._files}.txt"
        try:
            await self._sandbox.write_file(path, data)
        except (OSError, SandboxError) as error:
            return f"they are not kept, since {path} could not be written ({type(error).__name__})"
        return f"the whole is in {path}"

    async def _writes(self) -> bool:
        if self._can_write is None and self._sandbox is not None:
            self._can_write = (await self._sandbox.execute("python3 -I -c ''")).exit_code == 0
        return bool(self._can_write)
