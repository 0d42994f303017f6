"""The options that are judged by name are those of the reference."""

from __future__ import annotations

from conformance.requirements import reference
from conformance.strategies import options


def test_every_option_of_the_reference_is_judged() -> None:
    judged = {*options.LIMITS, *options.COUNTS, *options.NAMES, *options.WRONG_TYPES, "hooks"}

    assert judged == {name for row in reference.SANDBOXES.values() for name in row}


def test_an_option_is_judged_in_one_way() -> None:
    kinds = (options.LIMITS, options.COUNTS, options.NAMES, tuple(options.WRONG_TYPES), ("hooks",))
    names = [name for kind in kinds for name in kind]

    assert len(names) == len(set(names))
