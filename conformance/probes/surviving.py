"""Processes that are hard to end, and whether any of them is left."""

from __future__ import annotations

import secrets
import shlex
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.verdicts import Violation

if TYPE_CHECKING:
    from conformance.subject.facade import Box

_PROC = Path("/proc")
_SECONDS = 10.0
_QUIET_SECONDS = 0.6
# A loop that would end by itself, so that no broken sandbox keeps it for ever.
_BEATS = 300
_LOOP = f"i=0; while [ $i -lt {_BEATS} ]; do printf x >> {{}}; sleep 0.1; i=$((i+1)); done"
_APART = "import os, sys\nos.setsid()\nos.execvp('sh', ['sh', '-c', sys.argv[1]])"
_TWICE = f"import os, sys\nif os.fork(): os._exit(0)\nif os.fork(): os._exit(0)\n{_APART}"


def mark() -> str:
    """A variable that no other process has, and that all below a process inherit."""
    return f"CONFORMANCE_MARK={secrets.token_hex(8)}"


def marked(variable: str) -> list[str]:
    """The processes of this machine that have a mark in their environment, a line each."""
    found = []
    for folder in _PROC.glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile, or is another user's
            if variable.encode() in (folder / "environ").read_bytes().split(b"\0"):
                name = (folder / "comm").read_text(errors="replace").strip()
                found.append(f"process {folder.name} ({name})")
    return sorted(found)


def tree(beats: str) -> list[str]:
    """Give the command line of a process with children that are apart from it.

    Args:
        beats: A name; each of them makes its own file of it grow.
    """
    own, apart, twice = (_LOOP.format(f"{beats}.{name}") for name in BRANCHES)
    jobs = [
        shlex.join(["python3", "-I", "-c", code, loop])
        for code, loop in ((_APART, apart), (_TWICE, twice))
    ]
    return ["sh", "-c", "".join(f"{job} >/dev/null 2>&1 & " for job in jobs) + own]


BRANCHES = ("own", "apart", "twice")
"""The process itself, a child in a session of its own, and one that forked twice."""


def sizes(box: Box, beats: str) -> dict[str, int]:
    """How far each branch has come; 0 where it has not begun."""
    line = "; ".join(f"wc -c < {beats}.{name} 2>/dev/null || echo 0" for name in BRANCHES)
    numbers = box.execute(line, timeout_seconds=_SECONDS).stdout.split()
    return dict(zip(BRANCHES, map(int, numbers), strict=False))


def growing(box: Box, beats: str, seconds: float = _QUIET_SECONDS) -> list[str]:
    """The branches that still go on."""
    before = sizes(box, beats)
    time.sleep(seconds)
    after = sizes(box, beats)
    return [name for name in BRANCHES if after.get(name, 0) > before.get(name, 0)]


def begin(box: Box, beats: str) -> None:
    """Wait until every branch has begun.

    Raises:
        Violation: One never does.
    """
    deadline = time.monotonic() + _SECONDS
    while not all(sizes(box, beats).values()):
        if time.monotonic() > deadline:
            raise Violation(
                f"of a process and its children there began only {sizes(box, beats)}",
                remedy="let what a background process starts run",
            )
        time.sleep(0.1)
