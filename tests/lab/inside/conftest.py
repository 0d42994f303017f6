"""These tests run inside a lab only; `tests/lab/test_inside.py` starts them there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from conformance.lab.client import Lab
from conformance.lab.plan import LAB_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

if LAB_VARIABLE not in os.environ:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def any_lab() -> Iterator[Lab]:
    """The lab, whatever its mode."""
    with Lab.connect("w0") as lab:
        yield lab


@pytest.fixture
def lab(any_lab: Lab) -> Lab:
    """The lab, where it is sealed."""
    if any_lab.mode != "sealed":
        pytest.skip("needs a sealed lab")
    return any_lab


@pytest.fixture
def as_root() -> None:
    """For what only root can do inside."""
    if os.geteuid() != 0:
        pytest.skip("needs root inside the lab")
