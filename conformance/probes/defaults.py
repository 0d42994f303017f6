"""A default limit that is short enough to be waited for."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from types import new_class
from typing import TYPE_CHECKING

from conformance.requirements import reference

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from conformance.subject.targets import Target
    from sandboxes.contract import OpenRequest, RunningSandbox, Sandbox

OPTION = "default_exec_timeout_seconds"


def documented(target: Target) -> float | None:
    """The default limit that the documents give this class, if they give it one."""
    return reference.DEFAULT_LIMITS.get(reference.public_class(target.cls).__name__)


def small_default(target: Target, seconds: int) -> Target:
    """Give the same subject with this default limit.

    Where the constructor has no option for it, what `open` yields is told so: its attribute
    is what the limit of a command is taken from.
    """
    if target.has_option(OPTION):
        return target.variant(options={OPTION: seconds})
    cls = target.cls

    @asynccontextmanager
    async def open_(sandbox: Sandbox, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
        async with cls.open(sandbox, request) as running:
            with suppress(Exception):  # one that cannot be told shows it by its commands
                running.default_timeout_seconds = float(seconds)
            yield running

    # A type of its own, since other checks may open the subject at the same time.
    names = {"open": open_, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    return target.variant(
        cls=new_class(cls.__name__, (cls,), exec_body=lambda own: own.update(names))
    )


def can_be_changed(target: Target) -> bool:
    """Whether a sandbox that goes on past a small default breaks a rule."""
    return target.has_option(OPTION) or documented(target) is not None
