"""A census of what this process has made: what a sandbox leaves behind is the difference."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_PROC = Path("/proc")
_MOST_ENTRIES = 20_000
_WORKER = b"PYTEST_XDIST_WORKER="
# What test runners and interpreters leave where they run is not a sandbox's.
_IGNORED_NAMES = ("__pycache__", ".pytest_cache", ".hypothesis", "pytest-of-")


@dataclass(frozen=True)
class Census:
    """What exists at one moment; made by `take`.

    Args:
        items: a readable line for each thing, under a kind and an identity.
    """

    items: dict[tuple[str, str], str]

    @classmethod
    def take(
        cls,
        *,
        folders: Sequence[Path] | None = None,
        loops: Iterable[asyncio.AbstractEventLoop] = (),
    ) -> Census:
        """Count processes, threads, open files and sockets, folders, mounts and tasks.

        Processes are those that descend from this one, and those that were handed to the
        lab's init and bear no other worker's mark. In a system without /proc only threads,
        folders and tasks are counted.

        Args:
            folders: where files are looked for, two levels deep; by default the temporary
                folder, the home and the working folder.
            loops: event loops whose tasks count, that of the caller besides.
        """
        items: dict[tuple[str, str], str] = {}
        if (_PROC / "self" / "stat").exists():
            items |= _processes() | _threads() | _descriptors() | _mounts()
        else:
            items |= _python_threads()
        for folder in _default_folders() if folders is None else folders:
            items |= _entries(folder)
        return cls(items | _tasks(loops))

    def left_since(self, before: Census) -> list[str]:
        """Give a line for each thing that is here and was not in `before`."""
        return sorted(line for key, line in self.items.items() if key not in before.items)


Items = dict[tuple[str, str], str]


def _default_folders() -> list[Path]:
    places = (tempfile.gettempdir(), os.path.expanduser("~"), os.getcwd())
    return list(dict.fromkeys(Path(place).resolve() for place in places))


@dataclass(frozen=True)
class _Process:
    pid: int
    parent: int
    state: str
    name: str
    started: str


def _read_process(pid: int) -> _Process | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name is in brackets and may hold any character, brackets included.
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return _Process(pid, int(fields[1]), fields[0], name, fields[19])


def _processes() -> Items:
    every = [_read_process(int(name)) for name in os.listdir(_PROC) if name.isdigit()]
    table = {process.pid: process for process in every if process is not None}
    own = os.getpid()
    ancestors = set(_line_of(table, own))
    items = {}
    for process in table.values():
        line = _line_of(table, process.pid)
        if process.pid in ancestors or (own not in line and not _is_orphan(table, line)):
            continue
        what = "a zombie" if process.state == "Z" else _command(process)
        items["process", f"{process.pid} {process.started}"] = f"process {process.pid}: {what}"
    return items


def _line_of(table: dict[int, _Process], pid: int) -> list[int]:
    """Give a process and its ancestors, the process first."""
    line: list[int] = []
    while pid in table and pid not in line:
        line.append(pid)
        pid = table[pid].parent
    return line


def _is_orphan(table: dict[int, _Process], line: list[int]) -> bool:
    """Whether the line ends at an init that is in sight and bears no other worker's mark."""
    if line[-1] != 1 or len(line) < 2 or 1 not in table:
        return False
    if _PROC.joinpath("1", "cmdline").read_bytes().find(b"conformance.lab.launcher") < 0:
        return False  # a machine's own init adopts what is none of ours
    marks = {_worker_mark(pid) for pid in line[:-1]} - {b""}
    own = os.environb.get(_WORKER.rstrip(b"="), b"")
    return not marks or own in marks


def _worker_mark(pid: int) -> bytes:
    with suppress(OSError):
        for entry in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
            if entry.startswith(_WORKER):
                return entry.removeprefix(_WORKER)
    return b""


def _command(process: _Process) -> str:
    with suppress(OSError):
        words = (_PROC / str(process.pid) / "cmdline").read_bytes().split(b"\0")
        return b" ".join(words).decode("utf-8", "replace").strip() or process.name
    return process.name


def _threads() -> Items:
    items = {}
    named = {thread.native_id: thread.name for thread in threading.enumerate()}
    for task in os.listdir("/proc/self/task"):
        with suppress(OSError):
            name = _PROC.joinpath("self", "task", task, "comm").read_text(errors="replace").strip()
            items["thread", task] = f"thread {task}: {named.get(int(task), name)}"
    return items


def _python_threads() -> Items:
    return {
        ("thread", str(thread.ident)): f"thread {thread.ident}: {thread.name}"
        for thread in threading.enumerate()
    }


def _descriptors() -> Items:
    """Give open descriptors by what they are open on: numbers are used again at once."""
    found: Counter[str] = Counter()
    items = {}
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{number}")
            if target.startswith(f"/proc/{os.getpid()}/fd"):
                continue  # the listing itself
            found[target] += 1
            items["file", f"{target} {found[target]}"] = f"open file {number}: {target}"
    return items


def _mounts() -> Items:
    lines = (_PROC / "self" / "mountinfo").read_text(encoding="utf-8", errors="replace")
    rows = (line.split() for line in lines.splitlines())
    return {("mount", f"{row[0]} {row[4]}"): f"mount at {row[4]}" for row in rows}


def _entries(folder: Path) -> Items:
    items: Items = {}
    for path in _walk(folder, depth=2):
        if len(items) >= _MOST_ENTRIES:
            break
        items["file entry", str(path)] = f"left in {path.parent}: {path.name}"
    return items


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:  # gone meanwhile, or not ours to read
        return
    for entry in entries:
        if entry.name.startswith(_IGNORED_NAMES):
            continue
        yield Path(entry.path)
        if depth > 1 and entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), depth - 1)


def _tasks(loops: Iterable[asyncio.AbstractEventLoop]) -> Items:
    every = list(loops)
    with suppress(RuntimeError):  # there is no running loop
        every.append(asyncio.get_running_loop())
    return {
        ("task", f"{id(task)} {task.get_name()}"): f"asyncio task {task.get_name()}: {task!r}"
        for loop in every
        for task in asyncio.all_tasks(loop)
    }
