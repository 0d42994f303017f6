"""The folders of a session on this host: where they are, and a process that finds them too."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from conformance.subject.targets import Target

_DEPTH = 4
_SECONDS = 60.0
_WRITTEN = "all is written"


def temporary_folder() -> Path:
    """Give the system's temporary folder."""
    return Path(tempfile.gettempdir()).resolve()


def places_of(name: str) -> list[Path]:
    """Find all files of a name below the temporary folder; no link is followed."""
    return list(_found(temporary_folder(), name, _DEPTH))


def _found(folder: Path, name: str, depth: int) -> Iterator[Path]:
    try:
        entries = list(os.scandir(folder))
    except OSError:  # gone meanwhile, or not ours
        return
    for entry in entries:
        if entry.name == name:
            yield Path(entry.path)
        elif depth > 1 and entry.is_dir(follow_symlinks=False):
            yield from _found(Path(entry.path), name, depth - 1)


def outermost(place: Path) -> Path:
    """Give the folder directly below the temporary folder that a place lies in."""
    return temporary_folder() / place.relative_to(temporary_folder()).parts[0]


def open_to_others(folder: Path) -> str:
    """Say how a folder is open to other users; an empty text if it is not."""
    found = folder.stat(follow_symlinks=False)
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != os.geteuid():
        return f"it belongs to the user {found.st_uid}"
    return f"its mode is {mode:04o}" if mode & 0o077 else ""


_WRITER = """
import asyncio, json, os, sys
from dataclasses import replace
spec, options, files = json.loads(sys.stdin.read())
sys.path[:0] = [path for path in options.pop("path") if path not in sys.path]
from conformance.subject.loading import load
from conformance.subject.targets import asked_for
from sandboxes.contract import OpenRequest

async def work():
    for given, session_id, name, text in files:
        cls = load(spec)
        sandbox = cls(**{**options, **asked_for(cls), **given})
        running = sandbox.open(OpenRequest(session_id=session_id))
        box = await running.__aenter__()
        await box.write_file(name, text.encode())
    sys.stdout.write("all is written")
    sys.stdout.flush()
    os._exit(0)  # as a process that crashed: nothing is closed

asyncio.run(work())
"""


def written_by_a_process_that_crashed(
    target: Target, files: Sequence[tuple[dict[str, Any], str, str, str]]
) -> str:
    """Let a new process open sandboxes, write a file into each, and crash.

    Args:
        target: The subject.
        files: Options, session id, name of the file and its text, of each sandbox.

    Returns:
        What went wrong; an empty text if nothing did.
    """
    question = json.dumps([target.name, {**target.options, "path": sys.path}, files])
    path = os.pathsep.join(path for path in sys.path if path)
    # Files, not pipes: a daemon that it starts would keep those open.
    with tempfile.TemporaryFile("w+") as asked, tempfile.TemporaryFile("w+") as told:
        asked.write(question)
        asked.seek(0)
        subprocess.run(
            [sys.executable, "-c", _WRITER],
            stdin=asked,
            stdout=told,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
            check=False,
            env={**os.environ, "PYTHONPATH": path},
        )
        told.seek(0)
        answer = told.read().strip()
    return "" if answer.endswith(_WRITTEN) else answer[-300:] or "it said nothing"
