"""TMO: that nothing is left of what was over its limit, and how it is told to end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.marks import needs, side_by_side, verifies
from conformance.probes.overruns import watched
from conformance.requirements import TMO_02, TMO_03, TMO_04
from conformance.verdicts import Violation

if TYPE_CHECKING:
    from conformance.probes.inside import Inside


@side_by_side
@verifies(TMO_02)
@needs(opens=True, processes=True)
def test_the_children_of_a_command_over_its_limit_are_gone(inside: Inside) -> None:
    """After a timeout no child is left, in another process group or deaf to SIGTERM either."""
    _nothing_is_left(inside, "children", "end every process group that the command made")


@side_by_side
@verifies(TMO_03)
@needs(opens=True, processes=True)
def test_children_that_left_the_session_are_gone_too(inside: Inside) -> None:
    """After a timeout those are gone too that were forked twice, or made a session of their own."""
    _nothing_is_left(
        inside, "escapes", "find what left the command's session, such as by cgroup or subreaper"
    )


def _nothing_is_left(inside: Inside, shows: str, remedy: str) -> None:
    for seen in watched(inside, shows):
        seen.was_seen()
        if not seen.ended:
            seen.control.blame_the_sandbox()
            raise Violation(
                f"{seen} gave exit_code={seen.answer().exit_code}, and its child went on",
                saw="the child's file grow",
                remedy=remedy,
            )


@side_by_side
@verifies(TMO_04)
@needs(opens=True, processes=True)
def test_sigterm_comes_5_seconds_before_sigkill(inside: Inside) -> None:
    """A command over its limit gets SIGTERM, with time for a trap of less than 5 seconds."""
    for seen in watched(inside, "trap"):
        seen.answer()
        if not seen.noted:
            seen.control.blame_the_sandbox()
            raise Violation(
                f"{seen} was ended before its trap had run for 3.5 s",
                saw="no file that the trap writes at its end",
                remedy="send SIGTERM at the limit, and SIGKILL 5 seconds later",
            )


@side_by_side
@verifies(TMO_04)
@needs(opens=True, processes=True)
def test_sigkill_ends_what_ignores_sigterm(inside: Inside) -> None:
    """What ignores SIGTERM is ended by SIGKILL 5 seconds later, and gives 124 as well."""
    for seen in watched(inside, "stubborn"):
        seen.was_seen()
        if not seen.ended:
            seen.control.blame_the_sandbox()
            raise Violation(
                f"{seen} went on for more than 5 s after SIGTERM",
                saw="its file grow",
                remedy="send SIGKILL 5 seconds after SIGTERM",
            )
