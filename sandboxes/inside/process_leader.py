"""Run one command of a background process and end all that it starts.

The leader is the subreaper of its command: what loses its parent, forks twice or makes a
session of its own is still found below it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

LOOK_AGAIN_SECONDS = 0.02


def lead(message: dict[str, Any], shell: str, pipes: tuple[int, int, int, int]) -> None:
    """Be the leader of one command, from fork to exit.

    The pipes are the command's standard input, its output, where its state is told, and
    where orders come from: "T" asks it to end; "K", or the keeper's end, ends it.
    """
    inside, outside, told, orders = pipes
    try:
        # The pipes of other processes would otherwise never report an end.
        first = 3
        for descriptor in sorted(pipes):
            os.closerange(first, descriptor)
            first = descriptor + 1
        os.closerange(first, 65536)
        with contextlib.suppress(AttributeError, OSError):  # no Linux: only its group is found
            # PR_SET_CHILD_SUBREAPER: what loses its parent is still found below here.
            ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
        wake = wakes()
        os.umask(message["umask"])
        environ = message["environ"].items()
        try:
            child = subprocess.Popen(
                [shell, "-c", message["command"]],
                stdin=inside,
                stdout=outside,
                stderr=outside,
                cwd=message["cwd"],
                env={os.fsencode(key): os.fsencode(value) for key, value in environ},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            os.write(told, f"failed the command did not start: {error}\n".encode())
            os._exit(1)
        os.close(inside)
        os.close(outside)
        os.write(told, b"running\n")
        follow(child.pid, told, orders, wake)
    finally:
        os._exit(1)


def wakes() -> int:
    """Return a descriptor that becomes readable when a child ends."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reader


def follow(child: int, told: int, orders: int, wake: int) -> None:
    """Report a command's end, obey the keeper, and stay until everything has ended."""
    killing = False
    sources = [orders, wake]
    while True:
        ready = select.select(sources, [], [], LOOK_AGAIN_SECONDS if killing else None)[0]
        if orders in ready:
            letter = os.read(orders, 1)
            if letter == b"T":
                signal_all(child, signal.SIGTERM)
            else:  # K, or the keeper is gone
                killing = True
                sources = sources if letter else [wake]
        if wake in ready:
            os.read(wake, 4096)
        if killing:
            signal_all(child, signal.SIGKILL)
        while True:
            try:
                pid, how = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                os._exit(0)
            if pid == 0:
                break
            if pid == child:
                code = os.WEXITSTATUS(how) if os.WIFEXITED(how) else 128 + os.WTERMSIG(how)
                tell(told, code)


def tell(told: int, code: int) -> None:
    """Report the exit code to the keeper, which may be gone."""
    with contextlib.suppress(OSError):
        os.write(told, b"ended %d\n" % code)


def signal_all(child: int, number: int) -> None:
    """Signal all that a leader's command started, by now in whatever group or session."""
    if not os.path.exists("/proc/self/stat"):
        with contextlib.suppress(OSError):
            os.killpg(child, number)
        return
    for pid in descendants():
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def descendants() -> set[int]:
    """All processes below this one."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as stat:
                    parent = int(stat.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry))
    found: set[int] = set()
    fresh = [os.getpid()]
    while fresh:
        fresh = [pid for parent in fresh for pid in children.get(parent, ()) if pid not in found]
        found.update(fresh)
    return found
