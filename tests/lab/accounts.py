"""Who calls for a lab in these tests: the account that they run under, or an ordinary one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parents[2]
_CALLER = """
import json, os, sys
from pathlib import Path
from conformance.lab.errors import LabUnavailable
from conformance.lab.launch import run_in_lab

options = json.loads(sys.argv[1])
try:
    code = run_in_lab(
        options["command"],
        mode=options["mode"],
        cwd=Path(options["cwd"]),
        results=[Path(path) for path in options["results"]],
        environ=os.environ,
        leave_sockets=[Path(path) for path in options["leave"]],
        on_fallback=lambda reason: print("FALLBACK", reason, file=sys.stderr),
    )
except LabUnavailable as unavailable:
    print("UNAVAILABLE", unavailable, file=sys.stderr)
    code = 99
sys.exit(code)
"""


@dataclass(frozen=True)
class Account:
    """Who calls for a lab: a prefix to commands, an interpreter, and variables."""

    prefix: tuple[str, ...] = ()
    python: str = sys.executable
    environ: dict[str, str] = field(default_factory=dict)

    def caller(
        self,
        command: Sequence[str],
        *,
        mode: str = "sealed",
        cwd: Path = ROOT,
        results: Sequence[Path] = (),
        leave: Sequence[Path] = (),
    ) -> list[str]:
        """Give the command line of a process that calls `run_in_lab`."""
        options = {
            "command": list(command),
            "mode": mode,
            "cwd": str(cwd),
            "results": [str(path) for path in results],
            "leave": [str(path) for path in leave],
        }
        return [*self.prefix, self.python, "-c", _CALLER, json.dumps(options)]

    def run(
        self, *command: str, environ: dict[str, str] | None = None, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run `command` in a lab of its own."""
        return subprocess.run(
            self.caller(command, **options),
            env={**os.environ, **self.environ, **(environ or {})},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def run_python(self, script: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a script in a lab of its own."""
        return self.run(self.python, "-c", script, **options)
