"""Checks that mostly wait, made at once when the first of them has its turn.

Only a pass counts that was had in company: whatever else came of a check there, it is made
again in its own turn, alone, and judged by that. So what one sandbox does to another, and
what a busy machine does to both, is nobody's failure.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING

import pytest

from conformance.probes.beside import at_once
from conformance.probes.inside import Inside
from conformance.run.progress import CheckResult
from conformance.run.stash import company_of, subject_of
from conformance.subject.capabilities import require

if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from conformance.run.stash import Run


class SideBySide:
    """The hooks that make the marked checks of a test process at once.

    Args:
        run: The run of this process.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._passed: set[str] = set()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Make a check and its company before the first one's turn."""
        name = company_of(item)
        # One that was begun before took a process down, and nobody can tell which check did.
        if name and name not in self._run.progress.read().started:
            company = [one for one in item.session.items if company_of(one) == name]
            if len(company) > 1:
                self._make(name, company)
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Take the pass of a check that has one."""
        return True if pyfuncitem.nodeid in self._passed else None

    def _make(self, name: str, company: list[pytest.Item]) -> None:
        # It is no check that is reported; but the supervisor watches over it like over one.
        self._run.progress.start(name)
        with self._run.laboratory.shared(), warnings.catch_warnings():
            # What is wrong is told in a check's own turn, and so are warnings.
            warnings.simplefilter("ignore")
            passed = at_once([partial(self._passes, item) for item in company])
        self._run.progress.end(CheckResult(nodeid=name))
        self._passed = {one.nodeid for one, well in zip(company, passed, strict=True) if well}

    def _passes(self, item: pytest.Item) -> bool:
        assert isinstance(item, pytest.Function)
        target = self._run.targets[subject_of(item)]
        try:
            for mark in item.iter_markers("needs"):
                needs: Any = mark.kwargs
                require(target, needs)
            with Inside(target, self._run.laboratory.connect) as inside:
                given = {**item.callspec.params, "target": target, "inside": inside}
                item.obj(**{key: given[key] for key in item._fixtureinfo.argnames})
        except BaseException:  # noqa: BLE001 - it is made again alone, and judged there
            return False
        return True
