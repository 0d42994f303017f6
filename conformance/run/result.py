"""From the exception that ended a check to its verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.run.examples import failing_example
from conformance.subject.blame import blamed, shown
from conformance.verdicts import (
    Declined,
    HarnessError,
    NotApplicable,
    NotRun,
    Verdict,
    Violation,
)

if TYPE_CHECKING:
    from conformance.run.progress import CheckResult

_REASONED = {
    NotApplicable: Verdict.NOT_APPLICABLE,
    Declined: Verdict.DECLINED,
    NotRun: Verdict.NOT_RUN,
    HarnessError: Verdict.ERROR,
}
SKIPS = frozenset(
    verdict.value for verdict in (Verdict.NOT_APPLICABLE, Verdict.DECLINED, Verdict.NOT_RUN)
)


def judge(error: BaseException, result: CheckResult, phase: str) -> None:
    """Write into the result what an exception says.

    Args:
        error: What the check, one of its fixtures or a control raised.
        result: The check's result so far.
        phase: `setup`, `call` or `teardown`.
    """
    if result.verdict in (Verdict.FAIL.value, Verdict.ERROR.value):
        return  # the first failure tells more than what its teardown meets
    error = _decisive(error)
    result.example = failing_example(error)
    for kind, verdict in _REASONED.items():
        if isinstance(error, kind):
            result.verdict, result.did = verdict.value, error.reason
            return
    blame = blamed(error)
    if blame is not None:
        error = blame.violation()
    if isinstance(error, Violation):
        result.verdict = Verdict.FAIL.value
        result.did, result.saw, result.remedy = error.did, error.saw, error.remedy
    elif isinstance(error, AssertionError) and phase == "call":
        result.verdict, result.did = Verdict.FAIL.value, " ".join(str(error).split())
    else:
        result.verdict, result.did = Verdict.ERROR.value, f"the check broke: {shown(error)}"


def _decisive(error: BaseException) -> BaseException:
    """The break inside of a group.

    Hypothesis raises one where an example failed once and then did not: a sandbox that
    breaks the rule now and then breaks it.
    """
    if not isinstance(error, BaseExceptionGroup):
        return error
    inner = [_decisive(entry) for entry in error.exceptions]
    for entry in inner:
        if isinstance(entry, AssertionError) or blamed(entry) is not None:
            for note in getattr(error, "__notes__", ()):
                entry.add_note(note)
            return entry
    return inner[0]
