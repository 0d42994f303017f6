"""The reference sandbox, certified as root and as an ordinary user."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.certify.test_main_job import checkout, ordinary_user
from tests.sandboxes.test_bubblewrap import needs_bwrap

if TYPE_CHECKING:
    from pathlib import Path

    from tests.certify.conftest import Certify

__all__ = ["checkout"]

pytestmark = needs_bwrap

QUICK = ("--conformance-profile=quick", "-n2", "--require-certified")
WALLS = "--requirement=CFG-19,EGR-01,EGR-04,EGR-10,EGR-11,EGR-13,EXE-01,FIL-04,LIF-01,TMO-03"


# Of what leaves it one id of each kind: every client inside is a process to be started.
EGRESS = "EGR-01,EGR-02,EGR-04,EGR-10,EGR-11,EGR-13,EGR-16"


@pytest.mark.parametrize("areas", ["CFG,EXE,FIL,LIF,ACC", "TMO,PRC,HOK,NET", EGRESS, "BND"])
def test_bubblewrap_is_certified(certify: Certify, areas: str) -> None:
    run = certify("--sandbox=bubblewrap", f"--requirement={areas}", *QUICK)

    assert run.certificate["outcome"] == "certified", run.output
    assert run.code == 0
    assert run.certificate["lab"]["mode"] == "sealed"


def test_bubblewrap_is_certified_for_an_ordinary_user(checkout: Path) -> None:
    prefix, environment = ordinary_user(checkout)
    install = "python3 -m venv .venv && .venv/bin/pip install -q '.[suite,bubblewrap]'"
    command = f".venv/bin/pytest --sandbox=bubblewrap {WALLS} {QUICK[0]} {QUICK[2]}"

    run = subprocess.run(
        [*prefix, "sh", "-c", f"{install} && {command}"],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert "bubblewrap: certified" in run.stdout
    assert "lab: sealed" in run.stdout
