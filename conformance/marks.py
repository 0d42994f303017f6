"""How a check names the requirements it proves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conformance.requirements import Requirement


def verifies(*requirements: Requirement) -> pytest.MarkDecorator:
    """Mark a check with the requirements whose verdict it gives."""
    return pytest.mark.verifies(*requirements)
