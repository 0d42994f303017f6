"""Ledger, checks and faults stay together."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

from conformance.probes.clouds import watched
from conformance.probes.engines import containers_under
from conformance.probes.leftovers import counting
from conformance.requirements import ALL
from tests import matrix, options_page
from tests.ledger_page import area_rows, ids_of, page, spans
from tests.matrix import FAULTY, HONEST

if TYPE_CHECKING:
    from collections.abc import Callable

    Checks = dict[str, Callable[..., None]]


def test_every_check_names_what_it_proves(checks: Checks) -> None:
    assert all(ids_of(check) for check in checks.values())
    assert all(ids_of(check) <= set(ALL) for check in checks.values())


def test_every_check_states_its_rule_in_one_sentence(checks: Checks) -> None:
    for name, check in checks.items():
        rule = inspect.getdoc(check) or ""
        assert rule.endswith("."), name
        assert "\n" not in rule, name
        assert not rule.lower().startswith(("test", "check", "verify", "ensure")), name


def _has_the_lab_alone(function: Callable[..., object]) -> bool:
    """Whether a function asks to be alone in the lab, or another of its module does for it."""
    bare = inspect.unwrap(function)
    bare = getattr(getattr(bare, "hypothesis", None), "inner_test", bare)
    used = {name: bare.__globals__.get(name) for name in bare.__code__.co_names}
    own = [one for one in used.values() if inspect.isfunction(one)]
    return (
        "alone" in used
        or any(one in own for one in (counting, watched, containers_under))
        or any(_has_the_lab_alone(one) for one in own if one.__module__ == bare.__module__)
    )


def test_checks_that_must_be_alone_in_the_lab_are_marked_so(checks: Checks) -> None:
    asking = {name for name, check in checks.items() if _has_the_lab_alone(check)}
    marked = {
        name
        for name, check in checks.items()
        if any(mark.name == "alone" for mark in getattr(check, "pytestmark", ()))
    }
    assert len(asking) > 20
    assert asking <= marked


def test_every_checked_requirement_has_a_fault_of_its_own(checks: Checks) -> None:
    checked = set().union(*map(ids_of, checks.values()))
    assert {fault.primary.id for fault in FAULTY} == checked


def test_faults_name_only_what_is_checked(checks: Checks) -> None:
    checked = set().union(*map(ids_of, checks.values()))
    for fault in FAULTY:
        assert fault.primary in fault.breaks, fault.name
        assert {requirement.id for requirement in fault.breaks} <= checked, fault.name


def test_the_readme_lists_what_is_checked(checks: Checks) -> None:
    text = (matrix.ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| [A-Z]{3} \|.*$", text, re.MULTILINE) == area_rows(checks)
    assert f"names {len(ALL)} requirements" in text


def test_the_page_of_requirements_is_the_ledger(checks: Checks) -> None:
    assert (matrix.ROOT / "docs" / "requirements.md").read_text(encoding="utf-8") == page(checks)


def test_the_page_of_options_is_what_the_constructors_say() -> None:
    told = (matrix.ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert told == options_page.page()
    assert "`shell`" in told


def test_ids_are_written_short() -> None:
    ids = ["EGR-01", "EGR-02", "EGR-03", "EGR-06", "EGR-10", "EGR-11"]
    assert spans(ids) == "01-03, 06, 10-11"
    assert spans([]) == ""


def test_faults_are_small_and_say_their_sin() -> None:
    for fault in FAULTY:
        source = inspect.getsource(fault.cls).splitlines()
        assert len(source) <= 20, fault.name
        assert "\n" not in (inspect.getdoc(fault.cls) or "\n"), fault.name


def test_the_counts_do_not_fall_unnoticed(checks: Checks) -> None:
    # A parser or an import that finds nothing would satisfy every test above.
    checked = set().union(*map(ids_of, checks.values()))
    assert len(checked) >= 18
    assert len(checks) >= 24
    assert len(FAULTY) >= 75
    assert len(HONEST) >= 8
    assert len({fault.cls.__name__ for fault in FAULTY}) == len(FAULTY)


def test_reported_faults_are_caught_by_the_ids_that_the_page_names() -> None:
    text = (matrix.ROOT / "docs" / "reported-faults.md").read_text(encoding="utf-8")
    by_name = {fault.name: fault for fault in FAULTY}
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| [")]
    assert len(rows) >= 47
    for *_, ids, faults in rows:
        named = [by_name[name] for name in re.findall(r"`(faulty\.\w+:\w+)`", faults)]
        caught = {requirement.id for fault in named for requirement in fault.breaks}
        # Where there is no fault, the place of the ids says why.
        assert bool(named) != ids.startswith(("planned", "not decided")), ids
        assert not named or caught & set(re.findall(r"[A-Z]{3}-\d\d", ids)), ids
