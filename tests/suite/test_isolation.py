"""What lies in a user's project changes nothing about the packaged checks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from tests.suite.conftest import environment, subject

if TYPE_CHECKING:
    from pathlib import Path

    from tests.suite.conftest import Runner

CONFTEST = """
import pytest

def pytest_addoption(parser):
    parser.addoption("--runslow", action="store_true")
    parser.addoption("--depth", type=int)

@pytest.fixture(scope="session")
def target():
    raise RuntimeError("overridden")

def pytest_collection_modifyitems(items):
    items.clear()

def pytest_runtest_makereport(item, call):
    raise RuntimeError("overridden")
"""
INI = """
[pytest]
addopts = --runslow --depth 3 --strict-config -ra tests
python_functions = nothing_at_all
python_files = nothing_at_all.py
filterwarnings = error
"""
ARGUMENTS = ("--lab=off", "--requirement=NET", "--conformance-profile=quick")


def test_a_projects_own_settings_do_not_reach_the_checks(runner: Runner) -> None:
    plain = runner.pytest(*ARGUMENTS, "--sandbox=none")
    folder = runner.folder
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text(INI)
    (folder / "tests").mkdir()
    (folder / "tests" / "test_network_values.py").write_text("raise RuntimeError")
    finished = runner.pytest(*ARGUMENTS, "--sandbox=none", "-o", "python_functions=none")
    assert plain.verdicts
    assert finished.verdicts == plain.verdicts
    assert finished.code == plain.code == 0


def test_modules_in_the_working_folder_do_not_stand_in_for_the_suites(runner: Runner) -> None:
    for name in ("conformance", "sandboxes", "h11", "jsonschema"):
        (runner.folder / f"{name}.py").write_text("raise RuntimeError('shadowed')")
    finished = runner.pytest(*ARGUMENTS, "--sandbox=sandboxes.no_sandbox:NoSandbox")
    assert "shadowed" not in finished.output
    assert finished.verdicts


def test_a_module_of_the_working_folder_can_be_the_subject(runner: Runner) -> None:
    (runner.folder / "mine.py").write_text(
        "from sandboxes.no_sandbox import NoSandbox\nclass Mine(NoSandbox): pass\n"
    )
    finished = runner.pytest(*ARGUMENTS, "--sandbox=mine:Mine", "-n", "2", "--junitxml=junit.xml")
    assert finished.content["subject"]["class"] == "mine:Mine"
    assert 'name="requirement" value="NET-05"' in (runner.folder / "junit.xml").read_text()


def test_warnings_of_a_subject_break_no_check(runner: Runner) -> None:
    (runner.folder / "loud.py").write_text(
        "import warnings\n"
        "from sandboxes.no_sandbox import NoSandbox\n"
        "class Loud(NoSandbox):\n"
        "    def __init__(self, **options):\n"
        "        for level in range(1, 4):\n"
        "            warnings.warn(f'old {level}', DeprecationWarning, stacklevel=level)\n"
        "        super().__init__(**options)\n"
    )
    finished = runner.pytest("--lab=off", "--requirement=CFG-02", "--sandbox=loud:Loud", "-Werror")
    assert finished.verdicts["CFG-02"] == "pass"


def test_an_interrupt_ends_the_run_with_2_and_certifies_nothing(tmp_path: Path) -> None:
    mark, certificate = tmp_path / "mark", tmp_path / "certificate.json"
    command = [sys.executable, "-m", "pytest", "--lab=off", "--requirement=EXE-01"]
    with subprocess.Popen(
        [*command, f"--sandbox={subject('MarksAndHangs')}", f"--certificate={certificate}"],
        cwd=tmp_path,
        env={**environment(), "MARK": str(mark)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as child:
        deadline = time.monotonic() + 60
        while not mark.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(child.pid, signal.SIGINT)
        output, _ = child.communicate(timeout=60)
    assert child.returncode == 2
    assert "KeyboardInterrupt" in output
    (verdict,) = (
        entry["verdict"]
        for entry in json.loads(certificate.read_text())["requirements"]
        if entry["id"] == "EXE-01"
    )
    assert verdict == "not run"
