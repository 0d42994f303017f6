"""A sandbox that is opened, used and closed, and seen to leave this process as it was."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from conformance.lab.census import Census
from sandboxes import OpenRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sandboxes import RunningSandbox, Sandbox

REQUEST = OpenRequest(session_id="s")
_SECONDS = 60.0
_PATIENCE = 20.0


def used(build: Callable[[], Sandbox], use: Callable[[RunningSandbox], Awaitable[None]]) -> None:
    """Open a sandbox, use it, close it, and see that this process is as it was before."""
    before = Census.take(folders=())

    async def run() -> None:
        async with asyncio.timeout(_SECONDS), build().open(REQUEST) as box:
            await use(box)

    try:
        asyncio.run(run())
    finally:
        deadline = time.monotonic() + _PATIENCE
        while left := Census.take(folders=()).left_since(before):
            assert time.monotonic() < deadline, left
            time.sleep(0.02)
