"""What one run is to do: made by the outer pytest, carried out inside of the laboratory."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

NO_LAB = 60
"""Exit code of a test process that found no laboratory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run, as JSON values.

    Attributes:
        sandboxes: The `--sandbox` values, each once.
        options: Constructor keywords of the subjects.
        scopes: By subject, the ids and areas that were selected; for one that is not named,
            every id that has a check.
        profile: `quick`, `standard` or `thorough`.
        lab: The laboratory that was asked for.
        seed: Hypothesis' seed.
        arguments: What the user passed to pytest and the suite hands on.
        reproduce: The options that a line to reproduce repeats.
        import_first: Folders of the user's `pythonpath`.
        import_last: The user's root and working folders.
        require_certified: Whether a partial run is a failure.
        certificate_fd: Where the certificate is written to; None for nowhere.
        junit_fd: Where JUnit's XML is written to; None for nowhere.
        quiet: Whether our blocks stand in for pytest's tracebacks.
        progress: File of the run's records; set by the supervisor.
        folder: Folder for what the tools of the run write; set by the supervisor.
        done: Checks that need not be made again; set by the supervisor.
    """

    sandboxes: list[str]
    options: dict[str, Any]
    scopes: dict[str, list[str]]
    profile: str
    lab: str
    seed: int
    arguments: list[str]
    reproduce: list[str]
    import_first: list[str]
    import_last: list[str]
    require_certified: bool = False
    certificate_fd: int | None = None
    junit_fd: int | None = None
    quiet: bool = True
    progress: str = ""
    folder: str = ""
    done: list[str] | None = None

    def to_json(self) -> str:
        """The plan as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read what `to_json` wrote."""
        return cls(**json.loads(text))
