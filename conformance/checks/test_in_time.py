"""TMO: what a limit does to a command that ends before it."""

from __future__ import annotations

import re
import time
from functools import partial
from typing import TYPE_CHECKING

from conformance.marks import needs, side_by_side, verifies
from conformance.probes.beside import at_once
from conformance.probes.heartbeats import MISSING, Heartbeat
from conformance.probes.overruns import late_machine
from conformance.requirements import TMO_09
from conformance.verdicts import NotRun, Violation

if TYPE_CHECKING:
    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box
    from conformance.subject.targets import Target

TIMED_OUT = 124
_UNDISTURBED = "trap 'printf term' TERM; printf 'a\\n'; sleep 0.9; printf 'b\\n'; exit 7"
_OF_A_LIMIT = re.compile(r"time[d -]*out|\blimit\b|deadline|too long", re.IGNORECASE)


@side_by_side
@verifies(TMO_09)
@needs(opens=True)
def test_a_command_in_time_is_not_disturbed(target: Target, inside: Inside) -> None:
    """A command that ends before its limit, however silent, gives its code and all its output."""
    inside.narrowest()

    def check(limit: float, before: float | None) -> None:
        with target.open() as box:
            if before is not None:
                box.execute("true", timeout_seconds=before)
            _undisturbed(box, limit, before)

    # What has ended has no limit any more; and a limit of months is one.
    at_once([partial(check, 30, 0.5), partial(check, 30, None), partial(check, 1e7, None)])


def _undisturbed(box: Box, limit: float, before: float | None) -> None:
    result = box.execute(_UNDISTURBED, timeout_seconds=limit)
    if (result.exit_code, result.stdout) != (7, "a\nb\n"):
        after = "" if before is None else f", after a command under timeout_seconds={before},"
        raise Violation(
            f"{_UNDISTURBED!r} under timeout_seconds={limit:g}{after} gave "
            f"exit_code={result.exit_code} and stdout={result.stdout!r}",
            remedy="leave a command alone until its own limit",
        )


@verifies(TMO_09)
@needs(opens=True)
def test_a_124_of_the_command_is_its_own(inside: Inside) -> None:
    """A command that exits with 124 gives that, with its output and not a word of a limit."""
    box = inside.narrowest()
    for command in ("printf out; printf 'err\\n' >&2; exit 124", "(exit 124)"):
        result = box.execute(command, timeout_seconds=30)
        shown = "printf" in command
        if (result.exit_code, result.stdout) != (124, "out" * shown) or (
            shown and "err\n" not in result.stderr
        ):
            raise Violation(
                f"{command!r} gave {result}",
                remedy="pass the exit code 124 of a command through, with its output",
            )
        other = box.execute(command.replace("124", "7"), timeout_seconds=30)
        said = [line for line in result.stderr.splitlines() if line not in other.stderr]
        if any(_OF_A_LIMIT.search(line) for line in said):
            raise Violation(
                f"{command!r} ended in time, and stderr says {' '.join(said)[:200]!r}",
                remedy="tell a timeout by the clock, not by the exit code",
            )


@side_by_side
@verifies(TMO_09)
@needs(opens=True, background=True)
def test_what_a_command_leaves_behind_outlives_its_limit(target: Target) -> None:
    """A limit is over with its command: what that left in the background goes on."""
    with target.open() as box:
        beat = Heartbeat.on(box)
        limit = 1.0
        began = time.monotonic()
        code = box.execute(beat.in_background, timeout_seconds=limit).exit_code
        if code == MISSING:
            raise NotRun("nothing inside can leave a process in the background: see CFG-19")
        if code == TIMED_OUT:
            raise late_machine()
        time.sleep(max(0.0, began + limit + 0.3 - time.monotonic()))
        if not beat.lives(5):
            raise Violation(
                f"what a command left in the background was gone after its limit of {limit:g} s",
                saw="its file grow no more" if beat.count() else "no file of it at all",
                remedy="end no process at the limit of a command that ended in time",
            )
