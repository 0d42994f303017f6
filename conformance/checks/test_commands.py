"""EXE: what running a command returns."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from conformance.marks import needs, side_by_side, verifies
from conformance.probes.heartbeats import contents
from conformance.requirements import EXE_01
from conformance.strategies import scripts
from conformance.strategies.each import each
from conformance.verdicts import NotRun, Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.probes.inside import Inside
    from conformance.strategies.scripts import Script


def _in_order(words: Sequence[str], text: str) -> bool:
    lines = iter(text.split())
    return all(word in lines for word in words)


def _strayed(words: Sequence[str], text: str) -> list[str]:
    """The words that are lines of the wrong stream; what else a sandbox says there is its own."""
    lines = {line.strip() for line in text.splitlines()}
    return [word for word in words if word in lines]


def _first_line(stderr: str) -> str:
    lines = stderr.strip().splitlines()
    return f" ({' '.join(lines[0].split())[:120]})" if lines else ""


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
            f"{script.text!r} gave exit_code={code}, not {wanted}{_first_line(result.stderr)}",
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


@side_by_side
@verifies(EXE_01)
@needs(opens=True)
@pytest.mark.parametrize("end", ["exit 0", "exit 1", "exit 137", "exit 255", "sleep 20"])
def test_a_command_is_run_once(inside: Inside, end: str) -> None:
    """A command is run once, however it ends: what it does is not done a second time."""
    box, name = inside.narrowest(), f"once-{secrets.token_hex(4)}"
    command = f"printf x >> {name}; {end}"
    result = box.execute(command, timeout_seconds=0.7 if "sleep" in end else None)
    done = contents(box, name)
    if not done:
        raise NotRun("nothing is found of what a command wrote: see EXE-06")
    if done != b"x":
        raise Violation(
            f"{command!r}, which gave exit_code={result.exit_code}, wrote {done[:20]!r}, not b'x'",
            remedy="run a command once; a call that failed on its way is the caller's to repeat",
        )
