"""A credential that lives for a while, and is renewed before it ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from sandboxes.egress.denied import Denied

_FIFTH = 0.2


@dataclass(frozen=True, slots=True)
class Issued:
    """A credential as it was issued.

    Attributes:
        value: What is sent.
        seconds: How long it is good for, from when it was asked for.
    """

    value: str = field(repr=False)
    seconds: float


Issue = Callable[[], Awaitable[Issued]]
"""Asks for a new credential; raises `OSError` or `Denied` where there is none."""


class Credential:
    """Gives a credential that is still good for a fifth of its life.

    Args:
        issue: How a new one is had.
        clock: Seconds that only grow.
    """

    def __init__(self, issue: Issue, clock: Callable[[], float] = time.monotonic) -> None:
        self._issue, self._clock = issue, clock
        self._held: Issued | None = None
        self._renew_at = 0.0
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self) -> str:
        """Give it, a new one where it is about to end.

        Raises:
            Denied: None can be had.
        """
        if self._held is not None and self._clock() < self._renew_at:
            return self._held.value
        async with self._one_at_a_time:
            if self._held is None or self._clock() >= self._renew_at:
                began = self._clock()
                try:
                    self._held = await self._issue()
                except OSError:
                    raise Denied(502, "the credential cannot be renewed; try again") from None
                self._renew_at = began + self._held.seconds * (1 - _FIFTH)
            return self._held.value
