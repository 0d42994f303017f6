"""Which exceptions came out of the subject, so that nobody else is blamed for them.

The facade hands a subject's exceptions on unchanged, since many checks expect one. One
that no check expected is a break of the sandbox, not of the harness.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from conformance.verdicts import Declined, HarnessError, NotApplicable, NotRun, Violation

VERDICTS = (Violation, NotApplicable, NotRun, Declined, HarnessError)
"""What only the suite raises."""

_MAKERS = ("__init__", "__post_init__", "__new__", "allow")


@dataclass(frozen=True, slots=True)
class Blame:
    """An exception of the subject.

    Attributes:
        error: The exception itself.
        call: The call that raised it, as a person writes it.
        remedy: What its author can mend.
    """

    error: BaseException
    call: str
    remedy: str

    def violation(self) -> Violation:
        """The exception as a break of the rule."""
        return Violation(f"{self.call} raised {shown(self.error)}", remedy=self.remedy)


_blamed: list[Blame] = []


def blame(error: BaseException, call: str, remedy: str) -> None:
    """Note that the exception came out of the subject; the suite's own are left out."""
    if not isinstance(error, VERDICTS):
        _blamed.append(Blame(error, call, remedy))


def blamed(error: BaseException) -> Blame | None:
    """What the subject did, if this very exception came out of it."""
    return next((entry for entry in _blamed if entry.error is error), None)


def refused_by(kind: type, error: BaseException) -> bool:
    """Whether an exception came out of the building of a value of this type, and no one's else."""
    if isinstance(error, VERDICTS) or blamed(error) is not None:
        return False
    makers = [vars(base).get(name) for base in kind.__mro__ for name in _MAKERS]
    codes = {getattr(getattr(one, "__func__", one), "__code__", None) for one in makers}
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))


def forget() -> None:
    """Forget the exceptions of the last check."""
    _blamed.clear()


def shown(error: BaseException) -> str:
    """The type and message of an exception, on one line."""
    try:
        message = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - whatever foreign code raises while it is printed
        message = "(a message that cannot be shown)"
    return f"{type(error).__name__}: {message[:300]}" if message else type(error).__name__
