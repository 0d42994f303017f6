"""PRC: processes that go on between the calls of a model, through the tools that it gets."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings

from conformance.bounds import BOUNDS
from conformance.marks import needs, verifies
from conformance.probes import ingredients, surviving
from conformance.probes.at_work import AtWork, at_work
from conformance.probes.choices import networks
from conformance.probes.contents import difference
from conformance.probes.waits import ControlWait
from conformance.requirements import (
    PRC_01,
    PRC_02,
    PRC_03,
    PRC_04,
    PRC_05,
    PRC_06,
    PRC_07,
    reference,
)
from conformance.strategies import processes
from conformance.strategies.each import each
from conformance.subject.blame import shown
from conformance.verdicts import NotApplicable, NotRun, Violation
from sandboxes.contract import BackgroundProcessError
from sandboxes.tools import PROCESS_TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.strategies.processes import Written
    from conformance.subject.targets import Target
    from sandboxes.processes import ProcessOutput

_WITHOUT = ("NoSandbox", "BashkitSandbox")
_REMEDY = "let what Python starts live on, and hand commands and their output through whole"
_READS = 200

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


@verifies(PRC_02)
@background
def test_a_process_is_started_read_written_to_listed_and_stopped(target: Target) -> None:
    """A background process can be started, read, written to, listed and stopped."""
    with at_work(target) as work:
        name = work.start("sh", "-c", 'echo ready; while read line; do echo "got $line"; done').id
        _says(work, name, "ready\n")
        for word in ("one", "two"):
            work.call("process.write", name, f"{word}\n")
            _says(work, name, f"got {word}\n")
        listed = {one.id: one.state for one in work.call("process.list")}
        stopped = work.call("process.stop", name)
        after = {one.id: one.state for one in work.call("process.list")}
    if listed != {name: "running"} or stopped.state == "running" or after != {name: stopped.state}:
        raise Violation(
            f"one process was listed as {listed}, stopped as {stopped.state}, and then {after}",
            remedy=_REMEDY,
        )


def _says(work: AtWork, name: str, text: str) -> ProcessOutput:
    """Wait until a process has written a text.

    Raises:
        Violation: It never does.
    """
    output = work.until(name, lambda output: text in output.text)
    if output is None:
        raise Violation(
            f"a background process never wrote {text!r}, only {work.output(name).text[-200:]!r}",
            remedy=_REMEDY,
        )
    return output


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


@verifies(PRC_03)
@background
def test_stopping_a_process_ends_all_that_it_started(target: Target) -> None:
    """`stop` sends SIGTERM, which a process may handle, then SIGKILL, and ends the whole tree."""
    beats = f"beats-{secrets.token_hex(4)}"
    handler = "trap 'echo handled; exit 9' TERM; echo ready; while :; do sleep 0.1; done"
    deaf = f"trap '' TERM; echo ready; {_FOR_20_SECONDS}"
    with at_work(target) as work:
        box = target.box(work.session.sandbox)
        names = [
            work.start(*words).id
            for words in (surviving.tree(beats), ("sh", "-c", handler), ("sh", "-c", deaf))
        ]
        if not surviving.begun(box, beats):
            raise Violation("a process and its children did not all begin", remedy=_REMEDY)
        for name in names[1:]:
            _says(work, name, "ready\n")
        control, took = ControlWait(BOUNDS.kill), _stop_all(work, names)
        outputs = [work.output(name) for name in names]
        going = surviving.growing(box, beats)
    slow = took[names[0]] > BOUNDS.kill + BOUNDS.slack
    if slow:
        control.blame_the_sandbox()
    if going or slow:
        raise Violation(
            f"stop took {took[names[0]]:.1f} s, and of the process and its children there went on "
            f"{', '.join(going) or 'none'}",
            remedy="let stop find and end what a process started, in whatever session it is",
        )
    if outputs[1].exit_code != 9 or "handled" not in outputs[1].text:
        raise Violation(
            f"a process with a handler for SIGTERM was stopped with {outputs[1].exit_code} after "
            f"{took[names[1]]:.1f} s, and its handler wrote {outputs[1].text!r}",
            remedy="start commands with the default handling of SIGTERM, and ask before killing",
        )
    if not BOUNDS.kill * 0.95 <= took[names[2]] <= BOUNDS.kill + BOUNDS.slack:
        control.blame_the_sandbox()
        raise Violation(
            f"a process deaf to SIGTERM was stopped after {took[names[2]]:.1f} s, with "
            f"{outputs[2].exit_code}",
            remedy="send SIGKILL 5 seconds after SIGTERM, and let commands that long run",
        )


_FOR_20_SECONDS = "i=0; while [ $i -lt 200 ]; do sleep 0.1; i=$((i+1)); done"


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
            raise Violation("a process that exits at once did not end", remedy=_REMEDY)
        self.cursor = _says(work, self.live, "begun\n").cursor

    def find(self, work: AtWork) -> None:
        """Find both as they were, the first ended and the second waiting."""
        listed = {one.id: (one.state, one.exit_code) for one in work.call("process.list")}
        wanted = {self.done: ("exited", 3), self.live: ("running", None)}
        if listed != wanted or (done := work.output(self.done)).text != "done\n":
            got = listed if listed != wanted else done.text
            raise Violation(f"a later turn found {got!r}, not {wanted}", remedy=_KEEP)
        work.call("process.write", self.live, "later\n")
        _says(work, self.live, "later\n")
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
        if not surviving.begun(box, beats):
            raise Violation("a process and its children did not all begin", remedy=_REMEDY)
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


def _is_refused(work: AtWork, tool: str, arguments: tuple[object, ...], word: str) -> None:
    try:
        got = work.call(tool, *arguments)
    except BackgroundProcessError as error:
        if word not in str(error):
            raise Violation(f"{tool}{arguments} raised {error}", remedy=_CLEAR) from error
        return
    raise Violation(f"{tool}{arguments} gave {got!r}", remedy=_CLEAR)


_CLEAR = "refuse what cannot be, and say what it was"


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
