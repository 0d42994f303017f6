"""Commands that are ended, all at once: each in a sandbox of its own, watched to its end.

They take seconds, so they run once for all the checks that judge one side of them.
"""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from conformance.bounds import BOUNDS
from conformance.probes.beside import at_once
from conformance.probes.heartbeats import MISSING, Heartbeat, contents
from conformance.probes.waits import ControlWait
from conformance.strategies.overruns import BEAT, CANCELLED, COMMON, NOTE, PROCESSES
from conformance.subject.blame import blamed
from conformance.verdicts import Hang, HarnessError, NotRun, Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.probes.inside import Inside
    from conformance.strategies.overruns import Overrun
    from conformance.subject.facade import Box
    from conformance.subject.targets import Target
    from sandboxes.contract import SandboxExecutionResult

LIMIT = 1.0
# A busy machine may not get a command far enough at first.
_TRIES = 3
_KEPT = b"kept across the limit\n"


@dataclass(slots=True)
class Watched:
    """One command over its limit, and what was seen of it.

    Attributes:
        overrun: The command.
        control: A wait that began with it.
        broke: What the sandbox did instead of giving a result.
        result: The result.
        took: Seconds until the result, or until it broke.
        began: Whether it was seen to run.
        ended: Whether it was seen to do nothing more in time.
        noted: Whether it left its note.
        after: What a further command of the sandbox said.
        kept: What the sandbox then had of a file written before.
        broke_after: What it did instead of that.
    """

    overrun: Overrun
    control: ControlWait
    broke: Violation | None = None
    result: SandboxExecutionResult | None = None
    took: float = 0.0
    began: bool = False
    ended: bool = True
    noted: bool = False
    after: SandboxExecutionResult | None = None
    kept: bytes = b""
    broke_after: Violation | None = None

    def __str__(self) -> str:
        text = self.overrun.text.replace(BEAT, "beats").replace(NOTE, "note")
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        told = f"a command ({self.overrun.name}: {shown!r})"
        if self.is_cancelled:
            return f"{told} whose caller was cancelled"
        return f"{told} under timeout_seconds={LIMIT:g}"

    @property
    def is_cancelled(self) -> bool:
        """Whether its caller is cancelled, and it has no limit."""
        return "cancelled" in self.overrun.shows

    def first_error(self) -> str:
        """Say what it wrote first on stderr, for a message."""
        lines = self.result.stderr.strip().splitlines() if self.result else []
        return f" ({' '.join(lines[0].split())[:120]})" if lines else ""

    @property
    def is_missing(self) -> bool:
        """Whether the inside has no program to do it with."""
        code = self.result.exit_code if self.result else 0
        return code == MISSING and "setsid" in self.overrun.shows

    def misses_its_control(self) -> bool:
        """Whether it was not seen to get as far as it must before it is ended."""
        text = self.overrun.text
        return (BEAT in text and not self.began) or (
            "output" in self.overrun.shows and not self.noted
        )

    def answer(self) -> SandboxExecutionResult:
        """Give the result.

        Raises:
            Violation: The sandbox gave none.
            NotRun: The inside has no program to do it with.
        """
        if self.broke is not None:
            raise self.broke
        assert self.result is not None
        if self.is_missing:
            raise NotRun("no program inside makes a session of its own; put setsid inside")
        return self.result

    @property
    def is_late(self) -> bool:
        """Whether its caller had no answer in time."""
        return isinstance(self.broke, Hang) or self.took > BOUNDS.execute(LIMIT)

    def was_seen(self) -> None:
        """Make sure that the witness of its life is one.

        Raises:
            NotRun: No later command finds its file.
        """
        if self.broke is not None:
            raise self.broke
        if not self.is_cancelled:
            self.answer()
        if not self.began:
            raise NotRun(
                f"nothing is found of what {self} wrote, so its end cannot be told: see EXE-06"
            )


_watched: dict[str, list[Watched]] = {}
_watching = threading.Lock()


def watched(inside: Inside, shows: str = "") -> list[Watched]:
    """Give the commands that were ended, run and watched to their ends.

    Args:
        inside: The sandboxes of the check.
        shows: Only those that are for this; all that have a limit and could be run if empty.

    Raises:
        NotRun: No command of this sandbox can take long enough.
    """
    target = inside.target
    with _watching:  # checks that are made at once wait for the same commands
        if target.name not in _watched:
            _watched[target.name] = _watch_all(inside)
    return [
        one
        for one in _watched[target.name]
        if (shows in one.overrun.shows if shows else not (one.is_cancelled or one.is_missing))
    ]


def _watch_all(inside: Inside) -> list[Watched]:
    target, box = inside.target, inside.narrowest()
    every = [
        *COMMON,
        *(PROCESSES if target.declared.fact("has_processes") else ()),
        *(CANCELLED if can_cancel(box) else ()),
    ]
    calls: list[Callable[[], Watched | None]] = [partial(_can_be_late, box)]
    calls += [partial(_watch, target, one) for one in every]
    seen = [one for one in at_once(calls) if one is not None]
    # So many at once make a machine busy; what was late among them may be late once more.
    late = [one.overrun for one in seen if one.is_late]
    again = {one.overrun: one for one in at_once([partial(_watch, target, one) for one in late])}
    return [again.get(one.overrun, one) for one in seen]


def can_cancel(box: Box) -> bool:
    """Whether cancelling a caller ends its command, as the sandbox says itself."""
    return getattr(box.running, "cancels", True) is not False


def _can_be_late(box: Box) -> None:
    """A control: where commands do not take their time, none can be over its limit."""
    began = time.monotonic()
    box.execute("sleep 1.2", timeout_seconds=30)
    if (took := time.monotonic() - began) < LIMIT:
        raise NotRun(
            f"'sleep 1.2' came back after {took:.2f} s, so no command can be over a limit of 1 s: "
            "see EXE-01"
        )


def _watch(target: Target, overrun: Overrun) -> Watched:
    with target.open() as box:
        for _ in range(_TRIES):
            seen = _watch_in(box, overrun)
            if seen.broke or seen.broke_after or not seen.misses_its_control():
                break
        return seen


def _watch_in(box: Box, overrun: Overrun) -> Watched:
    note, beat = f"note{secrets.token_hex(6)}", Heartbeat.on(box)
    text = overrun.text.replace(BEAT, beat.name).replace(NOTE, note)
    box.write_file(f"{note}.kept", _KEPT)
    seen = Watched(overrun, ControlWait(LIMIT + BOUNDS.kill))
    began = time.monotonic()
    try:
        if seen.is_cancelled:
            _cancel(box, text)
        else:
            seen.result = box.execute(text, timeout_seconds=LIMIT)
    except Exception as error:  # noqa: BLE001 - it is told apart in the next line
        seen.broke = _broken(error)
    seen.took = time.monotonic() - began
    if not isinstance(seen.broke, Hang):
        try:
            _look_after(seen, box, beat, note, began)
        except Exception as error:  # noqa: BLE001 - see above
            seen.broke_after = _broken(error)
    return seen


def _cancel(box: Box, text: str) -> None:
    flight = box.begin(text, timeout_seconds=BOUNDS.unlimited)
    time.sleep(LIMIT)
    flight.cancel()
    flight.result(BOUNDS.kill + BOUNDS.slack)


def _look_after(seen: Watched, box: Box, beat: Heartbeat, note: str, began: float) -> None:
    left = began + BOUNDS.execute(LIMIT) - time.monotonic()
    if BEAT in seen.overrun.text:
        seen.began = beat.count() > 0
        seen.ended = beat.stops(left)
    if NOTE in seen.overrun.text:
        seen.noted = contents(box, note) == b"x"
    seen.after = box.execute("printf usable", timeout_seconds=BOUNDS.unlimited)
    seen.kept = contents(box, f"{note}.kept")


def _broken(error: Exception) -> Violation:
    """What the sandbox did, as a break that several checks can tell.

    Raises:
        Exception: It was not the sandbox.
    """
    if isinstance(error, Violation):
        return error
    blame = blamed(error)
    if blame is None:
        raise error
    return blame.violation()


def kept(seen: Watched) -> bool:
    """Whether the sandbox still had the file that was written before."""
    return seen.kept == _KEPT


def late_machine() -> HarnessError:
    """Say that a command was not run far enough to be judged."""
    return HarnessError("this machine is too busy: a command did not get far within its limit")
