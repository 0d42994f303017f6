"""Values that a generated check tries as well, whatever its profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from hypothesis import example

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

F = TypeVar("F", bound="Callable[..., None]")


def each(name: str, values: Iterable[object], **others: object) -> Callable[[F], F]:
    """Make a generated check try each of these values as well, whatever its profile.

    For spaces that are small and where each point is a way to be wrong of its own.

    Args:
        name: The argument that takes the values.
        values: The values.
        **others: A value for each other argument, the same every time.
    """

    def decorate(check: F) -> F:
        for value in reversed(list(values)):
            check = example(**{name: value}, **others)(check)
        return check

    return decorate
