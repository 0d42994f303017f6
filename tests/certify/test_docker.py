"""A sandbox on Docker, certified on an engine that the lab starts, on two images."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests import engines
from tests.lab.accounts import ROOT, Account

if TYPE_CHECKING:
    from pathlib import Path

    from tests.certify.conftest import Certify

DEBIAN = '--sandbox-option=image="sandbox-conformance/debian:local"'
BUSYBOX = (
    '--sandbox-option=image="sandbox-conformance/busybox:local"',
    '--sandbox-option=shell="sh"',
    "--requirement=EXE-01,TMO-01,TMO-02,TMO-03,TMO-04,FIL-01,LIF-01,LIF-16",
)
QUICK = "--conformance-profile=quick"


@pytest.fixture
def _engine() -> None:
    if missing := engines.missing():
        pytest.skip(missing)


@pytest.mark.usefixtures("_engine")
def test_docker_is_certified_on_a_debian_image(certify: Certify) -> None:
    run = certify("--sandbox=docker", DEBIAN, "-n3", "--require-certified")

    assert run.certificate["outcome"] == "certified", run.output
    assert run.code == 0
    assert run.certificate["lab"]["mode"] == "sealed"
    assert {run.verdicts[name] for name in ("EGR-01", "EGR-06", "TMO-13", "LIF-16")} == {"pass"}
    assert run.verdicts["LIF-10"] == "pass"
    assert run.live_examples >= 50


@pytest.mark.usefixtures("_engine")
def test_docker_is_certified_on_busybox_for_what_needs_no_more(certify: Certify) -> None:
    run = certify("--sandbox=docker", *BUSYBOX, QUICK, "-n2", "--require-certified")

    assert run.certificate["outcome"] == "certified", run.output
    assert {run.verdicts[name] for name in ("TMO-02", "LIF-01", "LIF-16")} == {"pass"}


_ON_THAT_MACHINE = """
import os, subprocess, sys, time
from conformance.lab.client import Lab
with Lab.connect("machine") as lab:
    engine = lab.engine()
    os.environ["DOCKER_HOST"] = lab.start_engine()
subprocess.run([sys.executable, "-m", "pytest", "--lab=loopback", *OPTIONS], check=False)
deadline = time.monotonic() + 10
while engine.items() and time.monotonic() < deadline:
    time.sleep(0.1)
print("left:", engine.items())
"""


@pytest.mark.usefixtures("_engine")
def test_a_persons_own_engine_is_judged_at_canaries_that_see_what_gets_out() -> None:
    faulty = "faulty.docker_containers:IsOnTheDefaultNetwork"
    options = [
        *("--sandbox=docker", f"--sandbox={faulty}", DEBIAN, QUICK),
        *("--requirement=EGR-05,LIF-16", "--requirement=docker=EGR-03,EGR-05,LIF-01,LIF-16"),
    ]
    # The person's machine is a sealed lab: without an uplink, and its engine is not the run's.
    script = f"OPTIONS = {options!r}{_ON_THAT_MACHINE}"
    run = Account().run_python(script, environ={"PYTHONPATH": str(ROOT / "fixtures")})

    assert "docker: certified" in run.stdout, run.stdout + run.stderr
    assert "lab: loopback" in run.stdout
    assert "EGR-05 (M) fail" in run.stdout
    assert "tcp request at 172." in run.stdout
    assert "LIF-16 (R) fail" in run.stdout
    assert "left: {}" in run.stdout


def refusal(*options: str, **environ: str) -> str:
    """What a run says that does not begin."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "--sandbox=docker", "--requirement=EGR-01", *options],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 4, run.stdout + run.stderr
    return run.stderr.strip()


@pytest.mark.usefixtures("_engine")
def test_an_image_that_the_lab_has_not_is_refused_in_one_line() -> None:
    told = refusal('--sandbox-option=image="there/is:none"')

    assert "no image 'there/is:none'" in told
    assert "sandbox-conformance/debian:local" in told
    assert len(told.splitlines()) == 1


def test_without_an_engine_a_run_says_in_one_line_what_is_missing(tmp_path: Path) -> None:
    told = refusal(DEBIAN, PATH=str(tmp_path), DOCKER_HOST=f"unix://{tmp_path}/none.sock")

    assert "needs containers" in told
    assert "run as root" in told or "install" in told
    assert len(told.splitlines()) == 1
