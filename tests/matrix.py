"""The faulty and honest sandboxes under `fixtures/`, and what the suite said of them."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import faulty
import honest

from conformance.requirements import ALL
from sandboxes.contract import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType

    from conformance.requirements import Requirement

ROOT = Path(__file__).parents[1]
FULL = bool(os.environ.get("KILL_MATRIX_FULL"))
"""Set this variable to hold every fault against every requirement that has a check."""

SAMPLE = 1
"""Without it: so many faults of each requirement, against what they break and a slice."""

SLICES = 24
"""One in so many of the other requirements is in a slice."""

HONEST_SLICES = 4
"""The same for honest sandboxes."""

_MOST_SUBJECTS = 16
_SECONDS = 1500
# Several checks of a subject only wait, so more workers than processors pay.
_RUNS_AT_ONCE = 2
_WORKERS = 2


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


def subjects(package: ModuleType) -> list[Subject]:
    """Every sandbox class that the modules of a package define."""
    modules = [
        importlib.import_module(f"{package.__name__}.{module.name}")
        for module in pkgutil.iter_modules(package.__path__)
    ]
    return [
        Subject(module.__name__, value)
        for module in modules
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, Sandbox)
        and value.__module__ == module.__name__
        and not name.startswith("_")
        and not inspect.isabstract(value)
    ]


FAULTY = subjects(faulty)
HONEST = subjects(honest)


@dataclass(frozen=True)
class Group:
    """Subjects that are judged in one run.

    Attributes:
        subjects: The sandboxes.
        scope: The ids that they are held against; empty for all that have a check.
    """

    subjects: tuple[Subject, ...]
    scope: tuple[str, ...] = ()


def faults_of(primary: Requirement) -> list[Subject]:
    """The faults of a requirement that are run: all, or the first few."""
    same = [subject for subject in FAULTY if subject.primary is primary]
    return same if FULL else same[:SAMPLE]


def chosen() -> list[Subject]:
    """All faults that are run."""
    return [subject for primary in ALL.values() for subject in faults_of(primary)]


def groups(checked: Sequence[str]) -> list[Group]:
    """Put faults with the same primary together, and the honest ones.

    What one fault breaks, the others of its group might break as well, so all of that is
    in the group's scope; and so is a slice of the other ids, for each group another one.

    Args:
        checked: The ids that have a check, in the ledger's order.
    """
    found = []
    for place, part in enumerate(_parts(HONEST)):
        kept = [
            name for number, name in enumerate(checked) if (number + place) % HONEST_SLICES == 0
        ]
        found.append(Group(tuple(part), () if FULL else tuple(kept)))
    for place, primary in enumerate(ALL.values()):
        for part in _parts(faults_of(primary)):
            broken = {one.id for subject in part for one in subject.breaks}
            kept = [
                name
                for number, name in enumerate(checked)
                if name in broken or (number + place) % SLICES == 0
            ]
            found.append(Group(tuple(part), () if FULL else tuple(kept)))
    return found


def _parts(members: Sequence[Subject]) -> Iterable[Sequence[Subject]]:
    for first in range(0, len(members), _MOST_SUBJECTS):
        yield members[first : first + _MOST_SUBJECTS]


@dataclass(frozen=True)
class Judged:
    """What one run said of the sandboxes of a group.

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


class Matrix:
    """The runs, a few at a time; each begins when it is first wanted."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_RUNS_AT_ONCE)
        self._runs: dict[Group, Future[Judged]] = {}

    def begin(self, group: Group) -> Future[Judged]:
        """Have a group judged, once."""
        if group not in self._runs:
            self._runs[group] = self._pool.submit(_judge, group)
        return self._runs[group]

    def close(self) -> None:
        """Begin no more runs, and wait for those that were begun."""
        self._pool.shutdown(cancel_futures=True)


def _judge(group: Group) -> Judged:
    names = [f"--sandbox={subject.name}" for subject in group.subjects]
    if group.scope:
        names.append(f"--requirement={','.join(group.scope)}")
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
