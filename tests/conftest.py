"""What all tests share: marks, the packaged checks by name, and no skip where none is owed."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from conformance import checks as package

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

# A busy machine makes an example slow, not wrong.
settings.register_profile("tests", settings(), deadline=None)
settings.load_profile("tests")


def pytest_configure(config: pytest.Config) -> None:
    """Know the marks of the packaged checks, which tests import, and our own."""
    for mark in (
        "verifies(*requirements): what a packaged check proves",
        "side_by_side: a packaged check that is made at once with others",
        "alone: a packaged check that must have the laboratory for itself",
        "needs(**capabilities): what a packaged check asks of a sandbox",
        "faults: the kill matrix, every faulty sandbox through every check; takes minutes",
        "xdist_group(name): tests that one worker makes",
    ):
        config.addinivalue_line("markers", mark)


def packaged() -> dict[str, Callable[..., None]]:
    """Every packaged check by its name."""
    modules = [
        importlib.import_module(f"conformance.checks.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
        if module.name.startswith("test_")
    ]
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if name.startswith("test_") and inspect.isfunction(value)
    }


@pytest.fixture(scope="session")
def checks() -> dict[str, Callable[..., None]]:
    """Every packaged check by its name."""
    return packaged()


@pytest.fixture(scope="session")
def packaged_checks(checks: dict[str, Callable[..., None]]) -> set[str]:
    """The names of every packaged check."""
    return set(checks)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail what is skipped where everything was installed: a skip must not look like a pass."""
    report = yield
    # The tests that run inside of a lab are those of every kind of lab: some are another's.
    outside = "SANDBOX_CONFORMANCE_LAB" not in os.environ
    if report.skipped and outside and os.environ.get("SANDBOX_TESTS_REQUIRE_ALL"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and nothing may be here: {report.longrepr}"
    return report
