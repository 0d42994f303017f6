"""LIF: what two sessions see of each other."""

from __future__ import annotations

import secrets
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from conformance.marks import needs, side_by_side, verifies
from conformance.probes.declared import said
from conformance.probes.many import needs_many
from conformance.requirements import LIF_04
from conformance.subject.blame import shown
from conformance.verdicts import NotApplicable, NotRun, Violation
from sandboxes.contract import SandboxStartError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.subject.facade import Box
    from conformance.subject.targets import Target

_SECONDS = 20.0
_REMEDY = "give each session a file system, processes and an environment of its own"


@dataclass(frozen=True)
class _Pair:
    """Two sessions beside each other, and a word that the first one leaves everywhere."""

    first: Box
    second: Box
    word: str

    def unseen(self, command: str, what: str) -> None:
        """Judge that a command of the second session shows nothing of the first.

        Raises:
            Violation: It does.
        """
        if self.word in said(self.second, command):
            raise Violation(
                f"a session saw {what} of another one by {command[:120]!r}", remedy=_REMEDY
            )


@contextmanager
def _two(target: Target) -> Iterator[_Pair]:
    needs_many(target)
    with target.open() as first, target.open() as second:
        yield _Pair(first, second, f"word-{secrets.token_hex(8)}")


@verifies(LIF_04)
@needs(opens=True)
def test_sessions_have_workspaces_of_their_own(target: Target) -> None:
    """Neither commands nor file calls of a session find what another one has in its workspace."""
    with _two(target) as pair:
        pair.first.execute(f"printf %s {pair.word} > by-command", timeout_seconds=_SECONDS)
        pair.first.write_file("by-call", pair.word.encode())
        if pair.word not in said(pair.first, "cat by-command"):
            raise NotRun("no command finds what one before it wrote, so nothing tells: see EXE-06")
        for name in ("by-command", "by-call"):
            pair.unseen(f"cat {name}", "a file in the workspace")
            try:
                found = pair.second.read_file(name)
            except OSError:
                continue
            if pair.word.encode() in found:
                raise Violation(f"read_file({name!r}) gave another session's file", remedy=_REMEDY)
        pair.second.write_file("by-call", b"of the second")
        if pair.first.read_file("by-call") != pair.word.encode():
            raise Violation("a session wrote to another one's file", remedy=_REMEDY)


# A session id each, and one that is easily taken for the same.
_ALIKE = {
    "in the end of a long id": (f"{'long' * 15}-1", f"{'long' * 15}-2"),
    "in the case of a letter": ("alike-a", "alike-A"),
    "in a sign": ("alike-a_b", "alike-a-b"),
    "in where a part of it ends": ("alike-1-11", "alike-11-1"),
}


@verifies(LIF_04)
@needs(opens=True)
@pytest.mark.parametrize("what", _ALIKE)
def test_sessions_whose_ids_are_alike_are_two(target: Target, what: str) -> None:
    """Sessions are different ones where their ids differ in anything."""
    needs_many(target)
    token = secrets.token_hex(4)
    one, other = (f"{token}-{name}" for name in _ALIKE[what])
    for name in (one, other):
        _opens(target, name)
    with target.open(session_id=one) as first:
        first.write_file("of-one", token.encode())
        try:
            with target.open(session_id=other) as second:
                seen = said(second, "cat of-one")
        except Violation:
            raise
        except Exception as error:
            raise Violation(
                f"beside session {one!r}, {other!r} raised {shown(error)}, alone it opens",
                remedy=_REMEDY,
            ) from error
        if token in seen or first.read_file("of-one") != token.encode():
            raise Violation(
                f"the sessions {one!r} and {other!r} had one workspace",
                remedy="name what belongs to a session by the whole of its id, as it is",
            )


def _opens(target: Target, session_id: str) -> None:
    """Leave ids out that a sandbox refuses."""
    try:
        with target.open(session_id=session_id):
            pass
    except SandboxStartError as error:
        raise NotApplicable(f"it takes no session id such as {session_id!r}") from error


# Every folder near the root that takes a file.
_EVERYWHERE = (
    'for d in / /* /*/*; do case "$d" in /proc*|/sys*|/dev/fd*) ;; '
    '*) [ -d "$d" ] && printf %s WORD > "$d/WORD.0" ;; esac; done'
)


@verifies(LIF_04)
@needs(opens=True, isolated=True)
def test_isolated_sessions_find_no_file_of_each_other(target: Target) -> None:
    """With isolation, a session finds another one's files nowhere, by name or by path."""
    with _two(target) as pair:
        places = ["/tmp", "/var/tmp", "/dev/shm", "$HOME", "."]  # noqa: S108 - inside
        for number, place in enumerate(places):
            said(pair.first, f"printf %s {pair.word} > {place}/{pair.word}.{number}")
        where = said(pair.first, "pwd").strip() or "."
        for number, place in enumerate([*places[:-1], where]):
            pair.unseen(f"cat {place}/{pair.word}.{number}", "a file")
        # Its name may be anywhere: what is searched for is no part of an error message.
        said(pair.first, _EVERYWHERE.replace("WORD", pair.word))
        search = f"find / -maxdepth 5 -name '{pair.word}*' -exec cat {{}} ';'"
        if pair.word in said(pair.first, search):
            pair.unseen(search, "a file")


@verifies(LIF_04)
@needs(opens=True)
def test_sessions_do_not_see_each_others_variables(target: Target) -> None:
    """What a session exports is in no other session's environment."""
    with _two(target) as pair:
        pair.first.execute(f"export CONFORMANCE_WORD={pair.word}; true", timeout_seconds=_SECONDS)
        pair.unseen('env; printf %s "$CONFORMANCE_WORD"', "a variable")


@verifies(LIF_04)
@needs(opens=True, isolated=True, processes=True)
def test_isolated_sessions_do_not_see_each_others_processes(target: Target) -> None:
    """With isolation, no process of a session is in sight of another one."""
    look = "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ | tr '\\0' '\\n'"
    with _two(target) as pair:
        line = f"CONFORMANCE_WORD={pair.word} sleep 4"
        command = threading.Thread(
            target=lambda: pair.first.execute(line, timeout_seconds=2), daemon=True
        )
        command.start()
        pair.unseen(f"sleep 0.5; {look}", "a process")
        command.join(_SECONDS)


@side_by_side
@verifies(LIF_04)
@needs(opens=True)
def test_each_session_gets_the_output_of_its_own_commands(target: Target) -> None:
    """Commands that run in two sessions at a time give each what it wrote itself."""
    with _two(target) as pair:
        for turn in range(3):
            got: dict[int, str] = {}

            def run(number: int, box: Box, turn: int = turn, got: dict[int, str] = got) -> None:
                line = f"echo begin-{number}-{turn}; sleep 0.2; echo end-{number}-{turn}"
                got[number] = box.execute(line, timeout_seconds=_SECONDS).stdout

            both = [
                threading.Thread(target=run, args=(number, box), daemon=True)
                for number, box in enumerate((pair.first, pair.second))
            ]
            for one in both:
                one.start()
            for one in both:
                one.join(_SECONDS + 10)
            for number in range(2):
                words = got.get(number, "").split()
                if words != [f"begin-{number}-{turn}", f"end-{number}-{turn}"]:
                    raise Violation(
                        f"with a command of another session beside it, one gave {words}",
                        remedy="keep what belongs to one session apart from every other",
                    )
