"""How binding a check's requirements are for a subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.requirements import ALL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.requirements import Declares


def gates(ids: Iterable[str], declared: Declares) -> bool:
    """Whether one of the requirements is more than advice to the subject."""
    return any(ALL[name].level_for(declared) != "S" for name in ids)
