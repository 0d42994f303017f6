"""TMO: what a limit does to a command that is over it, and to the one that called it."""

from __future__ import annotations

import secrets
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from conformance.bounds import BOUNDS
from conformance.marks import needs, side_by_side, verifies
from conformance.probes.beside import at_once
from conformance.probes.overruns import LIMIT, kept, late_machine, watched
from conformance.probes.waits import ControlWait
from conformance.requirements import TMO_01, TMO_05, TMO_08, TMO_10, TMO_12
from conformance.verdicts import Hang, NotRun, Violation

if TYPE_CHECKING:
    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box
    from conformance.subject.targets import Target

TIMED_OUT = 124


@side_by_side
@verifies(TMO_01)
@needs(opens=True)
def test_a_command_over_its_limit_ends_with_124(inside: Inside) -> None:
    """A command over its limit ends with exit code 124, whatever it does, and does not raise."""
    for seen in watched(inside):
        result = seen.answer()
        if result.exit_code != TIMED_OUT:
            raise Violation(
                f"{seen} gave exit_code={result.exit_code} after {seen.took:.2f} s"
                f"{seen.first_error()}",
                remedy="end a command at its limit and return exit code 124",
            )


@side_by_side
@verifies(TMO_01)
@needs(opens=True)
def test_only_the_limit_makes_it_124(target: Target, inside: Inside) -> None:
    """A command ends with 124 under a shorter limit, and not under a longer one."""
    inside.narrowest()
    command = "sleep 1.2; exit 7"

    def timed(limit: float) -> tuple[int, float]:
        with target.open() as box:
            began = time.monotonic()
            code = box.execute(command, timeout_seconds=limit).exit_code
            return code, time.monotonic() - began

    (in_time, took), (late, _) = at_once([lambda: timed(30), lambda: timed(0.5)])
    if in_time == TIMED_OUT:
        raise Violation(
            f"{command!r} under timeout_seconds=30 ended with 124 after {took:.2f} s",
            remedy="return 124 only for a command that was over its limit",
        )
    if took < 1.1:
        raise NotRun(
            f"'sleep 1.2' came back after {took:.2f} s, so nothing can be over its limit: "
            "see EXE-01"
        )
    if late != TIMED_OUT:
        raise Violation(
            f"{command!r} under timeout_seconds=0.5 gave exit_code={late}",
            remedy="end a command at its limit and return exit code 124",
        )


@side_by_side
@verifies(TMO_01)
@needs(opens=True)
def test_what_was_over_its_limit_does_nothing_more(inside: Inside) -> None:
    """A command over its limit has ended, and what it ran in the foreground with it."""
    for seen in watched(inside, "end"):
        seen.was_seen()
        if not seen.ended:
            raise Violation(
                f"{seen} gave exit_code={seen.answer().exit_code} and went on: its file grew",
                remedy="end the whole command at its limit, with the processes that it started",
            )


@side_by_side
@verifies(TMO_05)
@needs(opens=True)
def test_output_from_before_the_limit_is_kept(inside: Inside) -> None:
    """What a command wrote before its limit comes back, on both streams and to the last byte."""
    for seen in watched(inside, "output"):
        result = seen.answer()
        for stream, text, wanted in (
            ("stdout", result.stdout, "first\nno end"),
            ("stderr", result.stderr, "trouble\n"),
        ):
            if wanted in text:
                continue
            if not seen.noted:
                raise late_machine()  # or no file is ever found again: see EXE-06
            raise Violation(
                f"{seen} gave {stream}={text[:200]!r}, without {wanted!r}",
                saw="the file that it wrote after that",
                remedy="return what a command wrote before its limit",
            )


@side_by_side
@verifies(TMO_08)
@needs(opens=True)
def test_the_caller_waits_for_the_limit_and_little_longer(inside: Inside) -> None:
    """The caller gets an answer not before the limit, and at most 5 seconds after it."""
    for seen in watched(inside):
        if isinstance(seen.broke, Hang):
            raise seen.broke
        if seen.took > BOUNDS.execute(LIMIT):
            seen.control.blame_the_sandbox()
        # One that did not even end at its limit is TMO-01's.
        least = LIMIT * 0.95 if seen.result and seen.result.exit_code == TIMED_OUT else 0
        if not least <= seen.took <= BOUNDS.execute(LIMIT):
            raise Violation(
                f"{seen} came back after {seen.took:.2f} s{seen.first_error()}",
                remedy="let a command use its limit, then end it within 5 s",
            )


@side_by_side
@verifies(TMO_10)
@needs(opens=True)
def test_the_session_is_usable_after_a_timeout(inside: Inside) -> None:
    """After a timeout the next command runs, and files from before are still there."""
    answered = [seen for seen in watched(inside) if not isinstance(seen.broke, Hang)]
    if not answered:
        raise NotRun("no command over its limit gave its caller an answer: see TMO-08")
    for seen in answered:
        if seen.broke_after is not None:
            raise Violation(
                f"after {seen} {seen.broke_after.did}",
                remedy="keep the sandbox in working order when a command is ended",
            ) from seen.broke_after
        after = seen.after
        if after is None or (after.exit_code, after.stdout) != (0, "usable"):
            raise Violation(
                f"after {seen} 'printf usable' gave {after}",
                remedy="keep the sandbox in working order when a command is ended",
            )
        if not kept(seen):
            raise Violation(
                f"after {seen} a file from before was {seen.kept[:100]!r}",
                remedy="keep the workspace when a command is ended",
            )


@verifies(TMO_12)
@needs(opens=True)
@pytest.mark.parametrize(
    "limit", [0, 0.0, -1, -0.5, float("nan"), float("inf"), float("-inf")], ids=repr
)
def test_a_limit_that_is_none_raises(inside: Inside, limit: float) -> None:
    """A limit of zero, below zero, NaN or infinity raises, and the command is not run."""
    box = inside.narrowest()
    name = f"ran{secrets.token_hex(6)}"
    try:
        result = box.execute(f"printf x > {name}", timeout_seconds=limit)
    except Violation:
        raise
    except Exception:  # noqa: BLE001 - which kind of refusal is the sandbox's own
        if box.execute(f"cat {name}").stdout != "x":
            return
        raise Violation(
            f"timeout_seconds={limit} raised, and the command was run all the same",
            remedy="check the limit before the command is run",
        ) from None
    raise Violation(
        f"timeout_seconds={limit} was taken (exit_code={result.exit_code})",
        remedy="raise ValueError for a limit that is not a positive finite number",
    )


_TRIES = 3


@side_by_side
@verifies(TMO_12)
@needs(opens=True)
def test_fractions_of_a_second_count(target: Target, inside: Inside) -> None:
    """A limit of 0.3 or 1.3 seconds is neither of the whole seconds beside it."""
    inside.narrowest()

    def check(limit: float, command: str, *, late: bool) -> None:
        with target.open() as box:
            _fraction(box, limit, command, late=late)

    at_once(
        [
            partial(check, 0.3, "sleep 0.7; exit 7", late=True),
            partial(check, 0.9, "sleep 20", late=False),
            partial(check, 1.3, "sleep 20", late=False),
        ]
    )


def _fraction(box: Box, limit: float, command: str, *, late: bool) -> None:
    """Judge one limit: `late` where it may have been rounded up, else where down."""
    for _ in range(_TRIES):
        control = ControlWait(limit)
        began = time.monotonic()
        result = box.execute(command, timeout_seconds=limit)
        took = time.monotonic() - began
        if (result.exit_code == TIMED_OUT) if late else took >= 0.95 * limit:
            return
    control.blame_the_sandbox()
    raise Violation(
        f"{command!r} under timeout_seconds={limit} gave exit_code={result.exit_code} "
        f"after {took:.2f} s, {_TRIES} times",
        remedy="keep fractions of a second in a limit",
    )
