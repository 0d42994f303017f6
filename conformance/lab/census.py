"""A census of what this process has made: what a sandbox leaves behind is the difference."""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
import threading
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.lab.cloud.client import CloudClient
from conformance.lab.cloud.place import CONTROL_SOCKET, DOOR
from conformance.lab.engine import SOCKET
from conformance.lab.engine_api import EngineApi
from conformance.lab.plan import LAB_VARIABLE, Facts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

_PROC = Path("/proc")
_MOST_ENTRIES = 20_000
_DEPTH = 4
# A laboratory has this for itself; what it keeps there is not a sandbox's.
_SEALED_FOLDERS = ("/dev/shm",)  # noqa: S108 - it is only read
_OF_THE_LAB = {Path("/dev/shm/upper"), Path("/dev/shm/lab")}  # noqa: S108
_WORKER = b"PYTEST_XDIST_WORKER="
# What test runners and interpreters leave where they run is not a sandbox's.
_IGNORED_NAMES = ("__pycache__", ".pytest_cache", ".hypothesis", "pytest-of-")


@dataclass(frozen=True)
class Census:
    """What exists at one moment; made by `take`.

    Args:
        items: a readable line for each thing, under a kind and an identity.
        partial: folders that hold too many files to be counted to the full depth.
        parents: the ids of the processes that each process comes from, by its identity.
    """

    items: dict[tuple[str, str], str]
    partial: dict[Path, int] = field(default_factory=dict)
    parents: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def take(
        cls,
        *,
        folders: Sequence[Path] | None = None,
        loops: Iterable[asyncio.AbstractEventLoop] = (),
    ) -> Census:
        """Count processes, threads, open files and sockets, folders, mounts and tasks.

        Processes are those that descend from this one, and those that were handed to the
        lab's init and bear no other worker's mark. Those of the lab's container engine are
        the engine's to tell, by its containers, volumes and networks. In a system without
        /proc only threads, folders and tasks are counted.

        Args:
            folders: where files are looked for, four levels deep; by default the temporary
                folder, the home and the working folder, and in a sealed laboratory whatever
                was written anywhere.
            loops: event loops whose tasks count, that of the caller besides.
        """
        items: dict[tuple[str, str], str] = {}
        parents: dict[str, set[str]] = {}
        if (_PROC / "self" / "stat").exists():
            items |= _processes(parents) | _threads() | _descriptors() | _mounts()
        else:
            items |= _python_threads()
        partial: dict[Path, int] = {}
        covers = _covers() if folders is None else {}
        for cover, upper in covers.items():
            items |= _written(cover, upper)
        for folder in _default_folders(sealed=bool(covers)) if folders is None else folders:
            entries, depth = _entries(folder)
            items |= entries
            if depth < _DEPTH:
                partial[folder] = depth
        if LAB_VARIABLE in os.environ:
            items |= _on_the_engine() | _in_the_cloud()
        return cls(items | _tasks(loops), partial, parents)

    def left_since(self, before: Census, kinds: Collection[str] | None = None) -> list[str]:
        """Give a line for each thing that is here and was not in `before`.

        Args:
            before: an earlier census.
            kinds: the kinds that count: "process", "thread", "file", "mount", "file entry",
                "task", "container", "volume", "network", "cloud app", "cloud service" and
                "cloud instance"; all if None.
        """
        known = {identity.split()[0] for kind, identity in before.items if kind == "process"}
        return sorted(
            line
            for (kind, identity), line in self.items.items()
            if (kind, identity) not in before.items
            # What an earlier survivor goes on starting is not of this time.
            and not (kind == "process" and known & self.parents.get(identity, set()))
            and (kinds is None or kind in kinds)
            and not (kind == "file entry" and before._skipped(Path(identity)))
        )

    def _skipped(self, path: Path) -> bool:
        return any(
            path.is_relative_to(folder) and len(path.relative_to(folder).parts) > depth
            for folder, depth in self.partial.items()
        )


Items = dict[tuple[str, str], str]


def _default_folders(*, sealed: bool) -> list[Path]:
    places = [tempfile.gettempdir(), os.path.expanduser("~"), *_SEALED_FOLDERS]
    if not sealed:
        places[2:] = [os.getcwd()]
    return list(dict.fromkeys(Path(place).resolve() for place in places))


def _covers() -> dict[Path, Path]:
    """Give the laboratory's overlays, with the folder that holds what was written to each.

    The folders below an overlay are the machine's own, where anybody may be writing.
    """
    if LAB_VARIABLE not in os.environ or not (_PROC / "self" / "mounts").exists():
        return {}
    lines = (_PROC / "self" / "mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    found = {}
    for _, place, kind, options, *_ in map(str.split, lines):
        upper = dict(option.partition("=")[::2] for option in options.split(",")).get("upperdir")
        if kind == "overlay" and upper and upper.startswith("/dev/shm/"):  # noqa: S108 - read only
            found[Path(place)] = Path(upper)
    return found


def _written(cover: Path, upper: Path) -> Items:
    """Give the files that were written to an overlay; folders are also there as copies."""
    items = {}
    for folder, folders, files in os.walk(upper):
        folders[:] = [name for name in folders if not name.startswith(_IGNORED_NAMES)]
        place = cover / Path(folder).relative_to(upper)
        for name in files:
            if not name.startswith(_IGNORED_NAMES) and not _is_whiteout(Path(folder, name)):
                items["file entry", str(place / name)] = f"left in {place}: {name}"
    return items


def _is_whiteout(path: Path) -> bool:
    with suppress(OSError):
        return stat.S_ISCHR(path.lstat().st_mode)
    return True  # gone meanwhile


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


def _processes(parents: dict[str, set[str]]) -> Items:
    every = [_read_process(int(name)) for name in os.listdir(_PROC) if name.isdigit()]
    table = {process.pid: process for process in every if process is not None}
    own = os.getpid()
    ancestors = set(_line_of(table, own))
    keepers = _keepers()
    items = {}
    for process in table.values():
        line = _line_of(table, process.pid)
        if (
            process.pid in ancestors
            or keepers & set(line)
            or (own not in line and not _is_orphan(table, line))
        ):
            continue
        what = "a zombie" if process.state == "Z" else _command(process)
        identity = f"{process.pid} {process.started}"
        items["process", identity] = f"process {process.pid}: {what}"
        parents[identity] = {str(pid) for pid in line[1:]} - {str(pid) for pid in ancestors}
    return items


def _keepers() -> set[int]:
    """Give the processes of the lab's whose kin is no process of the sandbox's host."""
    folder = os.environ.get(LAB_VARIABLE)
    facts = Facts.read(Path(folder)) if folder else Facts("loopback")
    return {facts.engine_keeper, *facts.service_keepers} - {0}


def _on_the_engine() -> Items:
    """Ask the engine that the run uses, if it uses one."""
    own = Facts.read(Path(os.environ[LAB_VARIABLE])).own_engine
    if own:
        in_use = os.environ.get("DOCKER_HOST") == own
        return EngineApi(own.removeprefix("unix://")).items() if in_use else {}
    return EngineApi(str(SOCKET)).items() if SOCKET.exists() else {}


def _in_the_cloud() -> Items:
    """Ask the lab's cloud, if the run uses it."""
    rows = CloudClient(str(CONTROL_SOCKET)).inventory() if DOOR.exists() else []
    return {(f"cloud {row['kind']}", row["id"]): f"{row['kind']} in the cloud: {row['name']}"
            for row in rows}  # fmt: skip


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


def _entries(folder: Path) -> tuple[Items, int]:
    """Count a folder level by level; one that would be too much is left out whole."""
    items: Items = {}
    level = [folder]
    for depth in range(_DEPTH):
        entries = [entry for place in level for entry in _listing(place)]
        if len(items) + len(entries) > _MOST_ENTRIES:
            return items, depth
        for entry in entries:
            path = Path(entry.path)
            items["file entry", entry.path] = f"left in {path.parent}: {path.name}"
        level = [
            Path(entry.path)
            for entry in entries
            if entry.is_dir(follow_symlinks=False) and Path(entry.path) not in _OF_THE_LAB
        ]
    return items, _DEPTH


def _listing(folder: Path) -> list[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as entries:  # gone meanwhile, or not ours to read
        return [entry for entry in entries if not entry.name.startswith(_IGNORED_NAMES)]
    return []


def _tasks(loops: Iterable[asyncio.AbstractEventLoop]) -> Items:
    every = list(loops)
    with suppress(RuntimeError):  # there is no running loop
        every.append(asyncio.get_running_loop())
    return {
        ("task", f"{id(task)} {task.get_name()}"): f"asyncio task {task.get_name()}: {task!r}"
        for loop in every
        for task in asyncio.all_tasks(loop)
    }
