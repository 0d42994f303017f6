"""The records of a run: what was begun, and what became of it.

Every test process appends whole lines to one file, so that a process that dies takes
nothing of the others' results with it, nor of its own earlier ones.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(slots=True, kw_only=True)
class CheckResult:
    """What became of one check for one subject.

    Attributes:
        nodeid: The check's id in pytest.
        verdict: A value of `Verdict`, before the levels of its requirements count.
        seconds: How long it took.
        examples: How many examples were tried.
        live_examples: How many judgments of the lab's witnesses they came to.
        did: What the sandbox did, or the reason of another verdict than `fail`.
        saw: What the lab saw.
        remedy: What can be mended.
        example: The smallest failing example.
    """

    nodeid: str
    verdict: str = "pass"
    seconds: float = 0.0
    examples: int = 0
    live_examples: int = 0
    did: str = ""
    saw: str = ""
    remedy: str = ""
    example: str = ""


@dataclass(slots=True)
class Records:
    """Everything that a progress file says.

    Attributes:
        subjects: Facts of each subject by its name.
        checks: Subject and requirement ids of each check by its node id.
        deselected: Node ids that the user's options took out.
        unloaded: Why a module of checks could not be loaded, by its path.
        started: Process and time of each check that began.
        results: What became of each check that ended; the first record counts.
        lab: Facts of the laboratory.
        finished: Whether the last test process reached its end.
        interrupted: Whether it was interrupted.
    """

    subjects: dict[str, dict[str, Any]] = field(default_factory=dict)
    checks: dict[str, dict[str, Any]] = field(default_factory=dict)
    deselected: set[str] = field(default_factory=set)
    unloaded: dict[str, str] = field(default_factory=dict)
    started: dict[str, tuple[int, float]] = field(default_factory=dict)
    results: dict[str, CheckResult] = field(default_factory=dict)
    lab: dict[str, Any] = field(default_factory=dict)
    finished: bool = False
    interrupted: bool = False

    @property
    def running(self) -> dict[str, tuple[int, float]]:
        """The checks that began and did not end."""
        return {key: value for key, value in self.started.items() if key not in self.results}

    def add(self, record: dict[str, Any]) -> None:
        """Take one record in."""
        event = record["event"]
        if event == "subject":
            self.subjects[record["name"]] = record
        elif event == "collected":
            self.checks.update(record["checks"])
        elif event == "deselected":
            self.deselected.update(record["nodeids"])
        elif event == "unloaded":
            self.unloaded[record["path"]] = record["reason"]
        elif event in ("start", "beat"):
            self.started[record["nodeid"]] = (record["pid"], record["time"])
        elif event == "end":
            self.results.setdefault(record["result"]["nodeid"], CheckResult(**record["result"]))
        elif event == "lab":
            self.lab.update(record["facts"])
        elif event == "begin":
            self.finished = False
        elif event == "finish":
            self.finished, self.interrupted = True, record["interrupted"]


class Progress:
    """The progress file of a run, to append to and to read from."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._offset = 0
        self.records = Records()

    def write(self, event: str, **fields: Any) -> None:  # noqa: ANN401 - JSON values
        """Append one record, in a single write."""
        line = json.dumps({"event": event, **fields}) + "\n"
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(handle, line.encode())
        finally:
            os.close(handle)

    def start(self, nodeid: str) -> None:
        """Note that this process begins a check."""
        self.write("start", nodeid=nodeid, pid=os.getpid(), time=time.time())

    def beat(self, nodeid: str) -> None:
        """Note that a check goes on with its next example."""
        self.write("beat", nodeid=nodeid, pid=os.getpid(), time=time.time())

    def end(self, result: CheckResult) -> None:
        """Note what became of a check."""
        self.write("end", result=asdict(result))

    def read(self) -> Records:
        """Take in what was appended since the last call, and give all of it."""
        if not self._path.exists():
            return self.records
        with self._path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                self.records.add(json.loads(line))
        return self.records
