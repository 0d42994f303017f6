"""Which checks a test process makes: those of the scope, for each subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.requirements import ALL, covers
from conformance.run.stash import RUN, company_of, is_alone, requirements_of, subject_of

if TYPE_CHECKING:
    from conformance.run.plan import Plan
    from conformance.run.stash import Run


class Collection:
    """The collecting hooks of one test process."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make each check once for each subject."""
        if "target" in metafunc.fixturenames:
            names = list(self._run.targets)
            metafunc.parametrize("target", names, indirect=True, scope="session", ids=names)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Keep the checks of the scope; what the user's options take out comes later."""
        plan = config.stash[RUN].plan
        for item in items:
            _check_marks(item)
            item.extra_keyword_matches.update(requirements_of(item))
        chosen = [item for item in items if in_scope(item, plan)]
        self._run.progress.write(
            "collected",
            checks={
                item.nodeid: {
                    "subject": subject_of(item),
                    "ids": requirements_of(item),
                    "in_scope": item in chosen,
                    "together": together(item),
                }
                for item in items
            },
        )
        done = set(plan.done or ())
        items[:] = [item for item in chosen if item.nodeid not in done]
        items.sort(key=is_alone, reverse=True)  # in a row, so that they wait for the others once

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a module of checks that cannot be loaded: without it nothing is certified."""
        if report.failed:
            lines = report.longreprtext.strip().splitlines() or ["no reason given"]
            reason = lines[-1].removeprefix("E").strip()
            self._run.progress.write("unloaded", path=report.nodeid, reason=reason)

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Note what the user's options took out."""
        self._run.progress.write("deselected", nodeids=[item.nodeid for item in items])


def together(item: pytest.Item) -> str:
    """The same name for all checks that one worker should make; none for one that stands alone."""
    if is_alone(item):
        return "alone"
    # What is served at an address that was given is served to one worker at a time.
    shares = "given_addresses" in getattr(item, "fixturenames", ())
    return company_of(item) or ("given addresses" if shares else "")


def in_scope(item: pytest.Item, plan: Plan) -> bool:
    """Whether a check proves one of the requirements that were selected for its subject."""
    scope = plan.scopes.get(subject_of(item))
    return scope is None or any(covers(scope, name) for name in requirements_of(item))


def _check_marks(item: pytest.Item) -> None:
    ids = requirements_of(item)
    if not ids or not set(ids) <= set(ALL):
        raise pytest.UsageError(
            f"the check {item.nodeid} names {ids or 'no requirement'}; mark it with @verifies(...)"
        )
    if not subject_of(item):
        raise pytest.UsageError(f"the check {item.nodeid} has no target; add the fixture")
