"""From what a check raises, through test process and supervisor, to the certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.suite.conftest import subject

if TYPE_CHECKING:
    from tests.suite.conftest import Finished, Runner

CHECKS = """
@verifies(EXE_01)
def test_holds(target):
    with target.open() as box:
        assert box.execute("x").stdout == "x"

@verifies(EXE_02)
def test_breaks(target):
    raise Violation("it lost the code", saw="two packets", remedy="keep it")

@verifies(EXE_03)
def test_asserts(target):
    assert "heard" == "said", "it said something else"

@verifies(EGR_21)
def test_advice(target):
    raise Violation("it asked outside")

@verifies(EGR_16)
def test_advice_to_some(target):
    raise Violation("it reached 10.0.0.1")

@verifies(EXE_04)
def test_not_run(target):
    raise NotRun("no Docker here")

@verifies(EXE_05)
def test_not_applicable(target):
    raise NotApplicable("it has no git")

@verifies(EGR_10)
@needs(network="allow")
def test_declined(target):
    raise AssertionError("unreachable")

@verifies(EXE_06)
def test_harness(target):
    raise HarnessError("the control was late")

@verifies(EXE_07)
def test_our_bug(target):
    return {}["missing"]

@verifies(EXE_08)
def test_subject_raises(target):
    with target.open() as box:
        box.read_file("missing")

@verifies(EXE_09)
def test_subject_raises_as_expected(target):
    with target.open() as box, pytest.raises(FileNotFoundError):
        box.read_file("missing")

@verifies(EXE_10)
@given(number=st.integers(0, 1000))
def test_property(target, number):
    if number >= 17:
        raise Violation(f"it miscounted {number}")

@verifies(EXE_11)
@given(number=st.integers())
def test_property_that_cannot_be_made(target, number):
    raise NotRun("nothing to count with")

calls = []

@verifies(EXE_12)
@given(number=st.just(1))
def test_now_and_then(target, number):
    calls.append(number)
    if len(calls) == 1:
        raise Violation("it leaked once")

@pytest.fixture
def broken():
    raise OSError("no such device")

@verifies(TMO_01)
def test_broken_fixture(target, broken):
    pass

@pytest.fixture
def late():
    yield
    raise Violation("it left a process")

@verifies(TMO_02)
def test_broken_teardown(target, late):
    pass

@verifies(TMO_03)
def test_skipped_and_broken_teardown(target, late):
    raise NotApplicable("no processes")

@verifies(TMO_05, EXE_01)
def test_both(target):
    pass

@verifies(TMO_07)
def test_lab(target, lab):
    pass
"""


@pytest.fixture(scope="module")
def made(module_runner: Runner) -> Finished:
    return module_runner.supervise(CHECKS, "Right", "Private")


@pytest.fixture(scope="module")
def finished(made: Finished) -> Finished:
    made_for_right, _ = made.content
    return type(made)(made.code, made.output, made_for_right)


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("EXE-01", "pass"),
        ("EXE-02", "fail"),
        ("EXE-03", "fail"),
        ("EGR-21", "warn"),
        ("EGR-16", "warn"),
        ("EXE-04", "not run"),
        ("EXE-05", "not applicable"),
        ("EGR-10", "declined"),
        ("EXE-06", "error"),
        ("EXE-07", "error"),
        ("EXE-08", "fail"),
        ("EXE-09", "pass"),
        ("EXE-10", "fail"),
        ("EXE-11", "not run"),
        ("EXE-12", "fail"),
        ("TMO-01", "error"),
        ("TMO-02", "fail"),
        ("TMO-03", "fail"),
        ("TMO-05", "pass"),
        ("TMO-07", "not run"),
    ],
)
def test_each_end_of_a_check_has_its_verdict(finished: Finished, name: str, verdict: str) -> None:
    assert finished.verdicts[name] == verdict


def test_every_check_of_the_run_is_in_the_table_above(finished: Finished) -> None:
    assert len(finished.verdicts) == 20


def test_a_run_with_a_failure_ends_with_1(made: Finished) -> None:
    assert made.code == 1
    assert [entry["outcome"] for entry in made.content] == ["not certified"] * 2


def test_the_level_follows_what_each_subject_declares(made: Finished) -> None:
    levels = [
        entry["level"]
        for certificate in made.content
        for entry in certificate["requirements"]
        if entry["id"] == "EGR-16"
    ]
    assert levels == ["S", "R"]


def test_a_violation_keeps_its_parts(finished: Finished) -> None:
    entry = finished.entry("EXE-02")
    assert entry["message"] == "it lost the code; keep it"
    assert entry["witness"] == "two packets"


def test_a_failing_property_gives_its_smallest_example(finished: Finished) -> None:
    entry = finished.entry("EXE-10")
    assert entry["example"] == "number=17"
    assert entry["message"] == "it miscounted 17"


def test_what_cannot_be_made_is_given_up_at_the_first_example(finished: Finished) -> None:
    assert finished.entry("EXE-11")["examples"] == 1


def test_an_exception_of_the_subject_names_the_call(finished: Finished) -> None:
    message = finished.entry("EXE-08")["message"]
    assert "read_file('missing') raised FileNotFoundError: missing" in message


def test_a_line_to_reproduce_names_subject_requirement_and_seed(finished: Finished) -> None:
    line = finished.entry("EXE-10")["reproduce"]
    assert line.startswith("pytest --sandbox=")
    assert line.endswith(":Right --requirement=EXE-10 --hypothesis-seed=7")


def test_the_summary_tells_breaks_in_full_and_passes_not_at_all(made: Finished) -> None:
    output = made.output.partition("Right: not certified")[2]
    assert "EXE-02 (R) fail" in output
    assert "it did   it lost the code" in output
    assert "lab saw  two packets" in output
    assert "to mend  keep it" in output
    assert "example  number=17" in output
    assert "EXE-01 pass" not in output
    assert "Traceback" not in output
    assert max(len(line) for line in output.splitlines() if "again" not in line) <= 80


def test_requirements_without_a_check_are_planned_and_out_of_scope(finished: Finished) -> None:
    entry = finished.entry("PRC-01")
    assert entry["verdict"] == "not run"
    assert entry["message"].startswith("planned")
    assert "PRC-01" not in finished.content["scope"]


@pytest.mark.parametrize(("strict", "code"), [(False, 0), (True, 1)])
def test_a_partial_run_fails_only_where_a_certificate_is_required(
    runner: Runner, strict: bool, code: int
) -> None:
    checks = """
    @verifies(EXE_01)
    def test_holds(target):
        pass

    @verifies(EXE_02)
    def test_not_run(target):
        raise NotRun("no Docker here")
    """
    finished = runner.supervise(checks, "Right", require_certified=strict)
    assert finished.content["outcome"] == "partial"
    assert finished.code == code


def test_an_error_says_nothing_of_the_sandbox_and_fails_the_run(runner: Runner) -> None:
    checks = """
    @verifies(EXE_01)
    def test_harness(target):
        raise HarnessError("the control was late")
    """
    finished = runner.supervise(checks, "Right")
    assert finished.content["outcome"] == "partial"
    assert finished.code == 1


def test_what_the_user_deselects_is_not_run(runner: Runner) -> None:
    checks = """
    @verifies(EXE_01)
    def test_one(target):
        pass

    @verifies(EXE_02)
    def test_two(target):
        raise Violation("it is not even asked")
    """
    finished = runner.supervise(checks, "Right", arguments=["-k", "EXE-01"])
    assert finished.verdicts == {"EXE-01": "pass", "EXE-02": "not run"}
    assert "deselected" in finished.entry("EXE-02")["message"]
    assert finished.content["outcome"] == "partial"


def test_a_selection_makes_no_other_check_and_judges_no_other_id(runner: Runner) -> None:
    checks = """
    @verifies(EXE_01)
    def test_one(target):
        pass

    @verifies(EXE_02)
    def test_two(target):
        raise Violation("it is not even asked")
    """
    finished = runner.supervise(checks, "Right", scopes={subject("Right"): ["EXE-01"]})
    assert finished.content["scope"] == ["EXE-01"]
    assert finished.content["outcome"] == "certified"
    assert finished.entry("EXE-02")["message"] == "outside of the selected requirements"


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("def test_unmarked(target): pass", "names no requirement"),
        ("@verifies(EXE_01)\ndef test_lonely(): pass", "has no target"),
    ],
)
def test_a_check_without_requirement_or_target_stops_the_run(
    runner: Runner, line: str, fact: str
) -> None:
    finished = runner.supervise(line, "Right")
    assert finished.code == 4
    assert fact in finished.output
    assert finished.content is None
