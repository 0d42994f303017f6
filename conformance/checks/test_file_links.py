"""FIL: no path and no link leads the file calls of an isolated sandbox to the host."""

from __future__ import annotations

import secrets
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.marks import needs, verifies
from conformance.probes.declared import Canaries, canaries
from conformance.requirements import FIL_04
from conformance.verdicts import NotApplicable, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box

_REMEDY = "resolve every path and link inside the sandbox, where commands resolve it"
_UP = "../" * 16
_SECONDS = 20.0
_RACE_SECONDS = 1.0
_TRIES = 200


def _spellings(place: str) -> Iterator[str]:
    """Give the paths by which a caller may try to come to a place on the host."""
    yield place
    yield _UP + place.lstrip("/")
    yield f"here/{_UP}{place.lstrip('/')}"
    yield f"/{_UP}{place.lstrip('/')}"
    for folder in ("/workspace", "/tmp", "/home/user", "/root"):  # noqa: S108 - names inside
        yield f"{folder}/{_UP}{place.lstrip('/')}"
    yield f"//{place.lstrip('/')}"
    yield f"file://{place}"
    yield f"/proc/self/root{place}"
    yield f"/proc/self/cwd/{_UP}{place.lstrip('/')}"
    if Path(place).is_relative_to(Path.home()):
        yield f"~/{Path(place).relative_to(Path.home())}"


class _Outside:
    """Files of the host that nothing of the sandbox may touch."""

    def __init__(self, there: Canaries) -> None:
        self._there = there
        self.files = [place for place in there.places if not place.startswith("/proc/")]

    def reads(self, box: Box, path: str, how: str) -> None:
        """Judge that reading a path gives nothing of theirs.

        Raises:
            Violation: It does.
        """
        try:
            data = box.read_file(path)
        except Violation:
            raise
        except Exception:  # noqa: BLE001 - any error is a refusal
            return
        if self._there.token.encode() in data:
            raise Violation(f"read_file({path!r}) read a file of the host {how}", remedy=_REMEDY)

    def writes(self, box: Box, path: str, how: str) -> None:
        """Judge that writing to a path changes none of them, and makes none beside them.

        Raises:
            Violation: It does.
        """
        try:
            box.write_file(path, b"touched")
        except Violation:
            raise
        except Exception:  # noqa: BLE001, S110 - any error is a refusal
            pass
        for place in map(Path, self.files):
            try:
                untouched = place.read_text(encoding="utf-8") == self._there.token
            except OSError:
                untouched = False
            if not untouched or [one.name for one in place.parent.iterdir()] != [place.name]:
                raise Violation(
                    f"write_file({path!r}) wrote to {place.parent} of the host {how}",
                    remedy=_REMEDY,
                )


@verifies(FIL_04)
@needs(opens=True, isolated=True)
def test_no_path_leads_to_the_host(inside: Inside) -> None:
    """No absolute path, dot segment or other spelling lets a read or a write touch the host."""
    box = inside.narrowest()
    box.write_file("here/own", b"own")
    with canaries() as there:
        outside = _Outside(there)
        for place in there.places:
            for path in _spellings(place):
                outside.reads(box, path, "by that path")
        for place in outside.files:
            for path in _spellings(place):
                outside.writes(box, path, "by that path")
                outside.writes(box, f"{path}.new", "by that path")
    if box.read_file("here/own") != b"own":
        raise Violation("a file of its own was no longer there", remedy=_REMEDY)


def _linked(box: Box, target: str, name: str, *, hard: bool = False) -> bool:
    """Let a command make a link; whether there is one."""
    made = box.execute(f"ln {'' if hard else '-s'} '{target}' {name}", timeout_seconds=_SECONDS)
    return made.exit_code == 0


@verifies(FIL_04)
@needs(opens=True, isolated=True)
@pytest.mark.parametrize("kind", ["absolute", "relative", "chained", "hard"])
def test_no_link_leads_to_the_host(inside: Inside, kind: str) -> None:
    """No link that a command made lets a read or a write touch the host."""
    box = inside.narrowest()
    made = False
    with canaries() as there:
        outside = _Outside(there)
        for place in outside.files:
            name = f"link-{secrets.token_hex(4)}"
            folder = str(Path(place).parent)
            ends = [place, folder]
            if kind == "relative":
                ends = [_UP + end.lstrip("/") for end in ends]
            elif kind == "chained":
                _linked(box, folder, f"{name}.first")
                ends = [f"{name}.first/canary", f"{name}.first"]
            links = [
                _linked(box, end, f"{name}.{number}", hard=kind == "hard")
                for number, end in enumerate(ends)
            ]
            made = made or any(links)
            for path in (f"{name}.0", f"{name}.1/canary", f"{name}.1/new", f"{name}.0/../canary"):
                outside.reads(box, path, f"through a link ({kind}) that a command had made")
                outside.writes(box, path, f"through a link ({kind}) that a command had made")
    if not made:
        raise NotApplicable(f"no command inside makes a link ({kind}) out of the workspace")


@verifies(FIL_04)
@needs(opens=True, isolated=True)
def test_no_link_that_takes_a_folders_place_leads_to_the_host(inside: Inside) -> None:
    """A link that a command puts in a folder's place while it is read leads no read to the host."""
    box, name = inside.narrowest(), f"race-{secrets.token_hex(4)}"
    with canaries() as there, ExitStack() as stack:
        outside = _Outside(there)
        box.write_file(f"{name}/canary", b"own")
        if not _linked(box, str(Path(outside.files[0]).parent), f"{name}.link"):
            raise NotApplicable("no command inside makes a link out of the workspace")
        swap = f"mv {name} {name}.own; mv {name}.link {name}; sleep 0.02"
        back = f"mv {name} {name}.link; mv {name}.own {name}; sleep 0.02"
        turns = f"i=0; while test $i -lt 60; do {swap}; {back}; i=$((i+1)); done"
        swapping = threading.Thread(
            target=lambda: box.execute(turns, timeout_seconds=_RACE_SECONDS), daemon=True
        )
        swapping.start()
        stack.callback(swapping.join, _SECONDS)
        until = time.monotonic() + _RACE_SECONDS
        for _ in range(_TRIES):
            outside.reads(box, f"{name}/canary", "while a command swapped a folder for a link")
            if time.monotonic() > until:
                break
