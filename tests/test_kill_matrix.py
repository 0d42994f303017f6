"""Every check can fail, and for its reason: each fault breaks what it says and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from honest.binds_headers import BindsInItsClient
from honest.own_client import OwnClientSandbox

from conformance.requirements import ALL
from conformance.verdicts import Verdict
from sandboxes import BashkitSandbox
from sandboxes.bubblewrap_sandbox import BubblewrapSandbox
from tests import engines, matrix
from tests.ledger_page import ids_of
from tests.matrix import FAULTY, HONEST, Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.matrix import Group, Judged

    Judge = Callable[[Subject], Judged]

pytestmark = pytest.mark.faults

BROKEN = {Verdict.FAIL.value, Verdict.WARN.value}
FINE = {Verdict.PASS.value, Verdict.DECLINED.value, Verdict.NOT_APPLICABLE.value}

# Advice that an honest sandbox may leave, by its name.
ADVICE = {"OpensListedPrivateHosts": {"EGR-16"}, "Proxied": {"EGR-22", "EGR-23"}}

# What cannot be shown, by the sandbox's name: a right one gets no certificate for that.
NOT_RUN = {
    "ClaimsProcesses": {"TMO-03"},
    "HasAnUncommonClient": {"EGR-24", "EGR-26"},
    "RunsOnBusyBox": {"EGR-04"},
    "HasNoClients": {f"EGR-{n:02}" for n in (1, 2, 3, 4, 5, 24, 26, 31)},
}


# Requirements that others cannot be checked without, and name where they are broken.
ROOT_CAUSES = (
    "CFG-02", "CFG-03", "CFG-04", "CFG-19", "NET-02", "EGR-10", "EGR-18", "EXE-01", "EXE-06",
    "BND-02", "BND-14", "BND-15",
)  # fmt: skip


@pytest.fixture(scope="session")
def plan(request: pytest.FixtureRequest, checks: dict[str, Callable[..., None]]) -> list[Group]:
    """The runs for the tests that were selected."""
    checked = set().union(*map(ids_of, checks.values()))
    made = [getattr(item, "callspec", None) for item in request.session.items]
    wanted = {one.params["subject"] for one in made if one and "subject" in one.params}
    if engines.missing():
        wanted = {subject for subject in wanted if not subject.cls.needs_container_engine}
    return matrix.groups([name for name in ALL if name in checked], wanted)


@pytest.fixture(scope="session")
def judged(plan: list[Group]) -> Iterator[Judge]:
    """Give the verdicts of a subject; the runs go on side by side."""
    group_of = {subject: group for group in plan for subject in group.subjects}
    runs = matrix.Matrix()
    for group in plan:
        runs.begin(group)
    yield lambda subject: runs.begin(group_of[subject]).result()
    runs.close()


def each(members: Sequence[Subject]) -> pytest.MarkDecorator:
    """Make a test for each sandbox."""
    cases = [pytest.param(subject, id=subject.cls.__name__) for subject in members]
    return pytest.mark.parametrize("subject", cases)


def advised(subject: Subject) -> set[str]:
    """The advice that a sandbox gets beside all else, for what is not ours to change.

    The shell of Bashkit has a curl that sends whatever Host header it is given; and where
    private addresses are not said to be blocked, that they are open is no more than advice.
    """
    own_client = not issubclass(subject.cls, BashkitSandbox) or issubclass(
        subject.cls, OwnClientSandbox
    )
    found = set() if own_client else {"EGR-22"}
    if issubclass(subject.cls, BubblewrapSandbox):  # its proxy looks into no tunnel
        found |= {"EGR-22", "EGR-23"}
    if issubclass(subject.cls, BindsInItsClient):  # its curl heeds -k, as any other
        found.add("EGR-23")
    if not subject.cls.blocks_private_addresses:
        found.add("EGR-16")
    return found - {requirement.id for requirement in subject.breaks}


def in_order(verdict: str, message: str) -> bool:
    """Whether a verdict is neither a break nor a check that could not be made.

    Where a constructor takes what it does not declare, or commands do not show what they
    print, the requirement that this breaks is named, and others cannot be checked.
    """
    named = verdict == Verdict.NOT_RUN.value and message.endswith(ROOT_CAUSES)
    return verdict in FINE or named


@each(matrix.chosen())
def test_a_fault_breaks_exactly_what_it_says(subject: Subject, judged: Judge) -> None:
    verdicts = judged(subject).verdicts(subject)

    broken = {name for name, (verdict, _) in verdicts.items() if verdict in BROKEN}
    broken -= {name for name in advised(subject) if verdicts.get(name, ("",))[0] == "warn"}
    wanted = {requirement.id for requirement in subject.breaks}
    assert broken == wanted, {name: verdicts.get(name) for name in broken ^ wanted}

    unshown = NOT_RUN.get(subject.cls.__name__, set())
    others = {
        name: found
        for name, found in verdicts.items()
        if found[0] not in BROKEN and name not in unshown
    }
    assert all(in_order(*found) for found in others.values()), others


@each(HONEST)
def test_an_honest_oddity_is_certified(subject: Subject, judged: Judge) -> None:
    found, name = judged(subject), subject.cls.__name__
    verdicts = found.verdicts(subject)

    odd = {name: verdict for name, (verdict, _) in verdicts.items() if verdict not in FINE}
    odd = {
        name: verdict
        for name, verdict in odd.items()
        if verdict != Verdict.WARN.value or name not in advised(subject)
    }
    wanted = dict.fromkeys(ADVICE.get(name, set()) & set(verdicts), Verdict.WARN.value)
    wanted |= dict.fromkeys(NOT_RUN.get(name, set()) & set(verdicts), Verdict.NOT_RUN.value)
    assert odd == wanted
    outcome = "partial" if "not run" in odd.values() else "certified"
    assert found.certificates[subject.name]["outcome"] == outcome, verdicts


if matrix.DEPTH != "sample":  # a sample of the faults fails a sample of the checks

    def test_every_check_is_failed_by_some_fault(packaged_checks: set[str], judged: Judge) -> None:
        failed = set().union(*(judged(subject).failed_checks for subject in FAULTY))
        assert failed == packaged_checks
