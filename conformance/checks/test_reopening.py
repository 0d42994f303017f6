"""CFG-13: one configuration, and the sessions that it opens."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from conformance.marks import needs, verifies
from conformance.probes.many import needs_many
from conformance.requirements import CFG_13
from conformance.strategies.costly import half_the_examples
from conformance.strategies.each import each
from conformance.subject.blame import shown
from conformance.verdicts import NotRun, Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.subject.facade import Box
    from conformance.subject.targets import Target
    from sandboxes.contract import Sandbox

_REMEDY = "make in open() whatever belongs to one session, and keep nothing of it in the sandbox"

# Each number is a session that is opened by its first turn, closed by its second, and so on.
_AFTER, _BESIDE, _AROUND = (0,) * 7, (0, 1, 0, 1, 2), (0, 1, 2, 2, 1, 0)
# A quota is a number like any other; more than these show nothing that costs less.
_AT_ONCE, _IN_ALL = 4, 12
turns = st.lists(st.integers(0, 2), min_size=2, max_size=5)


@dataclass(frozen=True)
class _Session:
    """A session that left files under a name and in the temporary folder."""

    box: Box
    stack: ExitStack
    name: str
    content: str

    @property
    def files(self) -> str:
        return f"{self.name} /tmp/{self.name}"


def _opened(target: Target, sandbox: Sandbox, stack: ExitStack, before: str) -> _Session:
    own = stack.enter_context(ExitStack())
    try:
        box = own.enter_context(target.enter(sandbox))
    except Violation:
        raise
    except Exception as error:
        raise Violation(
            f"{before} the configuration did not open: {shown(error)}", remedy=_REMEDY
        ) from error
    session = _Session(box, own, f"kept-{secrets.token_hex(4)}", secrets.token_hex(8))
    # Without isolation the temporary folder is the host's own.
    places = session.files.split()[: 2 if target.declared.fact("isolated") else 1]
    box.execute("; ".join(f"printf %s {session.content} > {place}" for place in places))
    return session


def _is_its_own(session: _Session, others: Sequence[_Session], now: str, *, alone: bool) -> None:
    """A session still has its file, and none of the others'."""
    files = " ".join([session.name, *(other.files for other in others)])
    try:
        text = session.box.execute(f"cat {files}").stdout
    except Violation:
        raise
    except Exception as error:
        raise Violation(f"{now} a session raised {shown(error)}", remedy=_REMEDY) from error
    if session.content not in text:
        if alone:
            raise NotRun("no command finds what one before it wrote, so nothing tells: see EXE-06")
        raise Violation(f"{now} a session no longer found its own file", remedy=_REMEDY)
    if any(other.content in text for other in others):
        raise Violation(f"{now} a session found the file of another one", remedy=_REMEDY)


def _names_nothing(target: Target) -> None:
    needs_many(target)


@verifies(CFG_13)
@needs(opens=True)
@half_the_examples()
@given(turns=turns)
@each("turns", (_AFTER, _BESIDE, _AROUND))
def test_one_configuration_opens_any_number_of_sessions(
    target: Target, turns: Sequence[int]
) -> None:
    """One configuration opens sessions after and beside each other, each usable, each its own."""
    _names_nothing(target)
    sandbox, isolated = target.build(), target.declared.fact("isolated")
    live: dict[int, _Session] = {}
    all_of_them: list[_Session] = []
    done = "with no session before"

    def look_at(*sessions: _Session) -> None:
        for session in sessions:
            others = [one for one in all_of_them if one is not session]
            _is_its_own(session, others if isolated else [], done, alone=not others)

    with ExitStack() as stack:
        for turn in turns:
            opens = turn not in live
            if opens:
                live[turn] = _opened(target, sandbox, stack, done)
                all_of_them.append(live[turn])
            else:
                live.pop(turn).stack.close()
            done = f"with {len(all_of_them)} sessions opened and {len(live)} of them open,"
            # The others are looked at when one was closed: a command may be costly.
            look_at(*([live[turn]] if opens else live.values()))
        look_at(*live.values())


@verifies(CFG_13)
@needs(opens=True)
def test_one_configuration_has_no_quota(target: Target) -> None:
    """One configuration opens sessions in the same moment, and many beside and after those."""
    _names_nothing(target)
    sandbox = target.build()
    ran = [_lives(target, sandbox, 0)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        ran += pool.map(lambda number: _lives(target, sandbox, number), range(1, _AT_ONCE + 1))
    with ExitStack() as stack:
        ran += [_lives(target, sandbox, number, stack) for number in range(_AT_ONCE + 1, _IN_ALL)]
    if not all(ran):
        raise NotRun("a command did not print what it was to, so nothing tells: see EXE-01")


def _lives(target: Target, sandbox: Sandbox, number: int, stack: ExitStack | None = None) -> bool:
    """Open a session, until the stack is closed if there is one, and let a command run."""
    try:
        with ExitStack() as own:
            box = (stack or own).enter_context(target.enter(sandbox))
            return f"lives{number + 1}" in box.execute(f"echo lives$(({number} + 1))").stdout
    except Violation:
        raise
    except Exception as error:
        how = "beside those before it" if stack else f"with {_AT_ONCE} of them at once"
        raise Violation(
            f"session {number + 1}, opened {how}, raised {shown(error)}", remedy=_REMEDY
        ) from error
