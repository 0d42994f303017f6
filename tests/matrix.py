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
from sandboxes.bubblewrap_sandbox import BubblewrapSandbox
from sandboxes.contract import Sandbox

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from types import ModuleType

    from conformance.requirements import Requirement

ROOT = Path(__file__).parents[1]
LOCAL_HOST = "ALLOW_DANGEROUS_LOCAL_HOST"
DEPTH = os.environ.get("KILL_MATRIX", "sample")
"""`sample`: one fault of each requirement, against what it breaks and a slice of the others;
`all`: every fault, against the same; `full`: every fault against everything."""

SLICES = 96 if DEPTH == "sample" else 48
"""One in so many of the other requirements is in a slice."""

HONEST_SLICES = 24 if DEPTH == "sample" else 12
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
        scopes: For each the ids that it is held against; none for all that have a check.
    """

    subjects: tuple[Subject, ...]
    scopes: tuple[tuple[str, ...], ...]


def faults_of(primary: Requirement) -> list[Subject]:
    """The faults of a requirement that are run: all, or the first one.

    One that can be run everywhere comes before one that needs bwrap or a container engine.
    """
    same = [subject for subject in FAULTY if subject.primary is primary]
    same.sort(key=lambda subject: issubclass(subject.cls, BubblewrapSandbox))
    same.sort(key=lambda subject: subject.cls.needs_container_engine)
    return same[:1] if DEPTH == "sample" else same


def chosen() -> list[Subject]:
    """All faults that are run."""
    return [subject for primary in ALL.values() for subject in faults_of(primary)]


def groups(checked: Sequence[str], wanted: Collection[Subject]) -> list[Group]:
    """Put the honest ones together, and the faults, some in each run.

    A fault is held against what it breaks, and against a slice of the other ids: for each
    fault another one, and all of what faults with the same primary break, since it might
    break that as well.

    Args:
        checked: The ids that have a check, in the ledger's order.
        wanted: The subjects that are looked at.
    """
    alike: dict[str, set[str]] = {}
    for fault in chosen():
        alike.setdefault(fault.primary.id, set()).update(one.id for one in fault.breaks)
    scopes = [
        *((one, _slice(checked, place, HONEST_SLICES)) for place, one in enumerate(HONEST)),
        *(
            (one, _slice(checked, place, SLICES, alike[one.primary.id]))
            for place, one in enumerate(chosen())
        ),
    ]
    scopes = [(one, scope) for one, scope in scopes if one in wanted]
    # Apart: what needs an engine cannot be had everywhere, and the others can.
    on_docker = [row for row in scopes if row[0].cls.needs_container_engine]
    return [
        Group(*zip(*rows[first : first + _MOST_SUBJECTS], strict=True))
        for rows in ([row for row in scopes if row not in on_docker], on_docker)
        for first in range(0, len(rows), _MOST_SUBJECTS)
    ]


def _slice(
    checked: Sequence[str], place: int, slices: int, kept: Collection[str] = ()
) -> tuple[str, ...]:
    if DEPTH == "full":
        return ()
    return tuple(
        name
        for number, name in enumerate(checked)
        if name in kept or (number + place) % slices == 0
    )


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
    names += [
        f"--requirement={subject.name}={','.join(scope)}"
        for subject, scope in zip(group.subjects, group.scopes, strict=True)
        if scope
    ]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "fixtures"), LOCAL_HOST: "1"}
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
