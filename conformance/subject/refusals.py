"""What a constructor refuses, watched from its very first call: in a process of its own.

What a constructor asks once and keeps, it asks before its first refusal; so whoever
built something before, in the same process, would see nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.bounds import BOUNDS
from conformance.lab.census import Census
from conformance.probes.watch import Watch
from conformance.subject.loading import load
from conformance.verdicts import Violation
from sandboxes.contract import (
    ACCESS_LEVELS,
    GitHubBinding,
    HeaderBinding,
    MistralApiBinding,
    WorkspaceHeaderBindings,
)

if TYPE_CHECKING:
    from conformance.subject.targets import Target
    from sandboxes.contract import Sandbox

# Threads and open files of what is imported for the first time are no trace.
_FIRST_KINDS = ("process", "file entry", "mount")
_REMEDY = "raise an Exception from the constructor, and end in time"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One call of the constructor, and what it did before it refused.

    Attributes:
        options: The options, as a person writes them.
        refused: Whether it raised.
        deeds: What it did and left; a line each.
    """

    options: str
    refused: bool
    deeds: list[str]


def owed(cls: type[Sandbox]) -> list[dict[str, Any]]:
    """What the constructor of a class refuses: what it does not declare, and nonsense."""
    network = cls.network_type
    networks = {
        "none": network.none(),
        "all": network.all(),
        "allow": network.allow(hosts=["packages.example.org"]),
    }
    bindings = (
        HeaderBinding(host="packages.example.org", header="X-Refused", secret_name="refused"),  # noqa: S106 - a name
        GitHubBinding(repos=()),
        MistralApiBinding(),
        WorkspaceHeaderBindings(),
    )
    widest = ACCESS_LEVELS.index(cls.supported_access)
    kinds = tuple(cls.supported_header_bindings)
    return [
        *({"network": networks[mode]} for mode in networks if mode not in cls.supported_network),
        *({"access": level} for level in ACCESS_LEVELS[widest + 1 :]),
        *({"header_bindings": (one,)} for one in bindings if not isinstance(one, kinds)),
        {"network": "none"},
        {"access": "everything"},
        {"hooks": ("no hook",)},
    ]


def watched(target: Target) -> list[Refusal]:
    """Let the constructor refuse each of these in a fresh process, and watch it.

    Raises:
        Violation: It ended the process, or did not come back.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        work = [str(report), target.name, json.dumps(target.options), json.dumps(sys.path)]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "conformance.subject.refusals", *work],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=BOUNDS.open,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Violation(
                f"refusing did not end within {BOUNDS.open:g} s", remedy=_REMEDY
            ) from error
        if not report.exists():
            words = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise Violation(
                f"a constructor that refused ended its process: {done.returncode} {words}",
                remedy=_REMEDY,
            )
        return [Refusal(**entry) for entry in json.loads(report.read_text(encoding="utf-8"))]


def _refuse(cls: type[Sandbox], options: dict[str, Any], given: dict[str, Any]) -> Refusal:
    """Call twice: the first time is watched for what it does, the second for all it leaves."""
    deeds: list[str] = []
    for kinds in (_FIRST_KINDS, None):
        before = Census.take()
        refused = False
        with Watch() as watch:
            try:
                cls(**options, **given)
            except Exception:  # noqa: BLE001 - any error is a refusal
                refused = True
        deeds += [*watch.deeds, *Census.take().left_since(before, kinds)]
    return Refusal(repr(given), refused, list(dict.fromkeys(deeds)))


def _main(report: str, spec: str, options: str, path: str) -> None:
    sys.path[:] = json.loads(path)
    cls = load(spec)
    given = json.loads(options)
    found = [asdict(_refuse(cls, given, refused)) for refused in owed(cls)]
    Path(report).write_text(json.dumps(found), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)  # a subject's threads may not let go


if __name__ == "__main__":
    _main(*sys.argv[1:])
