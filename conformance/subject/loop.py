"""A subject's event loop, in a thread of its own, that is given up when it hangs."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from conformance.bounds import BOUNDS
from conformance.verdicts import Hang

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

T = TypeVar("T")


class Outcome(Generic[T]):
    """What became of one coroutine; set once, in the loop's thread."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.value: T | None = None
        self.error: BaseException | None = None
        self.task: asyncio.Task[None] | None = None

    async def keep(self, work: Coroutine[Any, Any, T]) -> None:
        """Run the work to its end. Nothing that foreign code raises leaves the task."""
        try:
            self.value = await work
        except BaseException as error:  # noqa: BLE001 - SystemExit would end the loop's thread
            self.error = error
        finally:
            self.done.set()


class LoopThread:
    """An event loop on a daemon thread; it never keeps the interpreter from exiting."""

    def __init__(self) -> None:
        self.given_up = False
        # The loop itself holds its tasks only weakly.
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="subject-loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def start(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Outcome[T]:
        """Begin the work on the loop and return at once."""
        outcome: Outcome[T] = Outcome()

        def begin() -> None:
            outcome.task = self._loop.create_task(outcome.keep(work()))
            self._tasks.add(outcome.task)
            outcome.task.add_done_callback(self._tasks.discard)

        self._loop.call_soon_threadsafe(begin)
        return outcome

    def finish(
        self, work: Callable[[], Coroutine[Any, Any, T]], bound: float, what: str
    ) -> Outcome[T]:
        """Run the work to its end, whatever that is.

        Args:
            work: Makes the coroutine, in the loop's thread.
            bound: How long it may take, in seconds.
            what: The call as a person writes it, for the message.

        Raises:
            Hang: It took longer, or its event loop no longer answers.
        """
        outcome = self.start(work)
        self.wait(outcome, outcome.done, bound, what)
        return outcome

    def wait(self, outcome: Outcome[T], reached: threading.Event, bound: float, what: str) -> None:
        """Wait until the work reached a point, or ended.

        Raises:
            Hang: It did neither within `bound` seconds. The work is cancelled; a
                loop on which even that does not end is given up for good.
        """
        if self.given_up:
            raise Hang(
                f"an earlier call still blocks the sandbox, so {what} could not be made",
                remedy="end every call within its bound",
            )
        if reached.wait(bound):
            return
        blocked = not self._answers()
        if outcome.task is not None and not blocked:
            self._loop.call_soon_threadsafe(outcome.task.cancel)
        if blocked or not outcome.done.wait(BOUNDS.cancel):
            self.given_up = True
        fact = "it blocks the event loop" if blocked else "the event loop is free, the call hangs"
        raise Hang(
            f"{what} did not return within {bound:g} s: {fact}",
            remedy="return in time, and do blocking work in threads"
            if blocked
            else "return in time, with exit code 124 where a command's limit has passed",
        )

    def _answers(self) -> bool:
        answered = threading.Event()
        self._loop.call_soon_threadsafe(answered.set)
        return answered.wait(BOUNDS.answer)

    def stop(self) -> None:
        """End what still runs and free the loop; one that was given up is left alone."""
        if self.given_up or not self._answers():
            return
        for task in tuple(self._tasks):
            self._loop.call_soon_threadsafe(task.cancel)
        self._answers()  # a turn for what was cancelled
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(BOUNDS.answer)
        if not self._thread.is_alive():
            self._loop.close()
