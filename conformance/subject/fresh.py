"""A question about a subject that only a process of its own can answer.

What a class does at its very first call, or without one of its packages, is not to be seen
where it was built before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.bounds import BOUNDS
from conformance.verdicts import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.subject.targets import Target

_REMEDY = "raise an Exception from the constructor, and end in time"


def ask(module: str, target: Target, doing: str, *arguments: str) -> Any:  # noqa: ANN401 - JSON
    """Run a module in a fresh process, and give what it answers; see `answer`.

    Args:
        module: Its full name.
        target: The subject.
        doing: What the subject does there, as in "refusing".
        *arguments: Further words for the module.

    Raises:
        Violation: The subject ended the process, or did not come back.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = [str(report), target.name, json.dumps(target.options), json.dumps(sys.path)]
        try:
            done = subprocess.run(
                [sys.executable, "-m", module, *words, *arguments],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=BOUNDS.open,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Violation(
                f"{doing} did not end within {BOUNDS.open:g} s", remedy=_REMEDY
            ) from error
        if not report.exists():
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise Violation(f"{doing} ended the process: {done.returncode} {last}", remedy=_REMEDY)
        return json.loads(report.read_text(encoding="utf-8"))


def answer(work: Callable[[str, dict[str, Any]], Any]) -> None:
    """Answer the question in the process that `ask` made, and leave.

    Args:
        work: Gets the subject's spec and the user's options, and gives a JSON value.
    """
    report, spec, options, path = sys.argv[1:5]
    sys.path[:] = json.loads(path)
    found = work(spec, json.loads(options))
    Path(report).write_text(json.dumps(found), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)  # a subject's threads may not let go
