"""What a stranger does: install the wheel, write a sandbox, certify it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import conformance

CHECKOUT = Path(__file__).parents[2]
PROJECT = CHECKOUT / "fixtures" / "projects" / "netless"


def certify(
    folder: Path, *options: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, object]]:
    """Run the suite in a folder and give what it printed and its certificate."""
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--sandbox=netless:NetlessSandbox"),
            *("--certificate=certificate.json", "--conformance-profile=quick", *options),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    certificate: dict[str, object] = json.loads((folder / "certificate.json").read_text())
    return run, certificate


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PROJECT, tmp_path / "project"))


def test_the_suite_under_test_is_the_installed_one() -> None:
    assert Path(conformance.__file__).is_relative_to(sysconfig.get_path("purelib"))


def test_a_strangers_sandbox_is_certified(project: Path) -> None:
    run, certificate = certify(project, "--require-certified")

    assert certificate["outcome"] == "certified", run.stdout
    assert run.returncode == 0, run.stdout


def test_one_broken_line_is_found_and_explained(project: Path) -> None:
    source = project / "netless.py"
    text = source.read_text()
    assert text.count(', "--net"') == 1
    source.write_text(text.replace(', "--net"', ""))

    run, certificate = certify(project, "--requirement=EGR")

    assert certificate["outcome"] == "not certified"
    assert run.returncode == 1
    assert "EGR-01" in run.stdout
    assert "Network.none()" in run.stdout
    assert "--requirement=EGR-01" in run.stdout, "the way to reproduce it is missing"
