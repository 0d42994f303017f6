from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.bounds import Bounds
from conformance.run import examples
from conformance.run.examples import counted, failing_example
from conformance.run.laboratory import Laboratory
from conformance.run.progress import CheckResult, Progress
from conformance.verdicts import HarnessError, Violation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

quick = settings(max_examples=40, deadline=None, database=None, derandomize=True)


def make(check: Callable[[], None], folder: Path) -> tuple[CheckResult, BaseException | None]:
    item: Any = SimpleNamespace(obj=check, nodeid="a check")
    result = CheckResult(nodeid="a check")
    raised: BaseException | None = None
    try:
        with counted(item, result, Laboratory("off"), Progress(folder / "progress")):
            check()
    except (Violation, HarnessError) as error:
        raised = error
    return result, raised


@quick
@given(number=st.integers(0, 10**9))
def holds(number: int) -> None:
    assert number >= 0


@quick
@given(number=st.integers(0, 10**9))
def breaks_slowly(number: int) -> None:
    time.sleep(0.02)
    if number >= 10**6 + 7:
        raise Violation(f"broke at {number}")


@quick
@given(number=st.integers())
def cannot_tell(number: int) -> None:
    raise HarnessError("the lab is gone")


def test_examples_are_counted(tmp_path: Path) -> None:
    result, raised = make(holds, tmp_path)
    assert raised is None
    assert result.examples == 40


def test_a_failing_example_is_made_as_small_as_it_gets(tmp_path: Path) -> None:
    result, raised = make(breaks_slowly, tmp_path)
    assert str(raised) == f"broke at {10**6 + 7}"
    assert raised is not None
    assert failing_example(raised) == f"number={10**6 + 7}"
    assert result.examples > 10


def test_making_it_smaller_is_bounded_and_still_gives_a_failing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examples, "BOUNDS", Bounds(shrink=0.1))
    result, raised = make(breaks_slowly, tmp_path)
    assert isinstance(raised, Violation)
    number = int(str(raised).rpartition(" ")[2])
    assert number >= 10**6 + 7
    assert failing_example(raised) == f"number={number}"
    assert result.examples <= 12


def test_a_broken_harness_is_asked_once(tmp_path: Path) -> None:
    result, raised = make(cannot_tell, tmp_path)
    assert isinstance(raised, HarnessError)
    assert result.examples == 1


def test_the_check_is_left_as_it_was(tmp_path: Path) -> None:
    before = holds.hypothesis.inner_test  # type: ignore[attr-defined]
    make(holds, tmp_path)
    assert holds.hypothesis.inner_test is before  # type: ignore[attr-defined]
