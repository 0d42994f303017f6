"""The fixtures of the checks, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.run.stash import RUN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.lab.client import Lab
    from conformance.probes.inside import Inside
    from conformance.subject.targets import Target


@pytest.fixture(scope="session")
def target(request: pytest.FixtureRequest) -> Target:
    """The subject of the check."""
    return request.config.stash[RUN].targets[request.param]


@pytest.fixture(scope="session")
def lab(pytestconfig: pytest.Config) -> Lab:
    """The laboratory of the run."""
    return pytestconfig.stash[RUN].laboratory.connect()


@pytest.fixture
def inside(request: pytest.FixtureRequest, target: Target) -> Iterator[Inside]:
    """The sandboxes that one check opens; all examples of a generated check share them."""
    from conformance.probes.inside import Inside

    with Inside(target, lambda: request.getfixturevalue("lab")) as view:
        yield view


@pytest.fixture
def given_addresses(lab: Lab) -> Iterator[None]:
    """No other worker makes sites of given addresses: such a site is not one check's alone."""
    with lab.addresses():
        yield
