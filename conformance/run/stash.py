"""What the parts of the plugin share about the run of one test process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from conformance.run.progress import CheckResult

if TYPE_CHECKING:
    from conformance.run.laboratory import Laboratory
    from conformance.run.plan import Plan
    from conformance.run.progress import Progress
    from conformance.subject.targets import Target


@dataclass(slots=True)
class Run:
    """The run of one test process.

    Attributes:
        plan: What is to be done.
        progress: Where results are recorded.
        targets: The subjects by their names.
        laboratory: The connection to the lab.
    """

    plan: Plan
    progress: Progress
    targets: dict[str, Target]
    laboratory: Laboratory


RUN = pytest.StashKey[Run]()
RESULT = pytest.StashKey[CheckResult]()


def subject_of(item: pytest.Item) -> str:
    """The name of the subject that a check is made for."""
    callspec = getattr(item, "callspec", None)
    return "" if callspec is None else str(callspec.params.get("target", ""))


def company_of(item: pytest.Item) -> str:
    """What a check is made side by side with: the same name for all of its company, or none."""
    marked = item.get_closest_marker("side_by_side") is not None
    return f"side by side: {subject_of(item)}" if marked else ""


def is_alone(item: pytest.Item) -> bool:
    """Whether a check must have the lab for itself."""
    return item.get_closest_marker("alone") is not None


def requirements_of(item: pytest.Item) -> list[str]:
    """The ids that a check names, in its order."""
    ids = (str(entry) for mark in item.iter_markers("verifies") for entry in mark.args)
    return list(dict.fromkeys(ids))
