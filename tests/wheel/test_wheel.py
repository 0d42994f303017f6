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
PROJECTS = CHECKOUT / "fixtures" / "projects"
LISTED = "listed:ListedSandbox"
# Of what leaves it, and of what it must not leave behind.
WAY_OUT = (
    "--requirement=CFG-14,EGR-01,EGR-04,EGR-10,EGR-11,EGR-12,EGR-14,EGR-17,EGR-20,EGR-31,"
    "EXE-01,FIL-01,LIF-01,LIF-02,TMO-03"
)


def certify(
    folder: Path, *options: str, sandbox: str = "netless:NetlessSandbox"
) -> tuple[subprocess.CompletedProcess[str], dict[str, object]]:
    """Run the suite in a folder and give what it printed and its certificate."""
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", f"--sandbox={sandbox}"),
            *("--certificate=certificate.json", "--conformance-profile=quick", *options),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    certificate: dict[str, object] = json.loads((folder / "certificate.json").read_text())
    return run, certificate


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PROJECTS / "netless", tmp_path / "project"))


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PROJECTS / "listed", tmp_path / "project"))


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


def test_a_strangers_sandbox_on_the_egress_proxy_is_certified(listed: Path) -> None:
    run, certificate = certify(listed, WAY_OUT, "--require-certified", sandbox=LISTED)

    assert certificate["outcome"] == "certified", run.stdout
    assert run.returncode == 0, run.stdout


def test_its_way_out_is_judged_and_not_the_proxy_believed(listed: Path) -> None:
    source = listed / "listed.py"
    text = source.read_text()
    enters = 'ENTER = ["nsenter", "--user", "--net"'
    assert text.count(enters) == 1
    source.write_text(text.replace(enters, enters.removesuffix(', "--net"')))

    run, certificate = certify(listed, "--requirement=EGR-12", sandbox=LISTED)

    assert certificate["outcome"] == "not certified"
    assert "EGR-12 (M) fail" in run.stdout, run.stdout
