"""EXE and TMO: a caller that is cancelled, and what goes on beside a command that is ended."""

from __future__ import annotations

import secrets
import time
from functools import partial
from typing import TYPE_CHECKING

from conformance.bounds import BOUNDS
from conformance.marks import needs, side_by_side, verifies
from conformance.probes.beside import at_once
from conformance.probes.heartbeats import Heartbeat, contents
from conformance.probes.overruns import can_cancel, kept, watched
from conformance.requirements import EXE_10, TMO_11
from conformance.verdicts import NotApplicable, NotRun, Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box
    from conformance.subject.targets import Target

_END = BOUNDS.kill + BOUNDS.slack
_MANY = 20
_KEEP = "keep the sandbox in working order when a command is ended"


def _needs_cancelling(box: Box) -> None:
    if not can_cancel(box):
        raise NotApplicable("it cannot end a command before its limit, and says so")


@side_by_side
@verifies(EXE_10)
@needs(opens=True)
def test_cancelling_the_caller_ends_the_command(inside: Inside) -> None:
    """A command whose caller is cancelled ends with its children; the next one runs."""
    _needs_cancelling(inside.narrowest())
    for seen in watched(inside, "cancelled"):
        if seen.broke_after is not None:
            raise Violation(f"after {seen} {seen.broke_after.did}", remedy=_KEEP)
        seen.was_seen()
        if not seen.ended:
            seen.control.blame_the_sandbox()
            raise Violation(
                f"{seen} went on",
                saw="its file grow",
                remedy="end a command when its caller is cancelled, with all that it started",
            )
        if seen.after is None or seen.after.stdout != "usable" or not kept(seen):
            raise Violation(f"after {seen} 'printf usable' gave {seen.after}", remedy=_KEEP)


@side_by_side
@verifies(EXE_10)
@needs(opens=True)
def test_a_command_can_be_cancelled_at_any_time(target: Target, inside: Inside) -> None:
    """Callers that are cancelled at the start of a command, and many at once, leave nothing."""
    _needs_cancelling(inside.narrowest())
    with target.open() as box:
        beat = Heartbeat.on(box)
        flights = [box.begin(beat.text, timeout_seconds=60) for _ in range(_MANY)]
        for number, flight in enumerate(flights):
            flight.cancel()
            time.sleep(0.01 * (number % 5))
        deadline = time.monotonic() + _END
        for flight in flights:
            flight.result(max(0.1, deadline - time.monotonic()))
        _usable(box, f"{_MANY} commands")
        if not beat.stops(_END):
            raise Violation(
                f"the callers of {_MANY} commands were cancelled as they began, and one went on",
                saw="its file grow",
                remedy="end a command whenever its caller is cancelled",
            )


def _usable(box: Box, what: str) -> None:
    result = box.execute("printf usable")
    if (result.exit_code, result.stdout) != (0, "usable"):
        raise Violation(
            f"after the caller of {what} was cancelled, 'printf usable' gave {result}",
            remedy=_KEEP,
        )


Ender = tuple[str, "Callable[[Box], None]"]


def _time_out(box: Box) -> None:
    box.execute("sleep 30", timeout_seconds=0.7)


def _cancel(box: Box) -> None:
    flight = box.begin("sleep 30", timeout_seconds=60)
    time.sleep(0.4)
    flight.cancel()
    flight.result(_END)


def _enders(box: Box) -> list[Ender]:
    """The ways in which a command is ended, as far as this sandbox has them."""
    cancelling: list[Ender] = [("cancellation", _cancel)] if can_cancel(box) else []
    return [("timeout", _time_out), *cancelling]


@side_by_side
@verifies(TMO_11)
@needs(opens=True)
def test_ending_a_command_touches_none_beside_it(target: Target, inside: Inside) -> None:
    """While one command is timed out or cancelled, another one runs on to its own end."""
    enders = _enders(inside.narrowest())
    at_once([partial(_beside, target, name, end) for name, end in enders])


def _beside(target: Target, name: str, end: Callable[[Box], None]) -> None:
    go, note = (f"{kind}{secrets.token_hex(6)}" for kind in ("go", "note"))
    waiting = (
        f"printf 'a\\n'; printf x > {note}; i=0; "
        f"while [ $i -lt 100 ] && ! [ -e {go} ]; do sleep 0.2; i=$((i+1)); done; "
        "printf 'b\\n'; exit 7"
    )
    with target.open() as box:
        flight = box.begin(waiting, timeout_seconds=60)
        deadline = time.monotonic() + BOUNDS.unlimited
        while contents(box, note) != b"x":
            if time.monotonic() > deadline:
                raise NotRun("nothing is found of what a command wrote that still runs: see EXE-06")
            time.sleep(0.05)
        end(box)
        box.write_file(go, b"")
        result = flight.result(BOUNDS.unlimited)
        if result is None or (result.exit_code, result.stdout) != (7, "a\nb\n"):
            raise Violation(
                f"the {name} of one command left the one beside it with {result}",
                remedy="end the processes of one command, and of no other",
            )


@side_by_side
@verifies(TMO_11)
@needs(opens=True, background=True)
def test_ending_a_command_touches_nothing_in_the_background(target: Target, inside: Inside) -> None:
    """While a command is timed out or cancelled, what an earlier one left behind goes on."""
    enders = _enders(inside.narrowest())
    at_once([partial(_background, target, name, end) for name, end in enders])


def _background(target: Target, name: str, end: Callable[[Box], None]) -> None:
    with target.open() as box:
        beat = Heartbeat.on(box)
        box.execute(beat.in_background, timeout_seconds=30)
        if not beat.begins(BOUNDS.unlimited) or not beat.lives(5):
            raise NotRun("nothing stays in the background here to be touched: see CFG-19")
        end(box)
        if not beat.lives(5):
            raise Violation(
                f"the {name} of a command ended what an earlier one had left in the background",
                saw="its file grow no more",
                remedy="end the processes of one command, and of no other",
            )
