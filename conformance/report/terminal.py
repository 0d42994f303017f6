"""The summary of a run for the person who started it."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Protocol

from conformance.report.assembly import assemble, extent, scope_text, tally
from conformance.report.subject import posture
from conformance.verdicts import Outcome, Verdict

if TYPE_CHECKING:
    from conformance.report.assembly import RequirementResult, SubjectReport
    from conformance.run.plan import Plan
    from conformance.run.progress import CheckResult, Records

WIDTH = 80
_BROKEN = (Verdict.FAIL, Verdict.WARN, Verdict.ERROR)
_REASONED = (Verdict.NOT_RUN, Verdict.DECLINED, Verdict.NOT_APPLICABLE)
_COLOURS = {
    Outcome.CERTIFIED: {"green": True},
    Outcome.PARTIAL: {"yellow": True},
    Outcome.NOT_CERTIFIED: {"red": True},
}
_VERDICT_COLOURS = {
    Verdict.FAIL: {"red": True, "bold": True},
    Verdict.WARN: {"yellow": True, "bold": True},
    Verdict.ERROR: {"red": True},
}


class Writer(Protocol):
    """Where the summary goes; pytest's terminal reporter is one."""

    def write_line(self, line: str | bytes, **markup: bool) -> None:
        """Write one line."""

    def write_sep(
        self, sep: str, title: str | None = None, fullwidth: int | None = None, **markup: bool
    ) -> None:
        """Write a title in the middle of a rule."""


def summarize(plan: Plan, records: Records, writer: Writer, *, verbose: bool) -> None:
    """Write the summary: a section for each subject. A run without a result has none."""
    if not records.results:
        return
    for report in assemble(plan, records):
        _Section(plan, records, report, writer).write(verbose=verbose)


def failure_text(result: CheckResult) -> str:
    """A check's failure in a few lines, in place of a traceback."""
    lines = [result.did]
    lines += [f"the lab saw {result.saw}"] if result.saw else []
    lines += [f"smallest example: {result.example}"] if result.example else []
    lines += [f"to mend: {result.remedy}"] if result.remedy else []
    return "\n".join(lines)


class _Section:
    def __init__(self, plan: Plan, records: Records, report: SubjectReport, writer: Writer) -> None:
        self._plan = plan
        self._records = records
        self._report = report
        self._writer = writer

    def write(self, *, verbose: bool) -> None:
        report = self._report
        outcome = report.outcome
        colours = _COLOURS[outcome]
        title = f"{report.name}: {outcome.value}{extent(report)}"
        self._writer.write_sep("=", title, bold=True, **colours)
        self._head()
        for result in report.judged:
            if result.verdict in _BROKEN:
                self._block(result)
        self._reasons()
        if verbose:
            self._passes()
        if report.planned:
            noun = "requirement has" if report.planned == 1 else "requirements have"
            self._line(f"not run: {report.planned} planned {noun} no check yet")

    def _head(self) -> None:
        report = self._report
        checks = {check.nodeid: check for result in report.judged for check in result.checks}
        examples = sum(check.examples for check in checks.values())
        live = sum(check.live_examples for check in checks.values())
        tried = f"{examples} example{'s' * (examples != 1)}"
        lab = self._records.lab
        self._line(tally(report))
        self._line(f"scope: {scope_text(report)}; posture: {posture(report.subject)}")
        self._line(
            f"lab: {lab.get('mode', 'unknown')}; profile: {self._plan.profile}; "
            f"seed: {self._plan.seed}; {tried}, {live} judged by the lab"
        )

    def _block(self, result: RequirementResult) -> None:
        requirement, lead = result.requirement, result.lead
        self._writer.write_line("")
        self._writer.write_line(
            f"{requirement.id} ({result.level}) {result.verdict.value}",
            **_VERDICT_COLOURS[result.verdict],
        )
        self._field("rule", requirement.text)
        broke = result.verdict is Verdict.ERROR
        self._field("reason" if broke else "it did", lead.did)
        self._field("lab saw", lead.saw)
        self._field("example", lead.example)
        self._field("to mend", lead.remedy)
        self._field("again", result.reproduce, fold=False)

    def _reasons(self) -> None:
        told = [result for result in self._report.judged if result.verdict in _REASONED]
        if told:
            self._writer.write_line("")
        alike: dict[str, list[str]] = {}
        for result in told:
            said = f"{result.verdict.value}: {result.message}"
            alike.setdefault(said, []).append(result.requirement.id)
        for said, ids in alike.items():
            self._line(f"{', '.join(ids)} {said}")

    def _passes(self) -> None:
        self._writer.write_line("")
        for result in self._report.judged:
            if result.verdict is Verdict.PASS:
                self._line(f"{result.requirement.id} pass: {result.requirement.text}", green=True)

    def _field(self, name: str, text: str, *, fold: bool = True) -> None:
        if not text:
            return
        label = f"  {name:<8} "
        if fold:
            self._line(label + text, indent=len(label))
        else:
            self._writer.write_line(_ascii(label + text))

    def _line(self, text: str, indent: int = 2, **markup: bool) -> None:
        folded = textwrap.wrap(
            _ascii(text), WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False
        )
        for line in folded:
            self._writer.write_line(line, **markup)


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()
