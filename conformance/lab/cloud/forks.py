"""Work in processes of its own beside a running event loop."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from conformance.lab.errors import LabError
from conformance.lab.processes import fork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_BYTES = 4096


def close_others(kept: Iterable[int]) -> None:
    """Close every descriptor but the standard three and those kept.

    What a child holds open by accident, such as a caller's connection, would never end.
    """
    kept = {0, 1, 2, *kept}
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with suppress(OSError):  # the listing's own
                os.close(int(name))


async def in_child(action: Callable[[], object], kept: Iterable[int] = ()) -> None:
    """Have a child do something, and wait for it.

    Raises:
        LabError: it failed; its message is on the error stream.
    """

    def alone() -> None:
        close_others(kept)
        action()

    status = await ended(fork(alone))
    if status:
        raise LabError(f"the cloud's {getattr(action, '__name__', 'work')} ended with {status}")


async def ended(pid: int) -> int:
    """Wait for a child, and give its wait status."""
    await gone(pid)
    return os.waitpid(pid, 0)[1]  # noqa: ASYNC222 - it has ended


async def gone(pid: int) -> None:
    """Wait until a process has ended, which may be somebody else's child."""
    loop = asyncio.get_running_loop()
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    over = asyncio.Event()
    loop.add_reader(handle, over.set)
    try:
        await over.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


async def heard(descriptor: int, seconds: float) -> bytes:
    """Read a pipe to its end, or for so long."""
    loop = asyncio.get_running_loop()
    data, more = b"", asyncio.Event()
    loop.add_reader(descriptor, more.set)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    await more.wait()
                    more.clear()
                    chunk = os.read(descriptor, _BYTES)
                    if not chunk:
                        break
                    data += chunk
        return data
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
