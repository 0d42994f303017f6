"""A default limit that is short enough to be waited for."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from conformance.requirements import reference

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from conformance.subject.targets import Target
    from sandboxes.contract import OpenRequest, RunningSandbox, Sandbox

OPTION = "default_exec_timeout_seconds"


def documented(target: Target) -> float | None:
    """The default limit that the documents give this class, if they give it one."""
    return reference.DEFAULT_LIMITS.get(reference.public_class(target.cls).__name__)


@contextmanager
def small_default(target: Target, seconds: int) -> Iterator[dict[str, Any]]:
    """Give the options with which a sandbox has this default limit, while the block runs.

    Where the constructor has no option for it, what `open` yields is told so: its attribute
    is what the limit of a command is taken from.
    """
    if target.has_option(OPTION):
        yield {OPTION: seconds}
        return
    original = target.cls.open

    @asynccontextmanager
    async def open_(sandbox: Sandbox, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
        async with original(sandbox, request) as running:
            with suppress(Exception):  # one that cannot be told shows it by its commands
                running.default_timeout_seconds = float(seconds)
            yield running

    with patch.object(target.cls, "open", open_):
        yield {}
