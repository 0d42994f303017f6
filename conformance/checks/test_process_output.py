"""PRC: what goes into and comes out of a background process, and how it ends."""

from __future__ import annotations

import base64
import hashlib
import secrets
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings

from conformance.bounds import BOUNDS
from conformance.marks import needs, side_by_side, verifies
from conformance.probes import surviving
from conformance.probes.at_work import AtWork, at_work
from conformance.probes.contents import difference
from conformance.probes.waits import ControlWait
from conformance.requirements import PRC_03, PRC_06
from conformance.strategies import processes
from conformance.strategies.each import each
from conformance.verdicts import Violation
from sandboxes.contract import BackgroundProcessError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.strategies.processes import Written
    from conformance.subject.targets import Target

_READS = 200

background = needs(opens=True, background=True, access="full")


# In pieces as they are given, each in one write, a moment apart.
_WRITER = """
import base64, sys, time
for piece in sys.argv[2:]:
    sys.stdout.buffer.write(base64.b64decode(piece))
    sys.stdout.buffer.flush()
    time.sleep(float(sys.argv[1]))
"""


def _read_on(work: AtWork, name: str, cursor: int) -> tuple[str, int]:
    """Read from a cursor to the end of a process, each time from where the last one ended."""
    texts, dropped = [], 0
    for _ in range(_READS):
        output = work.output(name, cursor)
        texts.append(output.text)
        dropped += output.dropped
        cursor = output.cursor
        if output.exit_code is not None and not output.more:
            break
    return "".join(texts), dropped


@pytest.fixture
def session(target: Target) -> Iterator[Callable[[], AtWork]]:
    """Gives one session to all examples of a check, once it is asked for."""
    with ExitStack() as stack:
        opened: list[AtWork] = []

        def once() -> AtWork:
            if not opened:
                opened.append(stack.enter_context(at_work(target)))
            return opened[0]

        yield once


@verifies(PRC_03)
@background
@settings(max_examples=2)
@given(written=processes.written)
@each("written", processes.WRITTEN)
def test_reading_from_cursor_to_cursor_gives_all_and_nothing_twice(
    session: Callable[[], AtWork], written: Written
) -> None:
    """From cursor to cursor output comes whole, in order and once, whatever it is cut into."""
    pieces = [base64.b64encode(piece).decode() for piece in written.pieces]
    pause = f"{min(0.02, 0.3 / len(pieces)):.4f}"
    whole = written.data.decode(errors="replace")
    later = len(whole[: written.start].encode()) if written.start else 0
    work = session()
    name = work.start("python3", "-I", "-c", _WRITER, pause, *pieces).id
    for start, wanted in ((0, whole), (later, whole[written.start :])):
        text, dropped = _read_on(work, name, start)
        if text != wanted or dropped:
            raise Violation(
                f"from cursor {start} on there came "
                f"{difference(text.encode(), wanted.encode())}, and {dropped} were dropped",
                remedy="count cursors in bytes, and give what is after them whole and once",
            )


_DIGEST = """
import hashlib, sys
data = sys.stdin.buffer.read()
print(hashlib.sha256(data).hexdigest(), len(data))
"""


@side_by_side
@verifies(PRC_03)
@background
@pytest.mark.parametrize("length", [40, 300_000])
def test_what_is_written_arrives_at_the_standard_input(target: Target, length: int) -> None:
    """What is written to a process is what it reads, and `close` ends its input."""
    text = ("\u00e9\u20ac '\"\\ %s\r\n" * length)[:length]
    with at_work(target) as work:
        name = work.start("python3", "-I", "-c", _DIGEST).id
        work.call("process.write", name, text[: length // 2])
        work.call("process.write", name, text[length // 2 :], close=True)
        output = work.until(name, lambda output: output.exit_code is not None)
    data = text.encode()
    wanted = [hashlib.sha256(data).hexdigest(), str(len(data))]
    if output is None or output.text.split() != wanted:
        got = "nothing" if output is None else output.text[-100:]
        raise Violation(
            f"of {len(data)} bytes written and a close a process read {got!r}",
            remedy="hand commands of any length through whole",
        )


@side_by_side
@verifies(PRC_03)
@background
def test_the_exit_code_of_a_process_is_kept(target: Target) -> None:
    """The exit code of a process is kept, and so is that of a signal, as 128 and its number."""
    ways = {f"exit {code}": code for code in (0, 1, 7, 124, 255)} | {"kill -9 $$": 137}
    with at_work(target) as work:
        names = {work.start("sh", "-c", way).id: way for way in ways}
        for name, way in names.items():
            output = work.until(name, lambda output: output.exit_code is not None)
            listed = work.listed(name)
            got = [one and one.exit_code for one in (output, listed)]
            if got != [ways[way]] * 2:
                raise Violation(
                    f"a process that ran {way!r} has the exit code {got[0]}, and {got[1]} in the "
                    "list",
                    remedy="keep the exit code of each process",
                )


_HANDLER = "trap 'echo handled; exit 9' TERM; echo ready; while :; do sleep 0.1; done"
_DEAF = "trap '' TERM; echo ready; i=0; while [ $i -lt 200 ]; do sleep 0.1; i=$((i+1)); done"


@side_by_side
@verifies(PRC_03)
@background
def test_stopping_a_process_ends_all_that_it_started(target: Target) -> None:
    """`stop` sends SIGTERM, which a process may handle, then SIGKILL, and ends the whole tree."""
    beats = f"beats-{secrets.token_hex(4)}"
    with at_work(target) as work:
        box = target.box(work.session.sandbox)
        commands = (surviving.tree(beats), ["sh", "-c", _HANDLER], ["sh", "-c", _DEAF])
        names = [work.start(*words).id for words in commands]
        surviving.begin(box, beats)
        for name in names[1:]:
            work.says(name, "ready\n")
        control, took = ControlWait(BOUNDS.kill), _stop_all(work, names)
        handled = work.output(names[1])
        going = surviving.growing(box, beats)
    tree, _, deaf = (took[name] for name in names)
    late = max(tree, deaf) > BOUNDS.kill + BOUNDS.slack
    if late:
        control.blame_the_sandbox()
    if going or late or deaf < BOUNDS.kill * 0.95:
        raise Violation(
            f"stop took {tree:.1f} s for a process and its children, of which there went on "
            f"{', '.join(going) or 'none'}, and {deaf:.1f} s for one that is deaf to SIGTERM",
            remedy="let /proc be seen and commands run on, so that all is found, and killed 5 s "
            "after it was asked to end",
        )
    if handled.exit_code != 9 or "handled" not in handled.text:
        raise Violation(
            f"a process with a handler for SIGTERM ended with {handled.exit_code} and wrote "
            f"{handled.text!r}",
            remedy="start commands with the default handling of SIGTERM, and ask before killing",
        )


def _stop_all(work: AtWork, names: list[str]) -> dict[str, float]:
    """Stop processes side by side, and give how long each took."""
    took: dict[str, float] = {}
    failed: list[Exception] = []

    def stop(name: str) -> None:
        began = time.monotonic()
        try:
            work.call("process.stop", name)
        except Exception as error:  # noqa: BLE001 - raised below, where the check is
            failed.append(error)
        took[name] = time.monotonic() - began

    threads = [threading.Thread(target=stop, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUNDS.execute(BOUNDS.unlimited) + BOUNDS.slack)
    if failed:
        raise failed[0]
    return took


def _is_refused(work: AtWork, tool: str, arguments: tuple[object, ...], word: str) -> None:
    try:
        got = work.call(tool, *arguments)
    except BackgroundProcessError as error:
        if word not in str(error):
            raise Violation(f"{tool}{arguments} raised {error}", remedy=_CLEAR) from error
        return
    raise Violation(f"{tool}{arguments} gave {got!r}", remedy=_CLEAR)


_CLEAR = "refuse what cannot be, and say what it was"


@side_by_side
@verifies(PRC_06)
@background
def test_what_cannot_be_is_refused_and_named(target: Target) -> None:
    """Unknown ids, bad cursors and closed inputs give an error that says what is wrong."""
    with at_work(target) as work:
        name = work.start("sh", "-c", "echo text").id
        ended = work.until(name, lambda output: output.exit_code is not None)
        end = 5 if ended is None else ended.cursor
        live = work.start("sh", "-c", "read line; read line; sleep 1").id
        work.call("process.write", live, "one\n", close=True)
        no = f"process-{secrets.token_hex(3)}"
        for call, arguments, word in (
            *(("output", (name, cursor), str(cursor)) for cursor in (-1, end + 1, 10**9)),
            *(("output", (no,), no), ("stop", (no,), no), ("write", (no, "text"), no)),
            *(("write", (one, "two\n"), one) for one in (name, live)),
        ):
            _is_refused(work, f"process.{call}", arguments, word)
        if text := work.output(name, end).text:
            raise Violation(f"the cursor at the end gave {text!r}", remedy=_CLEAR)


_FLOOD = 8_000_000
_MOST_KEPT = 6_000_000


_NUMBERS = """
import sys
for number in range(int(sys.argv[1])):
    sys.stdout.write(f"{number:07}\\n")
"""


@side_by_side
@verifies(PRC_06)
@background
def test_what_is_kept_of_a_flood_is_bounded_and_the_rest_is_counted(target: Target) -> None:
    """Of endless output a bounded part is kept, its end, and what was dropped is counted."""
    with at_work(target) as work:
        name = work.start("python3", "-I", "-c", _NUMBERS, str(_FLOOD // 8)).id
        if work.until(name, lambda output: output.exit_code is not None, seconds=30) is None:
            raise Violation("a process that writes 8 MB did not end", remedy="read on, and drop")
        output = work.output(name)
        listed = work.listed(name)
    end = 0 if listed is None else listed.cursor
    if end != _FLOOD or end - output.dropped > _MOST_KEPT:
        raise Violation(
            f"of {_FLOOD} bytes {output.dropped} were said to be dropped, and the end to be {end}",
            remedy="keep the last part of what a process writes, and say how much was dropped",
        )
    first = output.cursor - len(output.text.encode())
    numbers = range(first // 8, output.cursor // 8 + 1)
    wanted = "".join(f"{number:07}\n" for number in numbers)[first % 8 :]
    if first != output.dropped or not output.text or not wanted.startswith(output.text):
        raise Violation(
            f"after {output.dropped} dropped bytes there came {output.text[:16]!r} at {first}, "
            f"not {wanted[:16]!r}",
            remedy="count cursors on across what was dropped, and give what is there now",
        )
