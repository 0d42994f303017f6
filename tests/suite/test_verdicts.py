from __future__ import annotations

import itertools

import pytest

from conformance.verdicts import Outcome, Verdict, Violation, combine, outcome

GOOD = (Verdict.PASS, Verdict.DECLINED, Verdict.NOT_APPLICABLE)
OPEN = (Verdict.NOT_RUN, Verdict.ERROR)


@pytest.mark.parametrize("other", Verdict)
def test_a_failure_decides_whatever_else_a_requirement_got(other: Verdict) -> None:
    assert combine([other, Verdict.FAIL]) is Verdict.FAIL


@pytest.mark.parametrize(("missing", "good"), list(itertools.product(OPEN, GOOD)))
def test_a_check_that_was_not_made_keeps_a_requirement_from_passing(
    missing: Verdict, good: Verdict
) -> None:
    assert combine([good, missing]) is missing


def test_a_pass_counts_beside_what_does_not_apply() -> None:
    assert combine([Verdict.NOT_APPLICABLE, Verdict.PASS, Verdict.DECLINED]) is Verdict.PASS


def test_no_check_at_all_is_not_run() -> None:
    assert combine([]) is Verdict.NOT_RUN


@pytest.mark.parametrize("other", Verdict)
def test_one_failure_refuses_the_certificate(other: Verdict) -> None:
    assert outcome([Verdict.PASS, other, Verdict.FAIL]) is Outcome.NOT_CERTIFIED


@pytest.mark.parametrize("missing", OPEN)
def test_an_unmade_check_makes_the_run_partial(missing: Verdict) -> None:
    assert outcome([*GOOD, Verdict.WARN, missing]) is Outcome.PARTIAL


def test_warnings_declined_and_inapplicable_requirements_certify() -> None:
    assert outcome([*GOOD, Verdict.WARN]) is Outcome.CERTIFIED


def test_an_empty_run_certifies_nothing() -> None:
    assert outcome([]) is Outcome.PARTIAL


def test_a_violation_tells_its_three_parts_in_one_line() -> None:
    violation = Violation("it leaked", saw="one packet", remedy="close the port")
    assert str(violation) == "it leaked; the lab saw one packet; close the port"
    assert str(Violation("it leaked")) == "it leaked"
