"""Every check can fail, and for its reason: each fault breaks what it says and nothing else."""

from __future__ import annotations

import pytest

from conformance.verdicts import Verdict
from tests import matrix
from tests.matrix import FAULTY, HONEST, UNSHOWN, Subject

pytestmark = pytest.mark.faults

BROKEN = {Verdict.FAIL.value, Verdict.WARN.value}
FINE = {Verdict.PASS.value, Verdict.DECLINED.value, Verdict.NOT_APPLICABLE.value}

# Advice that an honest sandbox may leave, by its name.
ADVICE = {"OpensListedPrivateHosts": {"EGR-16"}}

# What cannot be shown of a right sandbox, by its name.
NOT_RUN = {"HasNoClients": {"EGR-01", "EGR-02"}}


def each(*modules: str) -> pytest.MarkDecorator:
    """Make a test for each sandbox; those of a module share one run, and so one worker."""
    return pytest.mark.parametrize(
        "subject",
        [
            pytest.param(
                subject, id=subject.cls.__name__, marks=pytest.mark.xdist_group(subject.module)
            )
            for subject in matrix.subjects(*modules)
        ],
    )


def in_order(verdict: str, message: str) -> bool:
    """Whether a verdict is neither a break nor a check that could not be made.

    Where a constructor takes what it does not declare, or commands do not show what they
    print, the requirement that this breaks is named, and others cannot be checked.
    """
    named = message.endswith(("CFG-02", "EXE-01", "EXE-06"))
    return verdict in FINE or (verdict == Verdict.NOT_RUN.value and named)


@each(*FAULTY)
def test_a_fault_breaks_exactly_what_it_says(subject: Subject) -> None:
    verdicts = matrix.judged(subject.module).verdicts(subject)

    broken = {name for name, (verdict, _) in verdicts.items() if verdict in BROKEN}
    assert broken == {requirement.id for requirement in subject.breaks}

    others = {name: found for name, found in verdicts.items() if name not in broken}
    assert all(in_order(*found) for found in others.values()), others


@each(*HONEST)
def test_an_honest_oddity_is_certified(subject: Subject) -> None:
    judged = matrix.judged(subject.module)
    verdicts = judged.verdicts(subject)

    advised = {name for name, (verdict, _) in verdicts.items() if verdict == "warn"}
    assert advised == ADVICE.get(subject.cls.__name__, set())
    assert judged.certificates[subject.name]["outcome"] == "certified", verdicts


@each(*UNSHOWN)
def test_what_cannot_be_shown_is_not_run_and_gives_no_certificate(subject: Subject) -> None:
    judged = matrix.judged(subject.module)
    verdicts = judged.verdicts(subject)

    not_run = {name for name, (verdict, _) in verdicts.items() if verdict == "not run"}
    assert not_run == NOT_RUN[subject.cls.__name__]
    assert judged.certificates[subject.name]["outcome"] == "partial", verdicts


@pytest.mark.xdist_group("every")
def test_every_check_is_failed_by_some_fault(packaged_checks: set[str]) -> None:
    failed = set().union(*(matrix.judged(module).failed_checks for module in FAULTY))
    assert failed == packaged_checks
