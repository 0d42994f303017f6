"""The packages that the suite needs, and that a plain installation does not bring."""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

if TYPE_CHECKING:
    from collections.abc import Iterable

DISTRIBUTION = "sandbox-conformance"
EXTRA = "suite"


def missing(requirements: Iterable[str]) -> list[str]:
    """Give the names of those that the extra asks for here, and that are not installed.

    Args:
        requirements: As the metadata of a distribution has them.
    """
    wanted = (Requirement(line) for line in requirements)
    names = [one.name for one in wanted if one.marker and one.marker.evaluate({"extra": EXTRA})]
    return [name for name in names if not _is_installed(name)]


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def refuse_incomplete() -> None:
    """Refuse a run that would break in its middle.

    Raises:
        pytest.UsageError: The extra of the suite was not installed whole.
    """
    if lacking := missing(importlib.metadata.requires(DISTRIBUTION) or ()):
        raise pytest.UsageError(
            f"{', '.join(lacking)} must be there for --sandbox; "
            f"pip install '{DISTRIBUTION}[{EXTRA}]'"
        )
