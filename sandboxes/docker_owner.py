"""Whose a container is, so that what a killed process left behind is found and removed."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

SESSION_LABEL = "sandbox-conformance.session"
_MACHINE, _PROCESS, _BEGAN, _HOST = (
    f"sandbox-conformance.owner.{name}" for name in ("machine", "process", "began", "host")
)
_STATE_FIELD, _BEGAN_FIELD = 0, 19  # of what follows the name in /proc/PID/stat


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, among all machines and all their process namespaces.

    Attributes:
        machine: The machine since it was started, and the process namespace; empty where
            the system does not say.
        pid: The process's number there.
        began: When it began, in the kernel's ticks.
    """

    machine: str
    pid: int
    began: int

    @classmethod
    def here(cls) -> Self:
        """This process."""
        pid = os.getpid()
        began = _began(pid)
        return cls(_machine() if began is not None else "", pid, began or 0)

    @classmethod
    def of(cls, labels: Mapping[str, str] | None) -> Self | None:
        """Read an owner from labels; None where they name none."""
        try:
            found = labels or {}
            return cls(found[_MACHINE], int(found[_PROCESS]), int(found[_BEGAN]))
        except (KeyError, ValueError):
            return None

    def labels(self) -> dict[str, str]:
        """The labels that name it; that of the host is for people."""
        return {
            _MACHINE: self.machine,
            _PROCESS: str(self.pid),
            _BEGAN: str(self.began),
            _HOST: socket.gethostname(),
        }

    def is_gone(self) -> bool:
        """Whether it surely ended: its number means nothing on other machines."""
        if not self.machine or self.machine != _machine():
            return False
        return _began(self.pid) != self.began


def _machine() -> str:
    """The boot and the process namespace; empty where the system does not say."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def _began(pid: int) -> int | None:
    """When a process began; None where there is none, or where it has ended."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = line.rpartition(")")[2].split()
    return None if fields[_STATE_FIELD] in "ZX" else int(fields[_BEGAN_FIELD])
