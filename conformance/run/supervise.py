"""Runs the test process and outlives it: a subject that takes it down has failed a check.

Started inside of the laboratory as `python -m conformance.run.supervise DESCRIPTOR`.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import conformance
from conformance.bounds import BOUNDS
from conformance.report.assembly import assemble
from conformance.report.certificate import certificate, to_text
from conformance.report.terminal import summarize
from conformance.run.foreground import terminal_lent
from conformance.run.plan import NO_LAB, Plan
from conformance.run.progress import CheckResult, Progress
from conformance.run.unnamed import Unnamed
from conformance.verdicts import Outcome, Verdict

if TYPE_CHECKING:
    from types import FrameType

    from conformance.run.progress import Records

CHECKS = Path(conformance.__file__).parent / "checks"
MAX_RESTARTS = 40
_TICK = 0.2
_REMEDY = "a sandbox never takes its host process down, nor keeps it from running"
_OK, _FAILED, _INTERRUPTED, _INTERNAL, _USAGE, _EMPTY = range(6)  # pytest.ExitCode


def main(plan_fd: int) -> int:
    """Carry out the plan that a descriptor holds, and give the exit code of the run."""
    with os.fdopen(plan_fd, encoding="utf-8") as sheet:
        plan = Plan.from_json(sheet.read())
    # The records have no name: a subject that empties the temporary folder keeps them.
    records = Unnamed()
    scratch = tempfile.TemporaryDirectory(prefix="conformance-", ignore_cleanup_errors=True)
    with scratch as folder:
        xml = Path(folder) / "junit.xml"
        handed_on = (
            plan.arguments if plan.junit_fd is None else [*plan.arguments, f"--junitxml={xml}"]
        )
        plan = replace(plan, progress=records.path, folder=folder, arguments=handed_on)
        code = Supervisor(plan).run()
        if plan.junit_fd is not None and xml.exists():
            with os.fdopen(plan.junit_fd, "wb") as sheet:
                sheet.write(xml.read_bytes())
        return code


class Supervisor:
    """Starts test processes until every check has its result.

    Args:
        plan: What is to be done.
        checks: The folder of the checks.
        silence: How long a check may take for one example, in seconds.
    """

    def __init__(self, plan: Plan, checks: Path = CHECKS, silence: float = BOUNDS.silence) -> None:
        self._plan = plan
        self._checks = checks
        by_hand = {"--pdb"} & set(plan.arguments)
        self._silence = math.inf if by_hand else silence
        self._progress = Progress(plan.progress)
        self._orphaned = False
        self._interrupted = False
        self._child: subprocess.Popen[bytes] | None = None
        self._sheet = Unnamed()

    def run(self) -> int:
        """Carry out the plan, and give the exit code of the run."""
        # A handler instead of SIG_IGN, which the test process would inherit.
        signal.signal(signal.SIGINT, self._interrupt)
        code = self._once()
        for _ in range(MAX_RESTARTS):
            if self._finished(code) or not self._blame_death(code):
                break
            code = self._once()
        if self._interrupted:
            code = _INTERRUPTED
        records = self._progress.read()
        if records.unloaded:
            return _unloaded(records)
        if code == _USAGE or {"--collect-only", "--co"} & set(self._plan.arguments):
            return code
        if not records.checks:
            return self._died_early(code)
        if not records.finished:
            summarize(self._plan, records, _Plain(), verbose=False)
        return self._judge(code, records)

    def _once(self) -> int:
        records = self._progress.read()
        self._sheet.write(replace(self._plan, done=sorted(records.results)).to_json())
        command = _pytest(self._plan, self._sheet.path, self._checks)
        # Blocked until the session of the test process can answer it, and so not lost.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        # A group of its own: a subject that signals its group ends itself alone.
        with (
            subprocess.Popen(command, process_group=0) as child,
            terminal_lent(child.pid),
        ):
            self._child = child
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            code = self._watch(child)
        self._interrupted |= code in (_INTERRUPTED, -signal.SIGINT)
        return code

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self._interrupted = True
        self._pass_on()

    def _pass_on(self) -> None:
        if self._child is not None and self._child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGINT)

    def _watch(self, child: subprocess.Popen[bytes]) -> int:
        finished_at: float | None = None
        parent = os.getppid()
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return child.wait(_TICK)
            records = self._progress.read()
            if records.finished:
                finished_at = finished_at or time.monotonic()
                if time.monotonic() - finished_at > BOUNDS.exit:
                    child.kill()  # a thread of the subject's keeps the process from leaving
            else:
                self._kill_silent(records, child.pid)
            if os.getppid() != parent:
                self._orphaned = True
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)

    def _kill_silent(self, records: Records, child: int) -> None:
        for nodeid, (pid, last) in records.running.items():
            if time.time() - last < self._silence:
                continue
            self._fail(nodeid, f"the check was still running after {self._silence:g} s")
            if _descends(pid, child):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _fail(self, nodeid: str, did: str) -> None:
        self._progress.end(
            CheckResult(nodeid=nodeid, verdict=Verdict.FAIL.value, did=did, remedy=_REMEDY)
        )

    def _finished(self, code: int) -> bool:
        records = self._progress.read()
        if self._orphaned or self._interrupted or code == _USAGE or not records.checks:
            return True
        return records.finished and not records.running

    def _blame_death(self, code: int) -> bool:
        """Blame the checks that were running, and tell whether others are left to make."""
        before = set(self._progress.records.running)
        how = f"died with signal {-code}" if code < 0 else f"ended with exit code {code}"
        for nodeid in before:
            self._fail(nodeid, f"the process that ran this check {how}")
        records = self._progress.read()
        left = {name for name, check in records.checks.items() if check["in_scope"]}
        left -= set(records.results) | records.deselected
        return bool(left and (before or records.results))

    def _died_early(self, code: int) -> int:
        if code in (_OK, _EMPTY):
            chosen = ", ".join(dict.fromkeys(chain(*self._plan.scopes.values())))
            reason = f"no check proves {chosen} yet" if chosen else "no check was selected"
            _complain(f"{reason}; select requirements that have a check")
        elif code == NO_LAB:
            return _FAILED  # told already, and no fault of the subject's
        elif code != _INTERRUPTED:
            how = f"died with signal {-code}" if code < 0 else f"ended with exit code {code}"
            _complain(f"loading {', '.join(self._plan.sandboxes)}: the process {how}")
        return _INTERRUPTED if code == _INTERRUPTED else _USAGE

    def _judge(self, code: int, records: Records) -> int:
        made = [check for check in records.checks.values() if check["in_scope"]]
        if not made or (not records.results and code == _EMPTY):
            return self._died_early(_EMPTY)
        reports = assemble(self._plan, records)
        if self._plan.certificate_fd is not None:
            with os.fdopen(self._plan.certificate_fd, "w", encoding="utf-8") as sheet:
                sheet.write(to_text(certificate(self._plan, records)))
        if records.interrupted or code == _INTERRUPTED:
            return _INTERRUPTED
        outcomes = {report.outcome for report in reports}
        broken = any(report.count(Verdict.ERROR) for report in reports)
        if Outcome.NOT_CERTIFIED in outcomes or broken or code == _INTERNAL:
            return _FAILED
        strict = self._plan.require_certified and Outcome.PARTIAL in outcomes
        return _FAILED if strict else _OK


def _pytest(plan: Plan, path: str, checks: Path) -> list[str]:
    """The command of a test process; the user's arguments come after our defaults."""
    return [
        sys.executable,
        "-P",
        "-m",
        "pytest",
        f"--config-file={Path(__file__).with_name('inner.ini')}",
        f"--rootdir={checks}",
        "--noconftest",
        "-p",
        "no:cacheprovider",
        "--no-header",
        *(["--tb=no", "-rN"] if plan.quiet else []),
        *plan.arguments,
        f"--conformance-run={path}",
        str(checks),
    ]


def _descends(pid: int, ancestor: int) -> bool:
    """Whether a process is the other or comes from it, so that a reused number is spared."""
    while pid not in (ancestor, 0, 1):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            return False
        pid = int(stat.rpartition(")")[2].split()[1])
    return pid == ancestor


def _unloaded(records: Records) -> int:
    for path, reason in records.unloaded.items():
        _complain(f"the suite's own {path} cannot be loaded ({reason}); install the suite again")
    return _FAILED


def _complain(line: str) -> None:
    sys.stderr.write(f"ERROR: {line}\n")


class _Plain:
    """A writer for when there is no terminal reporter left."""

    def write_line(self, line: str | bytes, **markup: bool) -> None:
        sys.stdout.write(f"{line if isinstance(line, str) else line.decode()}\n")

    def write_sep(
        self, sep: str, title: str | None = None, fullwidth: int | None = None, **markup: bool
    ) -> None:
        sys.stdout.write(f" {title} ".center(fullwidth or 80, sep) + "\n")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
