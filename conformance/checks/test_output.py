"""EXE: what comes back of the output of a command."""

from __future__ import annotations

import os
import secrets
import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from conformance.bounds import BOUNDS
from conformance.marks import needs, side_by_side, verifies
from conformance.probes.beside import at_once
from conformance.probes.waits import ControlWait
from conformance.requirements import EXE_03, EXE_04, EXE_07, EXE_08, EXE_09
from conformance.strategies import outputs
from conformance.strategies.each import each
from conformance.strategies.outputs import Difference
from conformance.verdicts import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box
    from conformance.subject.targets import Target
    from sandboxes.contract import SandboxExecutionResult


def _judge(result: SandboxExecutionResult, did: str, stdout: str, stderr: str, remedy: str) -> None:
    """Hold output against what was written; on stderr a sandbox may say more, around it."""
    if result.stdout != stdout:
        raise Violation(f"{did}, stdout had {Difference(stdout, result.stdout)}", remedy=remedy)
    if stderr not in result.stderr:
        raise Violation(f"{did}, stderr had {Difference(stderr, result.stderr)}", remedy=remedy)
    if result.exit_code != 0:
        raise Violation(f"{did}, exit_code={result.exit_code}", remedy="return the exit code")


@verifies(EXE_03)
@needs(opens=True)
@given(out=outputs.texts, err=outputs.texts)
@each("out", outputs.TEXTS, err="")
@each("err", outputs.TEXTS, out="")
def test_both_streams_come_back_complete(inside: Inside, out: str, err: str) -> None:
    """Both streams come back apart and to the last character, whatever they are."""
    box = inside.narrowest()
    box.write_file("out.txt", out.encode())
    box.write_file("err.txt", err.encode())
    # The streams in turn: who reads one to its end first lets the other one fill up.
    result = box.execute("cat err.txt >&2; cat out.txt")
    _judge(
        result,
        f"of {len(out)} characters on stdout and {len(err)} on stderr",
        out,
        err,
        "return both streams apart, as UTF-8, with nothing changed, added or left out",
    )


@verifies(EXE_03)
@needs(opens=True)
def test_what_is_written_in_turn_keeps_its_order(inside: Inside) -> None:
    """Each stream keeps its own order where a command writes to both in turn."""
    lines = "i=0; while [ $i -lt 50 ]; do printf 'o%s\\n' $i; printf 'e%s\\n' $i >&2"
    result = inside.narrowest().execute(f"{lines}; i=$((i+1)); done")
    out, err = ("".join(f"{stream}{number}\n" for number in range(50)) for stream in "oe")
    kept = "".join(line for line in result.stderr.splitlines(keepends=True) if line in err)
    if (result.stdout, kept) != (out, err):
        raise Violation(
            "of 50 lines on each stream, written in turn, stdout had "
            f"{Difference(out, result.stdout)}; stderr had {Difference(err, kept)}",
            remedy="keep each stream in its order",
        )


_LARGE = 10_000_000


@verifies(EXE_03)
@needs(opens=True)
def test_ten_megabytes_come_back(inside: Inside) -> None:
    """10 MB on each of the streams, read from a file, come back complete."""
    line = f"{secrets.token_hex(31)}\n"
    # The last line tells whether the end was reached.
    written = f"{line * (_LARGE // len(line) - 1)}{'z' * 63}\n"
    box = inside.narrowest()
    box.write_file("large.txt", written.encode())
    result = box.execute("cat large.txt; cat large.txt >&2", timeout_seconds=BOUNDS.unlimited)
    box.write_file("large.txt", b"")
    remedy = "return up to 10 MB of each stream"
    _judge(result, "of 10 MB from a file on each stream", written, written, remedy)


@verifies(EXE_04)
@needs(opens=True)
@given(written=outputs.data, stderr=st.booleans())
@each("written", outputs.DATA, stderr=False)
@each("written", outputs.DATA, stderr=True)
def test_any_bytes_come_back(inside: Inside, written: bytes, stderr: bool) -> None:
    """Output of any bytes comes back: UTF-8 exactly, and a replacement for what is none."""
    box = inside.narrowest()
    box.write_file("bytes", written)
    result = box.execute("cat bytes >&2" if stderr else "cat bytes")
    got = outputs.replaced(result.stderr if stderr else result.stdout)
    wanted = outputs.expected(written)
    if got != wanted and not (stderr and wanted in got):
        stream = "stderr" if stderr else "stdout"
        raise Violation(
            f"of the {len(written)} bytes {written[:40]!r} {stream} had {Difference(wanted, got)}",
            remedy="decode the whole of a stream as UTF-8, replacing what is none",
        )


@side_by_side
@verifies(EXE_04)
@needs(opens=True)
def test_a_character_may_come_in_two_writes(inside: Inside) -> None:
    """A character whose bytes are written with a pause between them is one character."""
    result = inside.narrowest().execute("printf '\\303'; sleep 0.2; printf '\\251\\n'")
    if result.stdout != "é\n":
        raise Violation(
            f"of the two bytes of 'é', with 0.2 s between them, stdout had {result.stdout!r}",
            remedy="decode the whole of a stream, not each part as it is read",
        )


@contextmanager
def _held_stdin() -> Iterator[None]:
    """Give this process a standard input that never ends, with something in it."""
    kept = os.dup(0)
    read, write = os.pipe()
    try:
        os.write(write, b"of the host\n")
        os.dup2(read, 0)
        yield
    finally:
        os.dup2(kept, 0)
        for descriptor in (kept, read, write):
            os.close(descriptor)


_READERS = {
    "cat": "",
    "read line; printf '%s' \"$line\"": "",
    "(cat)": "",
    # Who feeds its shell the command on stdin loses the rest of it here.
    "cat > read.txt\nprintf 'end'\ncat read.txt": "end",
}


@verifies(EXE_07)
@needs(opens=True)
def test_standard_input_is_empty(target: Target, inside: Inside) -> None:
    """What reads its standard input is at the end of it at once, whatever this process has."""

    def check(command: str, wanted: str) -> None:
        with target.open() as box:
            result = box.execute(command, timeout_seconds=4)
        # One that is closed, or not open for reading, fails its reader.
        if (result.exit_code, result.stdout) != (0, wanted):
            raise Violation(
                f"{command!r} gave exit_code={result.exit_code} and stdout={result.stdout!r}",
                remedy="give commands an empty standard input, such as /dev/null opened to read",
            )

    inside.narrowest()
    with _held_stdin():
        at_once([partial(check, command, wanted) for command, wanted in _READERS.items()])


_RETURN_SECONDS = 5.0
_HOLDERS = (
    "sleep 15 &",
    "sleep 15 2> /dev/null &",
    "sleep 15 > /dev/null &",
    "(sleep 15 &)",
    "(sleep 15; printf late) & (sleep 15; printf late >&2) &",
)


@side_by_side
@verifies(EXE_08)
@needs(opens=True, processes=True)
def test_a_child_that_holds_the_output_keeps_nobody_waiting(target: Target, inside: Inside) -> None:
    """A command returns within 5 seconds though its background child has stdout or stderr open."""
    inside.narrowest()

    def check(command: str) -> None:
        with target.open() as box:
            for _ in range(3):  # a second one may meet what the first one left behind
                _returns(box, f"{command}\nprintf 'hi\\n'; printf 'err\\n' >&2")

    at_once([partial(check, command) for command in _HOLDERS])


def _returns(box: Box, command: str) -> None:
    control, began = ControlWait(_RETURN_SECONDS), time.monotonic()
    result = box.execute(command, timeout_seconds=BOUNDS.unlimited)
    took = time.monotonic() - began
    if took > _RETURN_SECONDS + BOUNDS.slack:
        control.blame_the_sandbox()
        raise Violation(
            f"{command!r} came back after {took:.1f} s",
            remedy="wait for the end of the command, not for the end of its output",
        )
    _judge(result, f"of {command!r}", "hi\n", "err\n", "return what was written until the end")


_AT_ONCE = 8


@side_by_side
@verifies(EXE_09)
@needs(opens=True)
def test_commands_at_once_do_not_mix(inside: Inside) -> None:
    """Commands that run at the same time in one sandbox each get their own output and code."""
    box = inside.narrowest()
    tokens = [secrets.token_hex(8) for _ in range(_AT_ONCE)]

    def run(number: int) -> SandboxExecutionResult:
        words = f"printf '%s\\n' out-{tokens[number]}; printf '%s\\n' err-{tokens[number]} >&2"
        loop = f"i=0; while [ $i -lt 10 ]; do {words}; sleep 0.05; i=$((i+1)); done"
        return box.execute(f"{loop}; exit {number + 3}", timeout_seconds=BOUNDS.unlimited)

    for number, result in enumerate(at_once([partial(run, n) for n in range(_AT_ONCE)])):
        out = f"out-{tokens[number]}\n" * 10
        strayed = [one for one in tokens if one != tokens[number] and one in result.stderr]
        own = result.stderr.count(f"err-{tokens[number]}\n") == 10
        if (result.exit_code, result.stdout, own, strayed) != (number + 3, out, True, []):
            raise Violation(
                f"of {_AT_ONCE} commands at once, number {number} gave exit_code="
                f"{result.exit_code} (not {number + 3}), stdout={result.stdout[:120]!r}, "
                f"stderr={result.stderr[:120]!r}",
                remedy="keep the output of each command to itself",
            )
