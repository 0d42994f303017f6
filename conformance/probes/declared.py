"""What a live sandbox shows of the facts that it declares, for or against.

A fact is contradicted only by what no right sandbox could show; where a probe brings
nothing to light, nothing is said.
"""

from __future__ import annotations

import re
import secrets
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from conformance.subject.facade import Box

_SECONDS = 10.0
_SIGHT_SECONDS = 0.3
_LATE_SECONDS = 0.3
_PATIENCE_SECONDS = 3.0
_PROC = Path("/proc")
# Where anyone may write: what is left of the host when its temporary folder is covered.
_FOR_EVERYBODY = (Path("/var/tmp"), Path("/dev/shm"))  # noqa: S108 - names are made safely

# Nothing that only interprets commands can fork Python.
_FORK = """
import os
child = os.fork()
if not child:
    os._exit(7)
print(f"ended={os.waitpid(child, 0)[0] == child}", f"apart={child != os.getpid()}")
"""
_STAY = "import sys; sys.stdin.read()"
_LEAVE_BEHIND = """
import socket, subprocess, sys
nowhere = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
subprocess.Popen(["sh", "-c", sys.argv[1]], start_new_session=True, **nowhere)
print(f"started={40 + 2}")
"""


class _Sight:
    """Looks for a process of this machine that has a mark in its environment.

    A command line loses its marks where a shell replaces itself by a program; the
    environment does not.
    """

    def __init__(self, mark: str) -> None:
        self.found = ""
        self._mark = mark.encode()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self.found and not self._over.wait(0.01):
            for folder in _PROC.glob("[0-9]*"):
                with suppress(OSError):  # ended meanwhile, or another user's
                    if self._mark in (folder / "environ").read_bytes().split(b"\0"):
                        self.found = f"process {folder.name} ({_name(folder)})"


def _name(folder: Path) -> str:
    with suppress(OSError):
        return (folder / "comm").read_text(encoding="utf-8", errors="replace").strip()
    return "ended"


def said(box: Box, command: str) -> str:
    """What a command printed; it succeeds and is silent where a program is missing."""
    line = f"{{ {command}; }} 2>/dev/null || :"
    return box.execute(line, timeout_seconds=_SECONDS).stdout


def process_seen(box: Box) -> str:
    """What shows that a command was an operating-system process; empty if nothing does."""
    mark = f"CONFORMANCE_MARK={secrets.token_hex(8)}"
    with _Sight(mark) as sight:
        said(box, f"{mark} sleep {_SIGHT_SECONDS}")
    if sight.found:
        return f"a command of it was {sight.found} of this machine"
    forked = said(box, shlex.join(["python3", "-I", "-c", _FORK]))
    return "python3 forked inside" if "ended=True apart=True" in forked else ""


def process_shared(box: Box) -> str:
    """What shows that commands are no processes: two at the same time with one id."""
    command = "outer=$$; inner=$(sh -c 'echo $$; :'); echo outer=$outer inner=$inner"
    found = re.search(r"outer=(\d+) inner=(\d+)", said(box, command))
    if found is None or found[1] != found[2]:
        return ""
    return f"a shell and the one that it ran were both process {found[1]}"


@dataclass(frozen=True)
class Canaries:
    """Things of this machine that no isolated sandbox shows.

    Attributes:
        places: A file to read for each, with what it is.
        token: What is in each of them, and in no command.
    """

    places: dict[str, str]
    token: str

    def seen(self, box: Box) -> list[str]:
        """Which of them the inside sees."""
        seen = []
        for place, what in self.places.items():
            if self.token in said(box, f"cat {shlex.quote(place)}"):
                seen.append(f"{what} ({place})")
        return seen


@contextmanager
def canaries() -> Iterator[Canaries]:
    """Put a file into the home and one into each folder for everybody, and start a process."""
    token = f"canary-{secrets.token_hex(12)}"
    places = {}
    with ExitStack() as stack:
        for parent in dict.fromkeys((Path(tempfile.gettempdir()), Path.home(), *_FOR_EVERYBODY)):
            with suppress(OSError):  # a home that cannot be written to holds no canary
                made = tempfile.TemporaryDirectory(prefix="no-sandbox-", dir=parent)
                folder = Path(stack.enter_context(made))
                folder.chmod(0o755)
                (folder / "canary").write_text(token, encoding="utf-8")
                places[str(folder / "canary")] = f"a file of the host in {parent}"
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _STAY, token], stdin=subprocess.PIPE
        )
        stack.enter_context(process)  # leaving closes its input, which ends it
        places[f"/proc/{process.pid}/cmdline"] = "a process of the host"
        yield Canaries(places, token)


def stays_behind(box: Box) -> str:
    """Start a process that outlives its command; what kept it from that, or nothing."""
    name = f"late{secrets.token_hex(4)}"
    line = f"sleep {_LATE_SECONDS}; echo late > {name}"
    command = shlex.join(["python3", "-I", "-c", _LEAVE_BEHIND, line])
    started = box.execute(f"{command} || :", timeout_seconds=_SECONDS)
    if "started=42" not in started.stdout:
        words = " ".join(started.stderr.split())[:160]
        return f"`python3 -I` with socket and subprocess started nothing inside: {words}"
    return "" if appears(box, name) else "what python3 started ended with its command"


def late_file(box: Box) -> str:
    """The name of a file that a job of the shell has made after its command returned, if any."""
    name = f"late{secrets.token_hex(4)}"
    job = f"(sleep {_LATE_SECONDS}; echo late > {name}) >/dev/null 2>&1 &"
    box.execute(f"{job} echo started", timeout_seconds=_SECONDS)
    return name if not exists(box, name) and appears(box, name) else ""


def exists(box: Box, name: str) -> bool:
    """Whether a command finds a file in the workspace."""
    return "late" in said(box, f"cat {name}").split()


def appears(box: Box, name: str) -> bool:
    """Whether a command finds it, now or soon."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not exists(box, name):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
