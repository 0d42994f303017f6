"""PRC: processes that go on between the calls of a model, through the tools that it gets."""

from __future__ import annotations

import json
import secrets
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from conformance.bounds import BOUNDS
from conformance.marks import needs, side_by_side, verifies
from conformance.probes import ingredients, surviving
from conformance.probes.at_work import LIVE_ON, at_work
from conformance.probes.choices import networks
from conformance.probes.waits import ControlWait
from conformance.requirements import (
    PRC_01,
    PRC_02,
    PRC_04,
    PRC_05,
    PRC_07,
    reference,
)
from conformance.subject.blame import shown
from conformance.verdicts import NotApplicable, NotRun, Violation
from sandboxes.tools import PROCESS_TOOLS

if TYPE_CHECKING:
    from conformance.probes.at_work import AtWork
    from conformance.subject.targets import Target

_WITHOUT = ("NoSandbox", "BashkitSandbox")

background = needs(opens=True, background=True, access="full")


@verifies(PRC_01)
def test_background_processes_are_offered_where_they_are_declared(target: Target) -> None:
    """A model gets `process.*` where background processes are declared, and nowhere else."""
    for others in networks(target):
        sandbox = target.build(**others)
        never = [name for name in _WITHOUT if reference.is_a(target.cls, name)]
        if never and sandbox.supports_background_processes:
            raise Violation(
                f"built with {others or 'no options'} a {never[0]} declares background processes",
                remedy="declare supports_background_processes = False",
            )
    full = target.declared.access == "full"
    declared = target.declared.fact("supports_background_processes") and full
    with at_work(target) as work:
        offered = {name for name in work.tools if name.startswith("process.")}
    if offered != (set(PROCESS_TOOLS) if declared else set()):
        raise Violation(
            f"it declares supports_background_processes = {declared} and a model gets "
            f"{sorted(offered) or 'none of them'}",
            remedy="declare of a class what its sandboxes have",
        )


@verifies(PRC_01)
@needs(option="supports_background_processes")
def test_an_image_of_ones_own_has_them_where_that_is_said(target: Target) -> None:
    """A custom image has background processes only with `supports_background_processes=True`."""
    if not target.has_option("image"):
        raise NotApplicable(f"{target.cls.__name__} has no option image")
    image = "registry.invalid/own:1"
    for said, wanted in ((None, False), (False, False), (True, True)):
        try:
            sandbox = target.build(image=image, supports_background_processes=said)
        except Exception as error:
            raise NotRun(f"it takes no custom image: {shown(error)}") from error
        if sandbox.supports_background_processes is not wanted:
            raise Violation(
                f"with a custom image and supports_background_processes={said} it declares "
                f"{sandbox.supports_background_processes}",
                remedy="declare them of a custom image only where the user says so",
            )


@side_by_side
@verifies(PRC_02)
@background
def test_a_process_is_started_read_written_to_listed_and_stopped(target: Target) -> None:
    """A background process can be started, read, written to, listed and stopped."""
    with at_work(target) as work:
        name = work.start("sh", "-c", 'echo ready; while read line; do echo "got $line"; done').id
        work.says(name, "ready\n")
        for word in ("one", "two"):
            work.call("process.write", name, f"{word}\n")
            work.says(name, f"got {word}\n")
        listed = {one.id: one.state for one in work.call("process.list")}
        stopped = work.call("process.stop", name)
        after = {one.id: one.state for one in work.call("process.list")}
    if listed != {name: "running"} or stopped.state == "running" or after != {name: stopped.state}:
        raise Violation(
            f"one process was listed as {listed}, stopped as {stopped.state}, and then {after}",
            remedy=LIVE_ON,
        )


@side_by_side
@verifies(PRC_04)
@background
def test_processes_are_there_in_the_next_turn(target: Target) -> None:
    """Ids, cursors and final states of processes are the same in a later turn."""
    left = _Left()
    with at_work(target) as work:
        work.take_turn(lambda: left.leave(work))
        work.take_turn(lambda: left.find(work))


class _Left:
    """Processes that one turn starts, and what a later one has to find of them."""

    def __init__(self) -> None:
        self.done = self.live = ""
        self.cursor = 0

    def leave(self, work: AtWork) -> None:
        """Start one that ends and one that waits, and read what the second one writes."""
        self.done = work.start("sh", "-c", "echo done; exit 3").id
        self.live = work.start("sh", "-c", "echo begun; read line; echo $line; read line").id
        if work.until(self.done, lambda output: output.exit_code is not None) is None:
            raise Violation("a process that exits at once did not end", remedy=LIVE_ON)
        self.cursor = work.says(self.live, "begun\n").cursor

    def find(self, work: AtWork) -> None:
        """Find both as they were, the first ended and the second waiting."""
        listed = {one.id: (one.state, one.exit_code) for one in work.call("process.list")}
        wanted = {self.done: ("exited", 3), self.live: ("running", None)}
        if listed != wanted or (done := work.output(self.done)).text != "done\n":
            got = listed if listed != wanted else done.text
            raise Violation(f"a later turn found {got!r}, not {wanted}", remedy=_KEEP)
        work.call("process.write", self.live, "later\n")
        work.says(self.live, "later\n")
        if (text := work.output(self.live, self.cursor).text) != "later\n":
            raise Violation(f"the cursor of an earlier turn gave {text!r}", remedy=_KEEP)
        work.call("process.stop", self.live)


@verifies(PRC_04)
@needs(opens=True, background=True, access="full", resume=True)
def test_processes_are_there_when_the_session_goes_on_elsewhere(target: Target) -> None:
    """Ids, cursors and final states of processes are the same in a session that was resumed."""
    left = _Left()
    with at_work(target) as first:
        first.take_turn(lambda: left.leave(first))
        state = json.loads(json.dumps(target.run(first.session.detach, "detaching a session")))
    with at_work(target, resume=state) as later:
        later.take_turn(lambda: left.find(later))


_KEEP = "keep processes, and what is known of them, until the session closes"


@verifies(PRC_05)
@background
def test_no_process_is_left_when_the_session_has_closed(target: Target) -> None:
    """When a session has closed, none of its processes is left, nor what they started."""
    beats, variable = f"beats-{secrets.token_hex(4)}", surviving.mark()
    with ExitStack() as stack:
        work = stack.enter_context(at_work(target))
        box = target.box(work.session.sandbox)
        work.start("env", variable, *surviving.tree(beats))
        surviving.begin(box, beats)
        if not (seen := surviving.marked(variable)):
            raise NotRun("its processes are not in sight from here, so nothing tells of their end")
        control, began = ControlWait(BOUNDS.kill), time.monotonic()
        stack.close()
    # All of them would end at once where they are asked.
    until = began + BOUNDS.kill + BOUNDS.slack
    while (left := surviving.marked(variable)) and time.monotonic() < until:
        time.sleep(0.1)
    if left or (took := time.monotonic() - began) > BOUNDS.kill + BOUNDS.slack:
        control.blame_the_sandbox()
        fact = f"{len(left)} of its {len(seen)} processes went on"
        if not left:
            fact = f"it took {took:.1f} s to end its processes"
        raise Violation(
            f"when the session was closed {fact}",
            saw="; ".join(left[:3]),
            remedy="end every process with the session, in whatever session of its own it is",
        )


@side_by_side
@verifies(PRC_07)
@background
@pytest.mark.parametrize("name", ingredients.NAMES)
def test_what_background_processes_are_made_of_is_there(target: Target, name: str) -> None:
    """Where background processes are declared, all that they are made of is inside."""
    with target.open() as box:
        lack = ingredients.lack(box, name)
    if lack:
        raise Violation(
            f"it declares supports_background_processes, and of {name} {lack}",
            remedy="put python3 with socket and subprocess inside and let processes live on, or "
            "declare it False",
        )
