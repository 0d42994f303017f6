"""The faulty and honest sandboxes under `fixtures/`, and what the suite said of them."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandboxes.contract import Sandbox

if TYPE_CHECKING:
    from conformance.requirements import Requirement

ROOT = Path(__file__).parents[1]
FULL = "KILL_MATRIX_FULL"
"""Set this variable to run each fault through every check, whatever its area."""

# Each area of faults, with the requirements that a fault of that area could touch.
_RUNNING = "CFG,EGR-01,EGR-10,EXE,TMO,HOK"
SCOPES = {
    "faulty.configuration": "CFG,NET,EGR-01,EGR-02,EGR-10,EXE,HOK",
    "faulty.network_values": "CFG,NET,EGR-10,EGR-14",
    "faulty.egress": "CFG,EGR,EXE,HOK",
    "faulty.egress_lists": "EGR",
    "faulty.egress_state": "EGR",
    "faulty.commands": _RUNNING,
    "faulty.timeouts": "CFG,EXE,TMO,HOK",  # clients that are let run would take minutes
    "faulty.hooks": _RUNNING,
}
FAULTY = tuple(SCOPES)
HONEST = ("honest.local_process", "honest.own_client", "honest.manners")
UNSHOWN = ("honest.unshown",)
_SECONDS = 1200
# Several checks of a subject only wait, so more workers than processors pay.
_WORKERS = 3


@dataclass(frozen=True)
class Subject:
    """A sandbox class of a fixture module."""

    module: str
    cls: type[Sandbox]

    @property
    def name(self) -> str:
        """What `--sandbox` is given."""
        return f"{self.module}:{self.cls.__name__}"

    @property
    def breaks(self) -> frozenset[Requirement]:
        """The requirements that it breaks; none for an honest one."""
        found: frozenset[Requirement] = getattr(self.cls, "breaks", frozenset())
        return found

    @property
    def primary(self) -> Requirement:
        """The requirement that it is there for."""
        found: Requirement = self.cls.primary  # type: ignore[attr-defined]
        return found


def subjects(*modules: str) -> list[Subject]:
    """Every sandbox class that these modules define, in their order."""
    return [
        Subject(module, value)
        for module in modules
        for name, value in vars(importlib.import_module(module)).items()
        if inspect.isclass(value)
        and issubclass(value, Sandbox)
        and value.__module__ == module
        and not name.startswith("_")
        and not inspect.isabstract(value)
    ]


@dataclass(frozen=True)
class Judged:
    """What one run said of the sandboxes of a module.

    Attributes:
        certificates: By the name of the subject.
        failed_checks: Names of the checks that failed for one or another.
    """

    certificates: dict[str, dict[str, Any]]
    failed_checks: frozenset[str]

    def verdicts(self, subject: Subject) -> dict[str, tuple[str, str]]:
        """Verdict and message of each requirement in the run's scope that has a check."""
        certificate = self.certificates[subject.name]
        return {
            entry["id"]: (entry["verdict"], entry["message"])
            for entry in certificate["requirements"]
            if entry["checks"] and entry["id"] in certificate["scope"]
        }


@functools.cache
def judged(module: str) -> Judged:
    """Run the whole suite against each sandbox of a module, once."""
    names = [f"--sandbox={subject.name}" for subject in subjects(module)]
    if module in SCOPES and not os.environ.get(FULL):
        names.append(f"--requirement={SCOPES[module]}")
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "fixtures")}
    environ.pop("PYTEST_ADDOPTS", None)
    with tempfile.TemporaryDirectory() as folder:
        sheet = Path(folder) / "certificate.json"
        options = ["--conformance-profile=quick", "--hypothesis-seed=1", f"--certificate={sheet}"]
        command = [sys.executable, "-m", "pytest", *names, *options, f"-n{_WORKERS}", "-v"]
        run = subprocess.run(
            [*command, "-p", "no:cacheprovider"],
            cwd=ROOT,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        assert sheet.exists(), f"no certificate was written:\n{run.stdout[-2000:]}{run.stderr}"
        found = json.loads(sheet.read_text(encoding="utf-8"))
    certificates = found if isinstance(found, list) else [found]
    failed = re.findall(r"FAILED \S*::(\w+)|::(\w+)\S* FAILED", run.stdout)
    return Judged(
        {certificate["subject"]["name"]: certificate for certificate in certificates},
        frozenset("".join(groups) for groups in failed),
    )
