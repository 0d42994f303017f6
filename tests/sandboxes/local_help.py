"""A local sandbox in a test: quick to end, and seen to leave this process as it was."""

from __future__ import annotations

import asyncio
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.lab.census import Census
from sandboxes import OpenRequest, RunningSandbox
from sandboxes.local_sandbox import DangerousLocalHostWarning, DangerousLocalSandbox
from sandboxes.timeouts import Commands

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

REQUEST = OpenRequest(session_id="s")
PATIENCE = 20.0


class _Quick(DangerousLocalSandbox):
    """Whose processes have less time to end."""

    @staticmethod
    def commands_type() -> Commands:  # type: ignore[override] # called like the class
        return Commands(grace_seconds=0.3)


def built(**options: Any) -> DangerousLocalSandbox:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DangerousLocalHostWarning)
        return _Quick(**options)


def inside(use: Callable[[RunningSandbox], Awaitable[None]], **options: Any) -> None:
    """Open a sandbox, use it, close it, and see that this process is as it was before."""
    before = Census.take(folders=())

    async def run() -> None:
        async with asyncio.timeout(30), built(**options).open(REQUEST) as box:
            await use(box)

    try:
        asyncio.run(run())
    finally:
        deadline = time.monotonic() + PATIENCE
        while left := Census.take(folders=()).left_since(before):
            assert time.monotonic() < deadline, left
            time.sleep(0.02)


async def nothing(box: RunningSandbox) -> None:
    assert (await box.execute("echo $((6 * 7))")).stdout == "42\n"


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
