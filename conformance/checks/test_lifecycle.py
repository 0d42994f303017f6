"""LIF: what a session creates, how long it lives, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st

from conformance.bounds import BOUNDS
from conformance.marks import alone, needs, verifies
from conformance.probes.leftovers import OPENED_KINDS, counting, keeps_files
from conformance.probes.overruns import can_cancel
from conformance.probes.waits import ControlWait
from conformance.requirements import LIF_01, LIF_02, LIF_19
from conformance.strategies.costly import few_examples
from conformance.verdicts import Violation
from sandboxes.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.lab.client import Lab
    from conformance.subject.facade import Box
    from conformance.subject.targets import Target
    from sandboxes.contract import RunningSandbox

_IDLE_SECONDS = 0.4
_STAYS = 60
# A child of a command that has ended, deaf to what a terminal says when it goes.
_STAY_BEHIND = f"(trap '' HUP; sleep {_STAYS}) >/dev/null 2>&1 &"
# Goes on making files: who deletes first and ends it later has them again.
_KEEP_ON = 'i=0; while [ $i -lt 300 ]; do mkdir -p "$PWD/again"; sleep 0.2; i=$((i+1)); done'
# In a session of its own: only where it may live on is it the sandbox's to find again.
_STAY_APART = f"(command -v setsid && setsid sh -c '{_KEEP_ON}' || true) >/dev/null 2>&1 &"
# Names, links and folders that a careless way to delete leaves out or stumbles over.
_AWKWARD = (
    "mkdir -p .hidden/deep 'with space' locked; printf x > .hidden/.file; printf x > ./-rf; "
    "ln -s .hidden linked; ln -s nowhere dangling; printf x > locked/file; chmod 500 locked"
)


def _starting_children(target: Target) -> str:
    if not target.declared.fact("has_processes"):
        return "true"
    if not target.declared.fact("supports_background_processes"):
        return f"{_STAY_BEHIND} true"
    # It takes a moment to get into its own session, out of the group that ends with the command.
    return f"{_STAY_BEHIND} {_STAY_APART} sleep 0.3"


def _is_alive(read: bytes, token: str, when: str) -> None:
    if read != token.encode():
        raise Violation(
            f"{when} a file of the session holds {read!r}, not what its first command wrote",
            remedy="keep the sandbox from the start of its session to the close",
        )


@verifies(LIF_01)
@needs(opens=True)
@alone
def test_a_sandbox_lives_from_its_start_to_its_close_and_is_deleted_then(
    target: Target, lab: Lab
) -> None:
    """What a session made is there until its close, and gone after it, processes included."""
    token = f"lives{secrets.token_hex(4)}"
    with counting(target, lab) as left:
        with target.open() as other:  # what it lists is shared, or another check's
            shared = set(other.inventory())
        with target.session() as box:
            box.execute(f"printf %s {token} > {token}")
            box.execute(_starting_children(target), timeout_seconds=5)
            box.execute(_AWKWARD)
            listed = set(box.inventory()) - shared
            time.sleep(_IDLE_SECONDS)
            _is_alive(box.read_file(token), token, "after a pause")
            _is_alive(box.execute(f"cat {token}").stdout.encode(), token, "after that")
            running = box.running
    left.judge("after the close")
    still = set()
    if listed and not keeps_files(target):
        with suppress(Exception):  # a closed sandbox need not answer
            still |= listed & set(target.box(running).inventory())
        with target.open() as another:
            still |= listed & set(another.inventory())
    if still:
        raise Violation(
            f"after the close the inventory still has {', '.join(sorted(still))}",
            remedy="delete what the sandbox consists of, stopped or not",
        )


_SESSIONS = 4


@verifies(LIF_19)
@needs(opens=True)
@alone
def test_nothing_is_left_after_the_close(target: Target, lab: Lab) -> None:
    """After the close no process, folder, mount, socket, open file, task or thread is left."""
    _sessions(target, ending_early=1)  # so that pools have their size
    with counting(target, lab, sessions=_SESSIONS) as left:
        _sessions(target, ending_early=_SESSIONS)
    left.judge(f"after {_SESSIONS} sessions")


def _sessions(target: Target, ending_early: int) -> None:
    for number in range(_SESSIONS):
        with target.session() as box:
            box.write_file("used", b"x" * number)
            with suppress(FileNotFoundError):
                box.read_file("there-is-none")
            box.execute("cat used; exit 3")
            box.execute(f"cat used # {'a comment ' * 10_000}")
            if number < ending_early:
                with suppress(Exception):  # what becomes of the calls is for other rules
                    _end_early(box)


def _end_early(box: Box) -> None:
    """Let a command run into its limit, and cancel the caller of another one."""
    late = box.begin("sleep 20", timeout_seconds=0.3)
    cancelled = box.begin("sleep 20", timeout_seconds=60) if can_cancel(box) else None
    time.sleep(0.3)
    if cancelled is not None:
        cancelled.cancel()
        cancelled.result(BOUNDS.kill + BOUNDS.slack)
    late.result(BOUNDS.execute(0.3))


@verifies(LIF_02)
@needs(opens=True)
@alone
def test_a_start_that_fails_leaves_nothing(target: Target, lab: Lab) -> None:
    """A sandbox that could not be created leaves nothing."""
    where = Path("/nonexistent/certificates.pem")
    with counting(target, lab) as left:
        for session_id, ca_bundle in (("../a", None), ("a\nb", None), ("", None), ("", where)):
            with suppress(Exception):  # whether it starts is up to the sandbox
                _open_once(target, session_id, ca_bundle)
        same = f"twice-{secrets.token_hex(4)}"
        with target.open(session_id=same), suppress(Exception), target.open(session_id=same):
            pass
    left.judge("after starts that failed")


def _open_once(target: Target, session_id: str, ca_bundle: Path | None) -> None:
    sandbox, request = target.build(), target.request()
    if ca_bundle is None:
        request = replace(request, session_id=session_id)
    else:
        request = replace(request, ca_bundle=ca_bundle)

    async def enter() -> None:
        async with sandbox.open(request):
            pass

    target.run(enter, "open()")


@dataclass(frozen=True)
class _Point:
    """When a life is cancelled: after so many turns of the loop, or a share of its length.

    Attributes:
        turns: How many turns.
        share: Which share.
        bare: Whether it is the sandbox's `open` without a session around it.
    """

    turns: int = 0
    share: float = 0.0
    bare: bool = False


points = st.builds(_Point, turns=st.integers(0, 40), bare=st.booleans()) | st.builds(
    _Point, share=st.floats(0, 1.1), bare=st.booleans()
)
_MANY = 8
_EVERYWHERE = [
    *(_Point(turns=turns) for turns in (0, 1, 2, 4, 8)),
    *(_Point(share=share) for share in (0.1, 0.4, 0.8)),
    *(_Point(share=share, bare=True) for share in (0.2, 0.5, 0.75, 0.95)),
]
_LET_GO = "let a cancellation end what is under way, clean up, and pass it on"


async def _used(box: RunningSandbox) -> None:
    await box.write_file("used", b"x")
    await box.execute("cat used; sleep 0.1")


async def _life(target: Target, *, bare: bool) -> None:
    """Open a sandbox, use it, and close it."""
    sandbox, request = target.build(), target.request()
    if bare:
        async with sandbox.open(request) as running:
            await _used(running)
    else:
        async with await Session.start(sandbox, request) as session:
            await _used(session.sandbox)


async def _cancelled(target: Target, point: _Point, whole: float) -> bool:
    """Cancel a life at this point; whether it ended."""
    life = asyncio.create_task(_life(target, bare=point.bare))
    for _ in range(point.turns):
        await asyncio.sleep(0)
    if point.share:
        await asyncio.sleep(point.share * whole)
    life.cancel()
    done, _ = await asyncio.wait({life}, timeout=BOUNDS.kill + BOUNDS.slack)
    if done and not life.cancelled():
        life.exception()  # retrieved: what it raised instead is another rule's
    return bool(done)


@verifies(LIF_02)
@needs(opens=True)
@alone
@few_examples()
@given(points=st.lists(points, min_size=_MANY, max_size=_MANY))
@example(points=_EVERYWHERE)
def test_a_cancellation_at_any_point_leaves_nothing(
    target: Target, lab: Lab, points: Sequence[_Point]
) -> None:
    """A session that is cancelled at any point of its life ends, and leaves nothing."""
    began = time.monotonic()
    target.run(lambda: _life(target, bare=False), "a session")
    whole = time.monotonic() - began

    async def all_of_them() -> list[bool]:
        return await asyncio.gather(*(_cancelled(target, point, whole) for point in points))

    with counting(target, lab, OPENED_KINDS) as left:
        control = ControlWait(0.1)
        ended = target.run(all_of_them, "sessions that are cancelled")
    if not all(ended):
        control.blame_the_sandbox()
        late = next(point for point, done in zip(points, ended, strict=True) if not done)
        raise Violation(f"a session that was cancelled at {late} did not end", remedy=_LET_GO)
    left.judge(f"after {len(points)} sessions that were cancelled", _LET_GO)
