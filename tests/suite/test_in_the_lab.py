"""A whole run through the laboratory: what goes in is shielded, what is asked for comes out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.suite.conftest import Runner

LITTERS = """
from pathlib import Path
from sandboxes.no_sandbox import NoSandbox

class Litters(NoSandbox):
    def __init__(self, **options):
        super().__init__(**options)
        Path("litter").touch()
        Path.home().joinpath("litter").touch()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can seal a laboratory")
def test_reports_come_out_of_a_sealed_lab_and_nothing_else(runner: Runner) -> None:
    (runner.folder / "litters.py").write_text(LITTERS)
    finished = runner.pytest(
        "--lab=sealed", "--sandbox=litters:Litters", "--requirement=NET-05", "--junitxml=out/j.xml"
    )
    assert finished.code == 0, finished.output
    assert finished.content["lab"]["mode"] == "sealed"
    assert finished.verdicts["NET-05"] == "pass"
    assert sorted(path.name for path in runner.folder.iterdir()) == [
        "certificate.json",
        "litters.py",
        "out",
    ]
    assert 'value="NET-05"' in (runner.folder / "out" / "j.xml").read_text()


def test_a_check_with_the_lab_runs_in_each_worker(runner: Runner) -> None:
    finished = runner.pytest(
        "--lab=loopback", "--sandbox=bashkit", "--requirement=EGR-06,EGR-11,HOK-01", "-n", "2",
        "--conformance-profile=quick",
    )  # fmt: skip
    assert finished.content["lab"]["mode"] == "loopback"
    assert finished.verdicts["EGR-11"] == "pass", finished.output
    assert finished.entry("EGR-11")["live_examples"] > 0
    assert finished.entry("HOK-01")["live_examples"] == 0


def test_a_lab_that_is_gone_is_no_fault_of_the_subject(runner: Runner) -> None:
    finished = runner.supervise(
        "@verifies(EXE_01)\ndef test_one(target): pass", "Right", lab="loopback"
    )
    assert finished.code == 1
    assert "the laboratory broke" in finished.output
    assert finished.content is None
