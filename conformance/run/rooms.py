"""Checks that must be alone in the lab, made in a row: each wait for the others is had once."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from conformance.run.stash import is_alone

if TYPE_CHECKING:
    from collections.abc import Generator

    from conformance.run.stash import Run

HOLD_SECONDS = 60.0
"""For so long a row of checks has the lab; the others are not to be taken for silent ones."""


class Rooms:
    """The hooks that keep the lab for the marked checks of a test process.

    Args:
        run: The run of this process.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._held = ExitStack()
        self._since: float | None = None

    # Behind what tells that a check is not made at all, and before its fixtures.
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Have the lab for a marked check."""
        if is_alone(item) and self._since is None:
            self._held.enter_context(self._run.laboratory.alone())
            self._since = time.monotonic()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, nextitem: pytest.Item | None) -> Generator[None, None, None]:
        """Give the lab up behind the last check of a row, when its fixtures have."""
        try:
            yield
        finally:
            if self._since is not None and (
                nextitem is None
                or not is_alone(nextitem)
                or time.monotonic() - self._since > HOLD_SECONDS
            ):
                self._since = None
                self._held.close()
