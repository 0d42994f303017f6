"""Verdicts: what a run can say of one requirement, and of a sandbox as a whole.

A check passes by returning and says everything else by raising one of the
exceptions below; what raises anything else has broken and says nothing about the
sandbox.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING
from unittest import SkipTest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


class Verdict(Enum):
    """What became of one requirement."""

    PASS = "pass"  # noqa: S105 - a verdict's name, no password
    FAIL = "fail"
    WARN = "warn"
    DECLINED = "declined"
    NOT_APPLICABLE = "not applicable"
    NOT_RUN = "not run"
    ERROR = "error"


class Outcome(Enum):
    """What a whole run says of a sandbox, for its scope."""

    CERTIFIED = "certified"
    PARTIAL = "partial"
    NOT_CERTIFIED = "not certified"


class Violation(AssertionError):
    """The sandbox broke the rule.

    Args:
        did: What the sandbox did, in the past tense.
        saw: What the witness saw; empty where the sandbox's own result is the fact.
        remedy: What its author can mend.
    """

    def __init__(self, did: str, *, saw: str = "", remedy: str = "") -> None:
        self.did = did
        self.saw = saw
        self.remedy = remedy
        parts = (did, saw and f"the lab saw {saw}", remedy)
        super().__init__("; ".join(part for part in parts if part))


class Hang(Violation):
    """A call of the sandbox did not return within its bound."""


class _Reasoned(Exception):
    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


# Hypothesis and pytest let a SkipTest end a check at once; anything else that a
# property raises would first be shrunk, example by example.
class NotApplicable(_Reasoned, SkipTest):
    """The rule speaks of something that this sandbox does not have."""


class Declined(_Reasoned, SkipTest):
    """The sandbox does not declare it, and was proven to refuse it."""


class NotRun(_Reasoned, SkipTest):
    """The check could not be made here; the reason says how to enable it."""


class HarnessError(_Reasoned):
    """The harness, a control or the lab broke: this says nothing about the sandbox."""


# From what decides a requirement's verdict to what only counts if nothing else does.
_WEIGHT = (
    Verdict.FAIL,
    Verdict.WARN,
    Verdict.ERROR,
    Verdict.NOT_RUN,
    Verdict.PASS,
    Verdict.DECLINED,
    Verdict.NOT_APPLICABLE,
)


def combine(verdicts: Collection[Verdict]) -> Verdict:
    """Give the one verdict of a requirement that several checks prove.

    A break decides whatever else held; a check that was not made keeps the
    requirement from passing.
    """
    if not verdicts:
        return Verdict.NOT_RUN
    return min(verdicts, key=_WEIGHT.index)


def outcome(verdicts: Iterable[Verdict]) -> Outcome:
    """Judge a run by the verdicts of every requirement in its scope."""
    seen = set(verdicts)
    if Verdict.FAIL in seen:
        return Outcome.NOT_CERTIFIED
    if not seen or seen & {Verdict.ERROR, Verdict.NOT_RUN}:
        return Outcome.PARTIAL
    return Outcome.CERTIFIED
