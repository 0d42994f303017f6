"""The ledger: one constant per requirement of the contract, in one namespace.

Append only: an id that was issued keeps its meaning, or is withdrawn with a reason.
"""

from __future__ import annotations

import difflib
from types import MappingProxyType
from typing import TYPE_CHECKING

from conformance.requirements import (
    acc,
    bnd,
    cfg,
    egr,
    exe,
    fil,
    hok,
    lif,
    net,
    prc,
    tmo,
)
from conformance.requirements.acc import *  # noqa: F403 - the ledger is one namespace
from conformance.requirements.bnd import *  # noqa: F403
from conformance.requirements.cfg import *  # noqa: F403
from conformance.requirements.egr import *  # noqa: F403
from conformance.requirements.exe import *  # noqa: F403
from conformance.requirements.fil import *  # noqa: F403
from conformance.requirements.hok import *  # noqa: F403
from conformance.requirements.lif import *  # noqa: F403
from conformance.requirements.net import *  # noqa: F403
from conformance.requirements.prc import *  # noqa: F403
from conformance.requirements.requirement import Declares, Level, Requirement
from conformance.requirements.tmo import *  # noqa: F403

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

SOURCES: Mapping[str, str] = MappingProxyType(
    {
        "000": "the reference of the sandbox classes",
        "001": "the older sandbox guide",
        "002": "the network guide",
        "004": "the guide to sandbox hooks",
        "card": "the words of those who asked for this suite",
        "ours": "a rule of this suite",
    }
)

_AREAS = (cfg, net, egr, bnd, exe, tmo, fil, acc, lif, hok, prc)

ALL: Mapping[str, Requirement] = MappingProxyType(
    {
        value.id: value
        for module in _AREAS
        for value in vars(module).values()
        if isinstance(value, Requirement)
    }
)
"""Every requirement by its id, in the order of the contract."""

AREAS: tuple[str, ...] = tuple(dict.fromkeys(requirement.area for requirement in ALL.values()))


class UnknownRequirement(ValueError):
    """A selection names no requirement and no area."""


def select(text: str) -> tuple[str, ...]:
    """Read a comma-separated selection of ids and areas, as `EGR-11,NET`.

    An area stands for those of its ids that have a check. Letter case does not matter.

    Returns:
        The ids and areas, each once, in the order of the contract.

    Raises:
        UnknownRequirement: An item is neither an id nor an area, or there is none.
    """
    wanted = [item.strip().upper().replace("_", "-") for item in text.split(",") if item.strip()]
    if not wanted:
        raise UnknownRequirement(
            f"the selection {text!r} names no requirement; "
            f"pass ids or areas, such as EGR-11,NET (areas: {', '.join(AREAS)})"
        )
    for item in wanted:
        if item not in ALL and item not in AREAS:
            near = difflib.get_close_matches(item, [*ALL, *AREAS], n=3, cutoff=0.6)
            hint = f"did you mean {', '.join(near)}? " if near else ""
            raise UnknownRequirement(
                f"there is no requirement {item}; {hint}areas: {', '.join(AREAS)}"
            )
    known = [name for area in AREAS for name in (area, *(n for n in ALL if n.startswith(area)))]
    return tuple(name for name in known if name in wanted)


def covers(selection: Collection[str], name: str) -> bool:
    """Whether a selection names an id, or the area that it is of."""
    return name in selection or name.partition("-")[0] in selection


__all__ = [
    "ALL",
    "AREAS",
    "SOURCES",
    "Declares",
    "Level",
    "Requirement",
    "UnknownRequirement",
    "covers",
    "select",
]
__all__ += [entry.id.replace("-", "_") for entry in ALL.values()]
