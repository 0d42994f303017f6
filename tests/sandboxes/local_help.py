"""A local sandbox in a test: quick to end."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandboxes.local_sandbox import DangerousLocalHostWarning, DangerousLocalSandbox
from sandboxes.timeouts import Commands
from tests.sandboxes.used import REQUEST, used

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sandboxes import RunningSandbox

__all__ = ["REQUEST", "alive", "built", "inside", "nothing"]


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
    """Open a local sandbox, and use it; see `used`."""
    used(lambda: built(**options), use)


async def nothing(box: RunningSandbox) -> None:
    assert (await box.execute("echo $((6 * 7))")).stdout == "42\n"


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
