"""Files of a sandbox by another way than its own calls: what commands make and see of them."""

from __future__ import annotations

import base64
import binascii
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.subject.facade import Box

_SECONDS = 20.0
# One word of a command; a shell takes many more.
_PIECE = 8_000
_KNOWN = b"\x00\xff known\r\n"
# By subject: whether its commands can show bytes as they are.
_shows: dict[str, bool] = {}


def placed(path: str) -> str:
    """A path as one word of a command, which no program takes for an option."""
    return shlex.quote(path if path.startswith("/") else f"./{path}")


def make(box: Box, path: str, data: bytes) -> None:
    """Let a command make a file of bytes that it gets as escapes, so that none is read as text.

    The same fault of a way out and a way back would hide itself.
    """
    escapes = [f"\\{byte:03o}" for byte in data]
    lines = [f": > {placed(path)}"]
    lines += [
        f"printf '{''.join(escapes[at : at + _PIECE // 4])}' >> {placed(path)}"
        for at in range(0, len(escapes), _PIECE // 4)
    ]
    box.execute("; ".join(lines), timeout_seconds=_SECONDS)


def as_commands_see(box: Box, path: str) -> bytes | None:
    """The bytes of a file by a command that writes them in letters; None where none does."""
    result = box.execute(f"base64 < {placed(path)}", timeout_seconds=_SECONDS)
    if result.exit_code:
        return None
    try:
        return base64.b64decode("".join(result.stdout.split()), validate=True)
    except (binascii.Error, ValueError):
        return None


def commands_show_bytes(box: Box, subject: str) -> bool:
    """Whether a command can show the bytes that another one made; cached for the run."""
    if subject not in _shows:
        make(box, "shows-bytes", _KNOWN)
        _shows[subject] = as_commands_see(box, "shows-bytes") == _KNOWN
    return _shows[subject]


def difference(got: bytes, wanted: bytes) -> str:
    """Say in a few words how some bytes differ from what they should be."""
    at = next(
        (at for at, (one, other) in enumerate(zip(got, wanted, strict=False)) if one != other),
        min(len(got), len(wanted)),
    )
    return (
        f"{len(got)} bytes with {got[at : at + 12]!r} at {at}, and not {len(wanted)} with "
        f"{wanted[at : at + 12]!r} there"
    )
