"""The test process of a run: subjects loaded, checks made, results recorded."""

from __future__ import annotations

import gc
import signal
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.bounds import BOUNDS
from conformance.report.subject import describe
from conformance.report.terminal import failure_text, summarize
from conformance.run import fixtures
from conformance.run.collection import Collection
from conformance.run.examples import counted, load_profile
from conformance.run.laboratory import Laboratory
from conformance.run.levels import gates
from conformance.run.plan import NO_LAB, Plan
from conformance.run.progress import CheckResult, Progress
from conformance.run.result import SKIPS, judge
from conformance.run.rooms import Rooms
from conformance.run.side_by_side import SideBySide
from conformance.run.stash import RESULT, RUN, Run, requirements_of, subject_of
from conformance.subject.blame import forget, refused_by, shown
from conformance.subject.capabilities import require
from conformance.subject.loading import TargetError, load, make_importable
from conformance.subject.targets import Target
from conformance.verdicts import Hang, HarnessError, NotRun, Verdict

if TYPE_CHECKING:
    from collections.abc import Generator

UNFINISHED = ""
"""Stands for a verdict until a check has one."""

GIVE_UP = 5
"""So many checks in a row that end in a hang, each after most of a minute, and no more are made."""


def configure(config: pytest.Config) -> None:
    """Make pytest a test process of the suite.

    Raises:
        pytest.UsageError: A subject cannot be loaded or built.
    """
    plan = _plan(config.option.conformance_run)
    make_importable(plan.import_first, plan.import_last)
    load_profile(plan.profile, plan.seed, Path(plan.folder))
    laboratory = Laboratory(plan.lab)
    try:
        targets = _targets(plan, laboratory)
    except TargetError as error:
        raise pytest.UsageError(str(error)) from None
    for target in targets.values():
        target.surroundings = laboratory.surroundings
    run = Run(plan, Progress(plan.progress), targets, laboratory)
    config.stash[RUN] = run
    for part in (fixtures, Collection(run), Inner(run), Rooms(run), SideBySide(run)):
        config.pluginmanager.register(part)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Controller(run))


def _plan(path: str) -> Plan:
    try:
        return Plan.from_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        raise pytest.UsageError(
            "--conformance-run is for the suite's own use; pass --sandbox=NAME instead"
        ) from None


def _targets(plan: Plan, laboratory: Laboratory) -> dict[str, Target]:
    """Load and build the subjects, with an engine or a cloud at hand for those that need it."""
    targets = {}
    for name in plan.sandboxes:
        cls = load(name)
        try:
            if cls.needs_container_engine:
                laboratory.start_engine()
            if cls.needs_cloud:
                laboratory.start_cloud()
            target = targets[name] = Target(name, cls, plan.options)
            image = getattr(target.build(), "image", None) if cls.needs_container_engine else None
            if isinstance(image, str):
                laboratory.use_image(image)
        except HarnessError as error:
            wanted = "a cloud" if cls.needs_cloud else "containers"
            raise TargetError(f"--sandbox={name}: needs {wanted}: {error.reason}") from error
    return targets


class Inner:
    """The hooks that make and record the checks of one test process."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._hung: Counter[str] = Counter()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """Leave what is there for good out of the collections of garbage, which count leftovers."""
        gc.collect()
        gc.freeze()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Record that a check begins, and what became of it."""
        forget()
        result = item.stash[RESULT] = CheckResult(nodeid=item.nodeid, verdict=UNFINISHED)
        item.user_properties.extend(("requirement", name) for name in requirements_of(item))
        self._run.progress.start(item.nodeid)
        begun = time.monotonic()
        value = yield
        result.seconds = round(time.monotonic() - begun, 3)
        if result.verdict == UNFINISHED:
            result.verdict, result.did = Verdict.ERROR.value, "the check did not run to its end"
        self._run.progress.end(result)
        return value

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Let a check begin only where the subject has what it needs."""
        subject = subject_of(item)
        if self._hung[subject] >= GIVE_UP:
            raise NotRun(f"the sandbox hung in {GIVE_UP} checks in a row; mend these first")
        for mark in item.iter_markers("needs"):
            needs: Any = mark.kwargs
            require(self._run.targets[subject], needs)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Make a check while no other must be alone, and count its examples."""
        assert isinstance(item, pytest.Function)
        run, result = self._run, item.stash[RESULT]
        advice = not gates(requirements_of(item), run.targets[subject_of(item)].declared)
        shrink = BOUNDS.shrink_advice if advice else BOUNDS.shrink
        try:
            with (
                run.laboratory.shared(),
                counted(item, result, run.laboratory, run.progress, shrink),
            ):
                yield
        except Exception as error:
            if refused_by(run.targets[subject_of(item)].Network, error):
                fact = f"Network.allow() raised {shown(error)}, so the rest cannot be told"
                raise NotRun(f"{fact}: see NET-02") from error
            raise
        # Nothing else makes a pass: a check that an option of pytest's skips stays open.
        result.verdict = Verdict.PASS.value

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Turn what a check raised into its verdict, and into pytest's own terms."""
        # Before pytest itself takes a SkipTest for one of its own.
        error = call.excinfo.value if call.excinfo else None
        if call.when == "call":
            subject = subject_of(item)
            self._hung[subject] = self._hung[subject] + 1 if isinstance(error, Hang) else 0
        report = yield
        if error is None or isinstance(error, KeyboardInterrupt):
            return report
        result = item.stash[RESULT]
        told = result.verdict in (Verdict.FAIL.value, Verdict.ERROR.value)
        judge(error, result, call.when)
        if told:
            report.outcome, report.longrepr = "passed", None
        else:
            self._tell(item, result, report)
        return report

    def _tell(self, item: pytest.Item, result: CheckResult, report: pytest.TestReport) -> None:
        if result.verdict in SKIPS:
            path, line, _ = item.location
            report.outcome = "skipped"
            report.longrepr = (path, line or 0, f"{result.verdict}: {result.did}")
        elif result.verdict == Verdict.FAIL.value and not gates(
            requirements_of(item), self._run.targets[subject_of(item)].declared
        ):
            report.outcome = "passed"
            report.longrepr = None
        else:
            report.outcome = "failed"
            if self._run.plan.quiet:
                report.longrepr = failure_text(result)

    def pytest_unconfigure(self) -> None:
        """Let go of the subjects, once every fixture let go of what it opened."""
        for target in self._run.targets.values():
            target.close()


class Controller:
    """The hooks of the one process that reports on a run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._interrupted = False

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionstart(self, session: pytest.Session) -> Generator[None, None, None]:
        """Record the subjects and the lab."""
        # The supervisor started this process with Ctrl-C blocked; from here on it is handled.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        yield
        run = self._run
        try:
            facts = run.laboratory.facts()
        except HarnessError as error:
            pytest.exit(f"the laboratory broke: {error.reason}", returncode=NO_LAB)
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            self._head(reporter, facts["mode"])
        run.progress.write("begin")
        for target in run.targets.values():
            run.progress.write("subject", **describe(target))
        run.progress.write("lab", facts=facts)

    def _head(self, reporter: pytest.TerminalReporter, mode: str) -> None:
        """Name what is certified, and how; pytest's own header speaks of the user's tests."""
        run = self._run
        # The checks' folder is no place that the user knows: show names within it.
        reporter.startpath = reporter.config.rootpath
        for name, target in run.targets.items():
            reporter.write_line(f"sandbox: {name} ({target.cls.__name__})")
        reporter.write_line(f"lab: {mode}; profile: {run.plan.profile}; seed: {run.plan.seed}")

    def pytest_keyboard_interrupt(self) -> None:
        """Remember that the checks left open were interrupted."""
        self._interrupted = True

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """Blame the check under which a worker of xdist died."""
        result = CheckResult(
            nodeid=crashitem,
            verdict=Verdict.FAIL.value,
            did="the process that ran this check died",
            remedy="a sandbox never takes its host process down",
        )
        records = self._run.progress.read()
        # One that had no turn yet was in company with others: the supervisor has each made alone.
        if crashitem in records.started and crashitem not in records.results:
            self._run.progress.end(result)
        if self._run.plan.quiet:
            report.longrepr = failure_text(result)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(
        self,
        config: pytest.Config,
        log: Any,  # noqa: ANN401 - xdist's own
    ) -> object | None:
        """Have one worker make what belongs together, unless the user chose otherwise."""
        if config.getoption("dist", "load") != "load":
            return None
        from conformance.run.distribution import scheduling

        return scheduling(config, log, self._run.progress)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, None, None]:
        """Record that the run reached its end, even where a fixture's does not."""
        try:
            return (yield)
        finally:
            self._run.progress.write("finish", interrupted=self._interrupted)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Tell what was found."""
        records = self._run.progress.read()
        if terminalreporter.config.option.collectonly or records.unloaded:
            return
        verbose = terminalreporter.config.option.verbose > 0
        summarize(self._run.plan, records, terminalreporter, verbose=verbose)
