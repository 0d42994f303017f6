"""Runs of the suite as a user starts them: in a subprocess, from a folder of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

BOUND_SECONDS = 600


@dataclass(frozen=True)
class Run:
    """What one run printed, how it ended, and the certificate it wrote."""

    code: int
    output: str
    certificate: dict[str, Any]

    @property
    def verdicts(self) -> dict[str, str]:
        return {entry["id"]: entry["verdict"] for entry in self.certificate["requirements"]}

    @property
    def live_examples(self) -> int:
        return sum(entry["live_examples"] for entry in self.certificate["requirements"])


class Certify(Protocol):
    def __call__(self, *options: str, prefix: Sequence[str] = ...) -> Run: ...


def certifying(folder: Path) -> Certify:
    """Make what runs `pytest` with options in a folder, and reads the certificate."""

    def run(*options: str, prefix: Sequence[str] = (sys.executable, "-m", "pytest")) -> Run:
        done = subprocess.run(
            [*prefix, "--certificate=certificate.json", *options],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=BOUND_SECONDS,
            check=False,
        )
        output = done.stdout + done.stderr
        file = folder / "certificate.json"
        assert file.exists(), output
        return Run(done.returncode, output, json.loads(file.read_text()))

    return run


@pytest.fixture
def certify(tmp_path: Path) -> Certify:
    """Run `pytest` with the options in a folder of the test's own."""
    return certifying(tmp_path)


@pytest.fixture(scope="module")
def standard(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    """The run of a sandbox over everything, as its first user starts it; made once."""

    @cache
    def run(name: str) -> Run:
        made = certifying(tmp_path_factory.mktemp(name))
        return made(f"--sandbox={name}", "--require-certified")

    return run
