"""Whether one configuration may open several sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.verdicts import NotApplicable

if TYPE_CHECKING:
    from conformance.subject.targets import Target

# What names one thing, which one session has at a time.
_ONE_THING = ("workspace", "pre_provisioned_sandbox_id")


def needs_many(target: Target) -> None:
    """Go on only where the user's options leave room for sessions beside each other.

    Raises:
        NotApplicable: One of them names one thing.
    """
    if named := [option for option in _ONE_THING if target.options.get(option) is not None]:
        raise NotApplicable(f"{named[0]} names one thing, which one session has at a time")
