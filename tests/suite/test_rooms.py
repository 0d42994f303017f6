"""Checks that must be alone in the lab are made in a row, which has the lab from end to end."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from conformance.run import rooms
from conformance.run.rooms import Rooms

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from conformance.run.stash import Run
    from tests.suite.conftest import Runner


def _item(*, alone: bool) -> Any:
    return SimpleNamespace(get_closest_marker=lambda name: (alone and name == "alone") or None)


def _events(*checks: bool) -> list[str]:
    """What happens while checks are made that are to be alone, or are not."""
    events: list[str] = []

    @contextmanager
    def alone() -> Iterator[None]:
        events.append("have")
        yield
        events.append("leave")

    made = Rooms(cast("Run", SimpleNamespace(laboratory=SimpleNamespace(alone=alone))))
    items = [_item(alone=one) for one in checks]
    for place, (item, following) in enumerate(zip(items, [*items[1:], None], strict=True)):
        made.pytest_runtest_setup(item)
        events.append(f"check {place}")
        events.extend(f"fixtures {place}" for _ in made.pytest_runtest_teardown(following))
    return events


def test_a_row_has_the_lab_from_its_first_check_to_the_fixtures_of_its_last() -> None:
    assert _events(True, True, False) == [
        *("have", "check 0", "fixtures 0", "check 1", "fixtures 1", "leave"),
        *("check 2", "fixtures 2"),
    ]
    assert _events(True)[-1] == "leave"  # the last of all


def test_a_long_row_lets_the_others_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "HOLD_SECONDS", 0.0)
    assert _events(True, True).count("leave") == 2


def test_they_come_first_and_to_one_worker(runner: Runner) -> None:
    checks = """
    from conformance.marks import alone

    def note(word):
        with open("notes", "a") as file:
            file.write(f"{word} {os.getpid()}\\n")

    @verifies(EXE_01)
    @pytest.mark.parametrize("number", range(30))
    def test_beside_others(target, number):
        note("beside")

    @verifies(EXE_02)
    @alone
    @pytest.mark.parametrize("number", range(30))
    def test_needs_the_lab(target, number):
        note("alone")
    """
    finished = runner.supervise(checks, "Right", arguments=["-n", "2"])
    assert finished.verdicts == {"EXE-01": "pass", "EXE-02": "pass"}
    notes = [line.split() for line in (runner.folder / "notes").read_text().splitlines()]
    assert len({process for word, process in notes if word == "alone"}) == 1
    worker = next(process for word, process in notes if word == "alone")
    assert [word for word, process in notes if process == worker][:30] == ["alone"] * 30
