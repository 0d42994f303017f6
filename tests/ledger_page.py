"""The page of all requirements: `python -m tests.ledger_page > docs/requirements.md`."""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import TYPE_CHECKING

from conformance.requirements import ALL, AREAS, SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    Checks = Mapping[str, Callable[..., None]]

AREA_TITLES = {
    "CFG": "construction and refusal",
    "NET": "the network value types",
    "EGR": "what really leaves the sandbox",
    "BND": "header bindings and credentials",
    "EXE": "commands",
    "TMO": "time limits",
    "FIL": "files",
    "ACC": "the tools that the model gets",
    "LIF": "lifecycle",
    "HOK": "hooks",
    "PRC": "background processes",
}

_HEAD = """\
# Requirements

Every requirement of the ledger (`conformance/requirements`), printed by
`python -m tests.ledger_page`. An id is never reused and has one verdict in a run.

Levels: M, the public documents of the sandboxes say so; R, a rule of this suite that any
user takes for granted; S, advice that gates nothing. "M for Bashkit" means: documented of
that sandbox, a rule of this suite for others.

Sources: {sources}.
"""


def ids_of(check: Callable[..., None]) -> set[str]:
    """The requirements that a check is marked with."""
    marks = getattr(check, "pytestmark", [])
    return {str(entry) for mark in marks if mark.name == "verifies" for entry in mark.args}


def page(checks: Checks) -> str:
    """The whole page."""
    sources = "; ".join(f"{code}, {text}" for code, text in SOURCES.items())
    parts = [_HEAD.format(sources=sources)]
    for area in AREAS:
        parts += [f"## {area}: {AREA_TITLES[area]}\n", "| id | level | source | rule | checks |"]
        parts.append("|---|---|---|---|---|")
        for entry in ALL.values():
            if entry.area != area:
                continue
            proofs = sum(entry.id in ids_of(check) for check in checks.values())
            level: str = entry.level
            if entry.documented_for:
                level += f" for {', '.join(entry.documented_for)}"
            sources = " ".join(entry.sources)
            shown = str(proofs) if proofs else "planned"
            parts.append(f"| {entry.id} | {level} | {sources} | {entry.text} | {shown} |")
        parts.append("")
    return "\n".join(parts)


def spans(ids: Collection[str]) -> str:
    """Write ids of one area short: `01-04, 07`."""
    numbers = sorted(int(name.partition("-")[2]) for name in ids)
    starts = [0, *(place + 1 for place, (a, b) in enumerate(pairwise(numbers)) if b > a + 1)]
    runs = [
        numbers[first:last] for first, last in pairwise([*starts, len(numbers)]) if first < last
    ]
    ends = [dict.fromkeys((run[0], run[-1])) for run in runs]
    return ", ".join("-".join(f"{number:02}" for number in pair) for pair in ends)


def area_rows(checks: Checks) -> list[str]:
    """The rows of README's table: each area, and its ids that have a check."""
    checked = set().union(*map(ids_of, checks.values()))
    rows = []
    for area in AREAS:
        ids = [name for name in ALL if name in checked and name.startswith(f"{area}-")]
        rows.append(f"| {area} | {AREA_TITLES[area]} | {spans(ids) or 'planned'} |")
    return rows


if __name__ == "__main__":
    from tests.conftest import packaged

    sys.stdout.write(page(packaged()))
