"""LIF-03: a sandbox that is closed, and one that is closed while a command runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from conformance.bounds import BOUNDS
from conformance.marks import alone, needs, verifies
from conformance.probes import heartbeats
from conformance.probes.heartbeats import Heartbeat
from conformance.probes.leftovers import counting
from conformance.probes.waits import ControlWait
from conformance.requirements import LIF_03
from conformance.subject.blame import shown
from conformance.verdicts import NotRun, Violation
from sandboxes.contract import SandboxClosed

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.lab.client import Lab
    from conformance.subject.facade import Box
    from conformance.subject.targets import Target

_CALLS: dict[str, Callable[[Box], object]] = {
    "execute": lambda box: box.execute("printf again > again; cat kept"),
    "read_file": lambda box: box.read_file("kept"),
    "write_file": lambda box: box.write_file("again", b"again"),
}
_RAISE = "raise SandboxClosed from every call of a closed sandbox"


@verifies(LIF_03)
@needs(opens=True)
@pytest.mark.parametrize("name", list(_CALLS))
def test_a_closed_sandbox_says_that_it_is_closed(target: Target, name: str) -> None:
    """After the close each call raises `SandboxClosed`."""
    call = _CALLS[name]
    with target.open() as box:
        box.write_file("kept", b"kept")
        call(box)
    try:
        answer = call(box)
    except SandboxClosed:
        return
    except Violation:
        raise
    except Exception as error:
        raise Violation(
            f"{name} of a closed sandbox raised {shown(error)}", remedy=_RAISE
        ) from error
    raise Violation(f"{name} of a closed sandbox returned {answer!r}", remedy=_RAISE)


_END = "end in the close whatever runs, within 5 s, and let its caller know"


# Long enough for a command to begin where nobody can look.
_UNSEEN_SECONDS = 1.5


_beside: dict[str, bool] = {}


def _works_beside(target: Target) -> bool:
    """Whether a call is answered while a command runs; a sandbox may take one after the other."""
    if target.name not in _beside:
        with target.open() as box:
            flight = box.begin("sleep 0.7", timeout_seconds=30)
            box.write_file("beside", b"x")
            _beside[target.name] = not flight.ended
            flight.result(BOUNDS.execute(30))
    return _beside[target.name]


@verifies(LIF_03)
@needs(opens=True)
@alone
@pytest.mark.parametrize("command", ["sleep 20", heartbeats.loop()], ids=["sleeping", "looping"])
def test_a_close_during_a_command_ends_it(target: Target, lab: Lab, command: str) -> None:
    """A close while a command runs ends the command, and does not wait for it."""
    bound = BOUNDS.kill + BOUNDS.slack
    beside = _works_beside(target)
    with counting(target, lab, ("process",)) as left:
        with target.open() as box:
            beat = Heartbeat.on(box)
            flight = box.begin(f"printf x > {beat.name}; {command}", timeout_seconds=30)
            if not beside:
                time.sleep(_UNSEEN_SECONDS)
            elif not beat.begins(BOUNDS.slack):
                raise NotRun("no later command finds what a running one wrote: see EXE-06")
            control, began = ControlWait(0.1), time.monotonic()
        took = time.monotonic() - began
        try:
            result = flight.result(max(bound - took, 0.1))
        except Violation as error:
            control.blame_the_sandbox()
            raise Violation(f"{command[:40]!r} went on after the close", remedy=_END) from error
        except Exception:  # noqa: BLE001 - however its caller hears of it
            result = None
    if result is not None and result.exit_code == 0:
        raise Violation(f"{command[:40]!r} gave exit code 0 after a close ended it", remedy=_END)
    if took > bound:
        control.blame_the_sandbox()
        raise Violation(f"the close took {took:.1f} s while a command ran", remedy=_END)
    left.judge("after a close during a command", _END)
