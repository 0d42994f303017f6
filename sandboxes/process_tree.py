"""The processes that descend from one: found, and sent signals.

On Linux the one is a subreaper: whatever its descendants do with groups, sessions and
double forks, an orphan among them becomes its child. So "I have no children" is the
kernel's own word that nothing is left, which no list of groups or marks could give.
(A cgroup would say the same, but may be made by few users only, and moves their
processes out of the accounting that somebody set up for them.) Elsewhere descendants
and members of the command's group are found, not orphans that left it.

Standard library only: the supervisor runs it in an interpreter without anything else.
"""

from __future__ import annotations

import os
import sys
import time

from sandboxes.bare import signal, suppress

_PR_SET_CHILD_SUBREAPER = 36
_STOP_ROUNDS = 20
_CHASE_SECONDS = 0.005


class Process:
    """One line of the system's table."""

    __slots__ = ("group", "parent", "pid", "zombie")

    def __init__(self, pid: int, parent: int, group: int, zombie: bool) -> None:
        self.pid = pid
        self.parent = parent
        self.group = group
        self.zombie = zombie


def become_subreaper() -> bool:
    """Adopt the orphans among this process's descendants; False where that cannot be had."""
    if sys.platform != "linux":
        return False
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):  # an interpreter without ctypes, or no libc
        return False


def table() -> list[Process]:
    """Every process that this one can see."""
    if not os.path.exists("/proc/self/stat"):
        return _table_of_ps()
    return [
        process
        for name in os.listdir("/proc")
        if name.isdigit() and (process := _read(name)) is not None
    ]


def _read(pid: str) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name is in brackets and may hold any bytes, brackets included.
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Process(int(pid), int(fields[1]), int(fields[2]), fields[0] in (b"Z", b"X"))


def _table_of_ps() -> list[Process]:
    import subprocess  # dear to import, and Linux has /proc

    command = ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat="]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as ps:
        lines = ps.communicate()[0].splitlines()
    rows = [fields for line in lines if len(fields := line.split()) == 4]
    return [
        Process(int(pid), int(parent), int(group), state.startswith(b"Z"))
        for pid, parent, group, state in rows
        if int(pid) != ps.pid
    ]


def descendants(root: int, *, group: int = 0, spared: frozenset[int] = frozenset()) -> set[int]:
    """The living processes below one.

    Args:
        root: The process, which is not among them.
        group: A process group whose members count too, whoever their parent is.
        spared: Processes that are left out with everything below them.
    """
    every = table()
    children: dict[int, list[Process]] = {}
    for process in every:
        children.setdefault(process.parent, []).append(process)
    found: set[int] = set()
    seen: set[int] = set()
    waiting = children.get(root, []) + [p for p in every if group and p.group == group]
    while waiting:
        process = waiting.pop()
        if process.pid in seen or process.pid in spared or process.pid == root:
            continue
        seen.add(process.pid)
        if not process.zombie:
            found.add(process.pid)
        waiting.extend(children.get(process.pid, ()))
    return found


def send(pids: set[int], number: signal.Signals) -> None:
    """Send a signal to each that is still there and may be sent one."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def terminate(root: int, *, group: int = 0) -> None:
    """Ask everything below to end, once and at one moment.

    All are stopped first, so that none can start another one past the signal, and each
    gets it once: what a trap starts in order to tidy up is left alone. To go on is also
    what makes a process that was stopped before hear of it.
    """
    stopped: set[int] = set()
    for _ in range(_STOP_ROUNDS):
        new = descendants(root, group=group) - stopped
        if not new:
            break
        send(new, signal.SIGSTOP)
        stopped |= new
    send(stopped, signal.SIGTERM)
    send(stopped, signal.SIGCONT)


def kill(root: int, *, group: int = 0) -> None:
    """Kill everything below, and for a moment whatever comes to be a child of this process.

    A process that forks and ends, over and over, is nowhere any more when the table was
    read; but each of it becomes our child, and that list is read in no time.
    """
    send(descendants(root, group=group), signal.SIGKILL)
    end = time.monotonic() + _CHASE_SECONDS
    with suppress(OSError):
        while time.monotonic() < end:
            with open(f"/proc/{root}/task/{root}/children", "rb") as file:
                send({int(pid) for pid in file.read().split()}, signal.SIGKILL)
