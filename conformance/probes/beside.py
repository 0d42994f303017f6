"""Several calls of a subject side by side, for checks that mostly wait."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


def at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Make these calls at the same time, each in a thread, and give what they returned.

    Each of them is bounded by itself, as every call of a sandbox is.

    Raises:
        BaseException: What the first of them raised, in their order, when all have ended.
    """
    results: list[Any] = [None] * len(calls)
    errors: dict[int, BaseException] = {}

    def work(place: int) -> None:
        try:
            results[place] = calls[place]()
        except BaseException as error:  # noqa: BLE001 - it is raised where the check waits
            errors[place] = error

    threads = [
        threading.Thread(target=work, args=(place,), daemon=True) for place in range(len(calls))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place in sorted(errors):
        raise errors[place]
    return results
