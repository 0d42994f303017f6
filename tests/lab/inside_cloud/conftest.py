"""These tests run inside a lab only; `tests/lab/test_cloud.py` starts them there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from conformance.lab.client import Lab
from conformance.lab.cloud.place import API_HOST
from conformance.lab.plan import LAB_VARIABLE
from tests.lab.clouds import RunningCloud

if TYPE_CHECKING:
    from collections.abc import Iterator

if LAB_VARIABLE not in os.environ:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    with Lab.connect("w0") as lab:
        yield lab


@pytest.fixture
def cloud(lab: Lab) -> RunningCloud:
    client = lab.cloud()
    client.reset()
    return RunningCloud(f"https://{API_HOST}", client, client.token(), 0)
