"""EXE and TMO: how a command ends."""

from __future__ import annotations

import secrets
import threading
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from conformance.bounds import BOUNDS
from conformance.marks import needs, verifies
from conformance.requirements import EXE_01, TMO_01
from conformance.strategies import scripts
from conformance.strategies.each import each
from conformance.verdicts import HarnessError, NotRun, Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.probes.inside import Inside
    from conformance.strategies.scripts import Script

TIMED_OUT = 124


def _in_order(words: Sequence[str], text: str) -> bool:
    lines = iter(text.split())
    return all(word in lines for word in words)


def _strayed(words: Sequence[str], text: str) -> list[str]:
    """The words that are lines of the wrong stream; what else a sandbox says there is its own."""
    lines = {line.strip() for line in text.splitlines()}
    return [word for word in words if word in lines]


@verifies(EXE_01)
@needs(opens=True)
@given(script=scripts.scripts)
@each("script", scripts.SCRIPTS)
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
    for stream, words, others, text in (
        ("stdout", script.stdout, script.stderr, result.stdout),
        ("stderr", script.stderr, script.stdout, result.stderr),
    ):
        if not _in_order(words, text):
            raise Violation(
                f"{script.text!r} gave {stream}={text[:200]!r} without {' '.join(words)}",
                remedy=f"return what the command wrote to {stream}",
            )
        if strayed := _strayed(others, text):
            raise Violation(
                f"{script.text!r} gave {stream}={text[:200]!r} with {' '.join(strayed)}",
                remedy="keep stdout and stderr apart",
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
# Ten turns of a loop that is still alive.
QUIET = 1.0


def _for_seconds(seconds: int, body: str = ":") -> str:
    """A loop that would end by itself, so that no broken sandbox keeps it for ever."""
    return f"i=0; while [ $i -lt {seconds}0 ]; do {body}; sleep 0.1; i=$((i+1)); done"


@verifies(TMO_01)
@needs(opens=True)
@pytest.mark.parametrize(
    "command",
    [
        "sleep 20",
        "while :; do :; done",
        "printf 'started\\n'; sleep 20",
        # It ends within the grace: what counts the silence alone sees no limit passed.
        _for_seconds(3, "printf 'more\\n'"),
        f"trap 'exit 0' TERM; {_for_seconds(20)}",
        f"trap '' TERM; {_for_seconds(20)}",
    ],
    ids=["sleeping", "busy", "after output", "printing", "trapping TERM", "ignoring TERM"],
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


@verifies(TMO_01)
@needs(opens=True)
def test_what_was_over_its_limit_does_nothing_more(inside: Inside) -> None:
    """A command over its limit has ended, and what it ran in the foreground with it."""
    box = inside.narrowest()
    name = f"growing{secrets.token_hex(4)}"
    # A child writes, so that to end the shell alone is not enough.
    command = f"({_for_seconds(20, f'printf x >> {name}')}); :"
    late = box.execute(command, timeout_seconds=LIMIT)
    if late.exit_code != TIMED_OUT:
        raise Violation(
            f"{command!r} under timeout_seconds={LIMIT} gave exit_code={late.exit_code}",
            remedy="end a command at its limit and return exit code 124",
        )
    deadline = time.monotonic() + BOUNDS.kill + BOUNDS.slack
    size, before = len(box.execute(f"cat {name}").stdout), -1
    if not size:
        raise NotRun(
            "no later command finds what this one wrote, so its end cannot be told: see EXE-06"
        )
    while size != before:
        if time.monotonic() > deadline:
            raise Violation(
                f"{command!r} under timeout_seconds={LIMIT} gave 124 and went on: its file grew "
                f"to {size} bytes",
                remedy="end the whole command at its limit, with the processes that it started",
            )
        time.sleep(QUIET)
        size, before = len(box.execute(f"cat {name}").stdout), size
