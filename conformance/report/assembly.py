"""From the records of a run to one verdict for each requirement of each subject."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.report.subject import Facts
from conformance.requirements import ALL, covers
from conformance.run.progress import CheckResult
from conformance.verdicts import Outcome, Verdict, combine, outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.requirements import Level, Requirement
    from conformance.run.plan import Plan
    from conformance.run.progress import Records

PLANNED = "planned: no check proves it yet"


@dataclass(frozen=True, slots=True)
class RequirementResult:
    """What a run says of one requirement for one subject.

    Attributes:
        requirement: The requirement.
        level: How binding it is for the subject.
        verdict: Its one verdict.
        checks: The results of the checks that prove it.
        lead: The result that the verdict rests on.
        reproduce: The line that makes its checks again.
    """

    requirement: Requirement
    level: Level
    verdict: Verdict
    checks: tuple[CheckResult, ...]
    lead: CheckResult
    reproduce: str

    @property
    def message(self) -> str:
        """What the sandbox did and what can be mended, or the reason of the verdict."""
        return "; ".join(part for part in (self.lead.did, self.lead.remedy) if part)


@dataclass(frozen=True, slots=True)
class SubjectReport:
    """Everything that a run says of one subject.

    Attributes:
        subject: Its record.
        results: One entry for each requirement of the ledger, in its order.
        scope: The ids that the outcome is judged by.
        selection: The ids and areas that were asked for; None for every id with a check.
    """

    subject: Mapping[str, Any]
    results: tuple[RequirementResult, ...]
    scope: frozenset[str] = field(default_factory=frozenset)
    selection: Sequence[str] | None = None

    @property
    def name(self) -> str:
        """What `--sandbox` was given."""
        return str(self.subject["name"])

    @property
    def judged(self) -> list[RequirementResult]:
        """The results in scope."""
        return [result for result in self.results if result.requirement.id in self.scope]

    @property
    def outcome(self) -> Outcome:
        """What the run says of the subject as a whole."""
        return outcome(result.verdict for result in self.judged)

    @property
    def planned(self) -> int:
        """How many requirements were asked for, if only by their area, and have no check."""
        return sum(
            result.message == PLANNED
            and (self.selection is None or covers(self.selection, result.requirement.id))
            for result in self.results
        )

    def count(self, *verdicts: Verdict) -> int:
        """How many requirements of the scope have one of these verdicts."""
        return sum(result.verdict in verdicts for result in self.judged)


def assemble(plan: Plan, records: Records) -> list[SubjectReport]:
    """Give a report for each subject that was loaded."""
    reports = []
    for name in plan.sandboxes:
        if name in records.subjects:
            subject = records.subjects[name]
            results = tuple(_result(entry, subject, plan, records) for entry in ALL.values())
            selection = plan.scopes.get(name)
            reports.append(SubjectReport(subject, results, _scope(selection, records), selection))
    return reports


def _scope(selection: Sequence[str] | None, records: Records) -> frozenset[str]:
    checked = {name for check in records.checks.values() for name in check["ids"]}
    if selection is None:
        return frozenset(checked)
    named = {name for name in selection if name in ALL}
    return frozenset(named | {name for name in checked if covers(selection, name)})


def _result(
    requirement: Requirement, subject: Mapping[str, Any], plan: Plan, records: Records
) -> RequirementResult:
    level = requirement.level_for(Facts.of(subject))
    checks = tuple(
        _check(nodeid, records)
        for nodeid, check in records.checks.items()
        if check["subject"] == subject["name"] and requirement.id in check["ids"]
    )
    judged = [(_verdict(check, level), check) for check in checks]
    verdict = combine([entry for entry, _ in judged])
    planned = CheckResult(nodeid="", verdict=Verdict.NOT_RUN.value, did=PLANNED)
    lead = next((check for entry, check in judged if entry is verdict), planned)
    return RequirementResult(
        requirement, level, verdict, checks, lead, _reproduce(requirement, subject, plan)
    )


def _check(nodeid: str, records: Records) -> CheckResult:
    if nodeid in records.results:
        return records.results[nodeid]
    if nodeid in records.deselected:
        reason = "deselected by -k, -m or --deselect"
    elif not records.checks[nodeid]["in_scope"]:
        reason = "outside of the selected requirements"
    elif nodeid in records.running:
        reason = "the run was interrupted in the middle of its check"
    else:
        reason = "the run ended before its check"
    return CheckResult(nodeid=nodeid, verdict=Verdict.NOT_RUN.value, did=reason)


def _verdict(check: CheckResult, level: Level) -> Verdict:
    verdict = Verdict(check.verdict)
    return Verdict.WARN if verdict is Verdict.FAIL and level == "S" else verdict


def _reproduce(requirement: Requirement, subject: Mapping[str, Any], plan: Plan) -> str:
    return shlex.join(
        [
            "pytest",
            f"--sandbox={subject['name']}",
            f"--requirement={requirement.id}",
            f"--hypothesis-seed={plan.seed}",
            *plan.reproduce,
        ]
    )


def headline(report: SubjectReport, plan: Plan, lab: Mapping[str, Any]) -> str:
    """The report in one line."""
    from conformance.report.subject import posture

    return " | ".join(
        (
            f"{report.name}: {report.outcome.value}{extent(report)}: {tally(report)}",
            f"scope: {scope_text(report)}",
            f"posture: {posture(report.subject)}",
            f"lab: {lab.get('mode', 'unknown')}",
            f"seed: {plan.seed}",
        )
    )


def extent(report: SubjectReport) -> str:
    """What keeps a certificate over a selection from being taken for one over everything."""
    count = len(report.scope)
    if report.outcome is not Outcome.CERTIFIED or report.selection is None:
        return ""
    return f" for {count} {'id' if count == 1 else 'ids'} only"


def tally(report: SubjectReport) -> str:
    """How many requirements of the scope hold, and what became of the others."""
    held = report.count(Verdict.PASS)
    others = [
        f"{report.count(verdict)} {verdict.value}"
        for verdict in Verdict
        if verdict is not Verdict.PASS and report.count(verdict)
    ]
    return ", ".join([f"{held} of {len(report.judged)} requirements hold", *others])


def scope_text(report: SubjectReport) -> str:
    """What the outcome is judged by."""
    count = len(report.scope)
    if report.selection is None:
        return f"default ({count} ids)"
    chosen = list(report.selection)
    shown = chosen if len(chosen) <= 6 else [*chosen[:5], "..."]
    return f"{', '.join(shown)} ({count} {'id' if count == 1 else 'ids'})"
