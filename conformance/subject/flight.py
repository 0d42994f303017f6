"""A command on its way, whose caller can be cancelled."""

from __future__ import annotations

from asyncio import CancelledError
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.subject.loop import LoopThread, Outcome
    from sandboxes.contract import SandboxExecutionResult


class Flight:
    """One call of `execute`; made by `Box.begin`.

    Args:
        loop: Where it runs.
        outcome: What becomes of it.
        call: The call as a person writes it.
        take: Gives the result, or raises what the call raised.
    """

    def __init__(
        self,
        loop: LoopThread,
        outcome: Outcome[SandboxExecutionResult],
        call: str,
        take: Callable[[Outcome[SandboxExecutionResult]], SandboxExecutionResult],
    ) -> None:
        self._loop = loop
        self._outcome = outcome
        self._take = take
        self.call = call

    @property
    def ended(self) -> bool:
        """Whether it came to its end."""
        return self._outcome.done.is_set()

    def cancel(self) -> None:
        """Cancel the caller; see `result` for what comes of it."""

        async def cancel() -> None:
            if self._outcome.task is not None:
                self._outcome.task.cancel()

        self._loop.start(cancel)

    def result(self, bound: float) -> SandboxExecutionResult | None:
        """Wait for its end and give its result; None where the caller was cancelled.

        Raises:
            Violation: It did not end in time.
            Exception: What the subject raised, unchanged.
        """
        self._loop.wait(self._outcome, self._outcome.done, bound, self.call)
        if isinstance(self._outcome.error, CancelledError):
            return None
        return self._take(self._outcome)
