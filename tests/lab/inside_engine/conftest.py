"""These tests run inside a lab only; `tests/lab/test_engine.py` starts them there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from conformance.lab.client import Lab
from conformance.lab.plan import LAB_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

if LAB_VARIABLE not in os.environ:
    collect_ignore_glob = ["test_*.py"]

IMAGE = "sandbox-conformance/busybox:local"


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    with Lab.connect("w0") as lab:
        yield lab


@pytest.fixture(scope="session")
def engine(lab: Lab) -> Iterator[Any]:
    """The subject's client of the lab's engine."""
    import docker

    client = docker.DockerClient(base_url=lab.start_engine())
    yield client
    client.close()


@pytest.fixture
def container(engine: Any) -> Iterator[Any]:
    """A container on Docker's default network."""
    made = engine.containers.run(IMAGE, "sleep 60", detach=True, init=True)
    yield made
    made.remove(force=True)
