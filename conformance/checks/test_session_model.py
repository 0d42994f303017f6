"""EXE-06: sessions that are used in any order, beside a plain model of their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from conformance.marks import needs, verifies
from conformance.probes.many import needs_many
from conformance.probes.session_model import SessionModel
from conformance.requirements import EXE_06

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.subject.targets import Target

_STEPS = 12
# One life has many steps.
_LIVES_PER_EXAMPLE = 3


def _by_turns(model: SessionModel) -> None:
    model.write("a", "ab\n")
    model.show("a")
    model.overwrite("a", "c")
    model.read("a")
    model.append("a", "\n\n")
    model.look_at_all()
    model.remove("a")
    model.look_at_all()
    model.append("a", "b")
    model.write("folder/c", "")
    model.look_at_all()


def _after_a_limit(model: SessionModel) -> None:
    model.write("a", "before")
    model.overwrite("b.txt", "before")
    model.remove("a")
    model.time_out()
    model.look_at_all()


def _after_a_cancelled_command(model: SessionModel) -> None:
    model.write("a", "before")
    model.overwrite("b.txt", "before")
    model.cancel()
    model.look_at_all()


def _beside_another_session(model: SessionModel) -> None:
    model.write("a", "first")
    model.overwrite("b.txt", "first")
    model.open_another()
    model.write("a", "second")
    model.overwrite("folder/c", "second")
    model.look_at_all()
    model.close()
    model.look_at_all()
    model.open_another()
    model.look_at_all()


@pytest.fixture
def many(target: Target) -> None:
    """Its configuration opens several sessions."""
    needs_many(target)


@verifies(EXE_06)
@needs(opens=True)
@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    "story", [_by_turns, _after_a_limit, _after_a_cancelled_command, _beside_another_session]
)
def test_what_was_left_is_there(target: Target, story: Callable[[SessionModel], None]) -> None:
    """Commands, file calls and later commands of a session see the same files, and its own only."""
    model = SessionModel(target)
    try:
        model.open()
        story(model)
    finally:
        model.teardown()


@verifies(EXE_06)
@needs(opens=True)
@pytest.mark.usefixtures("many")
def test_what_was_left_is_there_whatever_came_between(target: Target) -> None:
    """The same in any order of writes, limits, cancelled commands and other sessions."""
    run_state_machine_as_test(
        lambda: SessionModel(target),  # type: ignore[arg-type]  # whatever makes one will do
        settings=settings(
            max_examples=settings().max_examples // _LIVES_PER_EXAMPLE, stateful_step_count=_STEPS
        ),
    )
