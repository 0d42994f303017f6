"""A variable of this process, for as long as a check needs it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def variable(name: str, value: str) -> Iterator[None]:
    """Set a variable that nobody else has while the block runs.

    Only this one is touched: a thread of the subject's must never find an environment that
    is being put back.
    """
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
