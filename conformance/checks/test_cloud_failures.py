"""LIF-14: a cloud that refuses, is never ready, loses answers, or vanishes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hypothesis import given

from conformance.bounds import BOUNDS
from conformance.marks import alone, needs, verifies
from conformance.probes.clouds import READY_SECONDS, judge_clear, raised, soon, started, watched
from conformance.probes.waits import ControlWait
from conformance.requirements import LIF_14
from conformance.strategies import troubles
from conformance.strategies.costly import few_examples
from conformance.strategies.each import each
from conformance.verdicts import NotRun, Violation

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.strategies.troubles import Trouble
    from conformance.subject.targets import Target

# Beyond the options: to delete what was made, and to look for what may have been.
_MORE_SECONDS = 20.0
_SLEEP_SECONDS = 2
_ASLEEP_SECONDS = 15.0
_LATE_SECONDS = 0.7


@verifies(LIF_14)
@needs(opens=True, cloud=True)
@alone
@few_examples()
@given(trouble=troubles.troubles)
@each("trouble", (*troubles.LASTING, *troubles.PASSING))
def test_a_cloud_that_goes_wrong_is_told_in_time_and_nothing_is_left(
    target: Target, lab: Lab, trouble: Trouble
) -> None:
    """Whatever goes wrong, a session works or says so in time, and nothing of it is left."""
    bound = BOUNDS.open
    if options := soon(target):
        bound = READY_SECONDS + _MORE_SECONDS
    with watched(lab) as watch:
        watch.cloud.inject(**trouble.how())
        control, began = ControlWait(0.1), time.monotonic()
        error = started(target, **options)
        took = time.monotonic() - began
        if trouble.kind == "slow":  # what was given up may be done all the same
            time.sleep(max(0.0, trouble.seconds + _LATE_SECONDS - took))
        watch.cloud.mend()
        when = f"when the cloud went wrong ({trouble})"
        judge_clear(error, when)
        if took > bound:
            control.blame_the_sandbox()
            raise Violation(
                f"{when} it took {took:.1f} s, with {options or 'its options'}",
                remedy="count every call and every wait of a start against its option",
            )
        watch.judge_empty(when)


@verifies(LIF_14)
@needs(opens=True, cloud=True)
@alone
def test_what_the_cloud_does_not_delete_is_told(target: Target, lab: Lab) -> None:
    """Where the cloud refuses to delete it, the close raises and names what may be left."""
    with watched(lab) as watch:
        with watch.cloud.broken("status", "DELETE", status=500):
            error = started(target)
        left = watch.made()
        watch.cloud.reset()
    if not left:
        raise NotRun("it deletes by no request that the cloud could refuse: see LIF-01")
    names = {text for row in left for text in (row["name"], row["id"])}
    judge_clear(error, "when the cloud refused to delete it")
    if error is None or not any(name in str(error) for name in names):
        raise Violation(
            f"{left[0]['kind']} {left[0]['name']} was left in the cloud, which refused to delete "
            f"it, and the close said {str(error)!r}",
            remedy="raise from the close, and name what a person has to delete",
        )


@verifies(LIF_14)
@needs(opens=True, cloud=True)
@alone
def test_a_sandbox_that_vanishes_is_told(target: Target, lab: Lab) -> None:
    """When its machine is gone, a call raises, and the close leaves nothing."""
    with watched(lab) as watch:
        with target.open() as box:
            box.write_file("kept", b"kept")
            watch.cloud.kill()
            error = raised(lambda: box.execute("cat kept", timeout_seconds=5))
            judge_clear(error, "when its machine was gone")
            if error is None:
                raise Violation(
                    "its machine was gone, and a command ended as if nothing had happened",
                    remedy="raise a SandboxError where the sandbox is no longer there",
                )
        watch.judge_empty("after a session whose machine was gone")


@verifies(LIF_14)
@needs(opens=True, cloud=True, option="idle_timeout_seconds")
@alone
def test_a_sandbox_that_lost_its_memory_is_told(target: Target, lab: Lab) -> None:
    """After a sleep a session goes on with the files that it had, or raises."""
    with watched(lab) as watch, target.open(idle_timeout_seconds=_SLEEP_SECONDS) as box:
        box.write_file("kept", b"kept")
        deadline = time.monotonic() + _ASLEEP_SECONDS
        while any(row["kind"] == "instance" for row in watch.made()):
            if time.monotonic() > deadline:
                raise NotRun(f"built with idle_timeout_seconds={_SLEEP_SECONDS} it did not sleep")
            time.sleep(0.1)
        found: list[str] = []
        error = raised(lambda: found.append(box.execute("cat kept", timeout_seconds=10).stdout))
    judge_clear(error, "after a sleep")
    if error is None and found != ["kept"]:
        raise Violation(
            "after a sleep a command ran in a workspace that lacks what the session wrote",
            remedy="tell a sandbox that was started anew from the session's own, and raise",
        )


@verifies(LIF_14)
@needs(opens=True, cloud=True)
@alone
def test_a_command_whose_answer_is_lost_is_not_run_again(target: Target, lab: Lab) -> None:
    """A command whose answer got lost ran once, and its caller hears of it."""
    with watched(lab) as watch, target.open() as box:
        with watch.cloud.broken("lose_reply", "POST /koyeb", times=1):
            error = raised(lambda: box.execute("echo ran >> runs", timeout_seconds=10))
        judge_clear(error, "when the answer of a command was lost")
        runs = box.read_file("runs").decode().split()
    if runs != ["ran"]:
        raise Violation(
            f"a command whose answer was lost ran {len(runs)} times",
            remedy="never send a command again, and say that it may have run",
        )
