"""Reading the values that options take, with errors that name the option."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sandboxes.contract import messages
from sandboxes.contract.errors import RefusedConfiguration


def entry_tuple(option: str, value: Any, example: str) -> tuple[Any, ...]:  # noqa: ANN401 - anything a caller may pass is judged here
    """Make a tuple of what an option got; a single text would fall apart into letters.

    Raises:
        RefusedConfiguration: `value` is a text or no iterable at all.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise RefusedConfiguration(messages.no_tuple(option, value, example))
    return tuple(value)
