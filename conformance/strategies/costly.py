"""Fewer examples where each one is much: many lives of a sandbox, and a census around them."""

from __future__ import annotations

from hypothesis import Phase, settings

_SHARE = 8
_FEWEST = 3


def few_examples() -> settings:
    """The profile of the run with an eighth of its examples, none of them made smaller."""
    return settings(
        max_examples=max(1, settings().max_examples // _SHARE),
        phases=(Phase.explicit, Phase.generate),
    )


def half_the_examples() -> settings:
    """The profile of the run with half of its examples, for a check that opens one session each.

    But never fewer than `quick` has.
    """
    most = settings().max_examples
    return settings(max_examples=max(min(most, _FEWEST), most // 2))
