"""EXE and TMO: how a command ends."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from conformance import strategies
from conformance.bounds import BOUNDS
from conformance.marks import needs, verifies
from conformance.requirements import EXE_01, TMO_01
from conformance.verdicts import HarnessError, NotRun, Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.probes.inside import Inside
    from conformance.strategies import Script

TIMED_OUT = 124


def _in_order(words: Sequence[str], text: str) -> bool:
    lines = iter(text.split())
    return all(word in lines for word in words)


@verifies(EXE_01)
@needs(opens=True)
@given(script=strategies.scripts)
def test_a_command_gives_its_exit_code_and_both_streams(inside: Inside, script: Script) -> None:
    """A command returns its exit code and both streams; a failing one does not raise."""
    result = inside.narrowest().execute(script.text)
    code = result.exit_code
    if code != script.exit_code if script.exit_code is not None else code == 0:
        wanted = "any but 0" if script.exit_code is None else script.exit_code
        raise Violation(
            f"{script.text!r} gave exit_code={code}, not {wanted}",
            remedy="return the exit code of the command",
        )
    for stream, words, text in (
        ("stdout", script.stdout, result.stdout),
        ("stderr", script.stderr, result.stderr),
    ):
        if not _in_order(words, text):
            raise Violation(
                f"{script.text!r} gave {stream}={text[:200]!r} without {' '.join(words)}",
                remedy=f"return what the command wrote to {stream}",
            )


class _ControlWait:
    """A wait of the harness's own beside the one that is judged: is this machine on time?"""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.took = 0.0
        self._thread = threading.Thread(target=self._wait, daemon=True)

    def _wait(self) -> None:
        began = time.monotonic()
        time.sleep(self._seconds)
        self.took = time.monotonic() - began

    def start(self) -> None:
        self._thread.start()

    def on_time(self) -> bool:
        self._thread.join(self._seconds + BOUNDS.slack)
        return 0 < self.took < self._seconds + BOUNDS.slack


LIMIT = 0.5


@verifies(TMO_01)
@needs(opens=True)
@pytest.mark.parametrize(
    "command",
    ["sleep 20", "while :; do :; done", "printf 'started\\n'; sleep 20"],
    ids=["sleeping", "busy", "after output"],
)
def test_a_command_over_its_limit_ends_with_124(inside: Inside, command: str) -> None:
    """A command over its limit ends with exit code 124, neither early nor much too late."""
    control = _ControlWait(LIMIT)
    box = inside.narrowest()
    control.start()
    began = time.monotonic()
    result = box.execute(command, timeout_seconds=LIMIT)
    took = time.monotonic() - began
    if result.exit_code != TIMED_OUT:
        raise Violation(
            f"{command!r} under timeout_seconds={LIMIT} gave exit_code={result.exit_code} "
            f"after {took:.2f} s",
            remedy="end a command at its limit and return exit code 124",
        )
    if took > BOUNDS.execute(LIMIT) and not control.on_time():
        raise HarnessError("this machine is too busy: a control wait of the suite was late too")
    if not LIMIT * 0.95 <= took <= BOUNDS.execute(LIMIT):
        raise Violation(
            f"{command!r} under timeout_seconds={LIMIT} came back after {took:.2f} s",
            remedy="let a command use its limit, then end it within 5 s",
        )


@verifies(TMO_01)
@needs(opens=True)
def test_only_the_limit_makes_it_124(inside: Inside) -> None:
    """A command ends with 124 under a shorter limit, and not under a longer one."""
    box = inside.narrowest()
    command = "sleep 1; exit 7"
    began = time.monotonic()
    in_time = box.execute(command, timeout_seconds=30)
    took = time.monotonic() - began
    if in_time.exit_code == TIMED_OUT:
        raise Violation(
            f"{command!r} under timeout_seconds=30 ended with 124 after {took:.2f} s",
            remedy="return 124 only for a command that was over its limit",
        )
    if took < 0.95:
        raise NotRun(f"'sleep 1' came back after {took:.2f} s, so nothing can be over its limit")
    late = box.execute(command, timeout_seconds=LIMIT)
    if late.exit_code != TIMED_OUT:
        raise Violation(
            f"{command!r} under timeout_seconds={LIMIT} gave exit_code={late.exit_code}",
            remedy="end a command at its limit and return exit code 124",
        )
