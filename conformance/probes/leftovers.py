"""What sessions leave behind: everything that is there after them and was not before.

What a sandbox starts once and shares between its sessions is no leftover, so each subject
is used once before anything is counted.
"""

from __future__ import annotations

import asyncio
import gc
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from conformance.lab.census import Census
from conformance.subject.blame import forget
from conformance.verdicts import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.lab.client import Lab
    from conformance.subject.targets import Target

SANDBOX_KINDS = ("process", "file entry", "mount", "container", "volume", "network",
                 "cloud app", "cloud service", "cloud instance")  # fmt: skip
"""What a sandbox consists of, as the census calls it."""

POOLED_KINDS = ("thread", "file", "task")
"""What a library may keep for all of its sessions, and what no session may add to."""

OPENED_KINDS = (*SANDBOX_KINDS, "file", "task")
"""What a session consists of, sockets and open files included."""

_KEPT = ("instance_id", "workspace", "pre_provisioned_sandbox_id")
_REMEDY = "delete the sandbox on every way out of open()"
_QUIET_SECONDS = 1.5
_PAUSE_SECONDS = 0.05
_used: set[str] = set()


def keeps_files(target: Target) -> bool:
    """Whether the user's options say that something stays after the close."""
    named = any(target.options.get(option) is not None for option in _KEPT)
    return named or target.options.get("delete_on_cleanup") is False


def use_once(target: Target) -> None:
    """Use a subject once, so that what all of its sandboxes share is there."""
    if target.name not in _used:
        _used.add(target.name)
        with target.open() as box:
            box.execute("true > used-once")
            with suppress(OSError):
                box.read_file("used-once")


class Left:
    """What is left, once the block that is judged has ended.

    Attributes:
        lines: A line for each thing.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []

    def judge(self, when: str, remedy: str = _REMEDY) -> None:
        """Judge that nothing is left.

        Raises:
            Violation: Something is.
        """
        if self.lines:
            shown = "; ".join(self.lines[:4])
            more = f"; and {len(self.lines) - 4} more" if len(self.lines) > 4 else ""
            raise Violation(f"{when} there was left: {shown}{more}", remedy=remedy)


@contextmanager
def counting(
    target: Target,
    lab: Lab,
    kinds: Sequence[str] = SANDBOX_KINDS,
    *,
    sessions: int = 0,
) -> Iterator[Left]:
    """Find out what the block leaves behind, with nobody else in the laboratory.

    Args:
        target: The subject.
        lab: The laboratory.
        kinds: What counts.
        sessions: So many things of one of the pooled kinds are a leak, if not 0: less is a
            pool's.
    """
    if keeps_files(target):
        kinds = [kind for kind in kinds if kind != "file entry"]
    with lab.alone():
        use_once(target)
        before = _taken(target)
        left = Left()
        yield left
        deadline = time.monotonic() + _QUIET_SECONDS
        # What is ending right now is not left: threads and processes take a moment.
        while True:
            left.lines = _left(_taken(target), before, kinds, sessions)
            if not left.lines or time.monotonic() > deadline:
                return
            time.sleep(_PAUSE_SECONDS)


def _taken(target: Target) -> Census:
    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    forget()  # an exception holds whatever was alive where it was raised
    gc.collect()  # what only garbage holds is gone whenever Python likes
    return Census.take(loops=[target.run(loop, "an empty turn of the event loop")])


def _left(now: Census, before: Census, kinds: Sequence[str], sessions: int) -> list[str]:
    lines = now.left_since(before, kinds)
    if "file" in kinds:  # the handles of a library's own event loops are pooled
        lines = [line for line in lines if "anon_inode:" not in line]
    if sessions:
        for kind in POOLED_KINDS:
            pooled = now.left_since(before, (kind,))
            lines += pooled if len(pooled) >= sessions else []
    return lines
