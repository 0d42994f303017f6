"""Blocking calls beside the event loop, each in a daemon thread of its own.

Not asyncio's default executor: one call that never returns would occupy a place
in its pool, and would keep the interpreter from exiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def in_thread(call: Callable[[], T]) -> asyncio.Future[T]:
    """Start a blocking call in a new thread and return the future of its result.

    Cancelling the future lets go of the call; it does not end it.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if isinstance(error, StopIteration):  # no future takes one
            error = RuntimeError(f"a blocking call raised {error!r}")
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type] # T itself may be None

    def work() -> None:
        result, failure = None, None
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001 - whoever awaits the future gets it
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(settle, result, failure)

    threading.Thread(target=work, name="sandbox-call", daemon=True).start()
    return future


async def to_the_end(future: asyncio.Future[T]) -> T:
    """Await work that must not be left half done, and deliver a cancellation after it."""
    cancelled = None
    while not future.done():
        try:
            await asyncio.wait({future})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not future.cancelled():
            future.exception()  # retrieved: the cancellation is what the caller hears of
        raise cancelled
    return future.result()


async def made_or_undone(make: Callable[[], T], undo: Callable[[T], None]) -> T:
    """Make something in a thread; undo it there where the caller was cancelled meanwhile."""
    making = in_thread(make)
    try:
        return await to_the_end(making)
    except asyncio.CancelledError:
        if not making.cancelled() and making.exception() is None:
            await to_the_end(in_thread(lambda: undo(making.result())))
        raise
