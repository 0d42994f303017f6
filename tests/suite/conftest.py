from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

SUBJECTS = Path(__file__).with_name("subjects.py")
SUPERVISE = """
import sys
from pathlib import Path
from conformance.run.plan import Plan
from conformance.run.supervise import Supervisor
text, checks, silence = sys.argv[1:]
sys.exit(Supervisor(Plan.from_json(text), Path(checks), float(silence)).run())
"""


def subject(name: str) -> str:
    return f"{SUBJECTS}:{name}"


@dataclass
class Finished:
    code: int
    output: str
    content: Any

    @property
    def verdicts(self) -> dict[str, str]:
        return {
            entry["id"]: entry["verdict"]
            for entry in self.content["requirements"]
            if entry["checks"]
        }

    def entry(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = next(
            entry for entry in self.content["requirements"] if entry["id"] == name
        )
        return found


def environment() -> dict[str, str]:
    cleared = ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST")
    return {name: value for name, value in os.environ.items() if name not in cleared}


class Runner:
    """Runs the suite in a process of its own, on checks of a test's making or for real."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def supervise(
        self,
        checks: str,
        *subjects: str,
        arguments: Sequence[str] = (),
        silence: float = 60,
        **changes: Any,
    ) -> Finished:
        """Carry out a plan on other checks than the packaged ones, without a lab."""
        from conformance.run.plan import Plan

        place = self.folder / "checks"
        place.mkdir(exist_ok=True)
        (place / "test_made.py").write_text(HEAD + textwrap.dedent(checks))
        with tempfile.TemporaryFile() as sheet:
            fields: dict[str, Any] = {
                "sandboxes": [subject(name) for name in subjects],
                "options": {},
                "scopes": {},
                "profile": "quick",
                "lab": "off",
                "seed": 7,
                "arguments": list(arguments),
                "reproduce": [],
                "import_first": [],
                "import_last": [],
                "certificate_fd": sheet.fileno(),
                "progress": str(self.folder / "progress.jsonl"),
                "folder": str(self.folder),
            }
            plan = Plan(**{**fields, **changes})
            command = [sys.executable, "-c", SUPERVISE, plan.to_json(), str(place), str(silence)]
            done = self._run(command, (sheet.fileno(),))
            sheet.seek(0)
            text = sheet.read()
        return Finished(done.returncode, done.stdout, json.loads(text) if text else None)

    def pytest(self, *arguments: str) -> Finished:
        """Run pytest as a user does, in the test's folder."""
        path = self.folder / "certificate.json"
        path.unlink(missing_ok=True)
        command = [sys.executable, "-P", "-m", "pytest", f"--certificate={path}", *arguments]
        done = self._run(command)
        content = json.loads(path.read_text()) if path.exists() else None
        return Finished(done.returncode, done.stdout, content)

    def _run(
        self, command: Sequence[str], fds: tuple[int, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            pass_fds=fds,
            check=False,
        )


HEAD = """
import os, signal, time
import pytest
from hypothesis import given, strategies as st
from conformance.marks import needs, verifies
from conformance.requirements import *
from conformance.verdicts import *
"""


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.fixture(scope="module")
def module_runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    return Runner(tmp_path_factory.mktemp("run"))
