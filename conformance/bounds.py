"""Every time bound of a run, in one object."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How long things may take, in seconds.

    Attributes:
        open: Until a sandbox is ready. The contract bounds no start; this only keeps a
            run from hanging.
        close: Until a closed sandbox is deleted. The same.
        files: One read or write of a file. The same.
        kill: From the time limit of a command to its SIGKILL; documented as 5 seconds.
        slack: What a caller may wait beyond a bound on a busy machine.
        unlimited: Taken as the limit of a command that a check sends without one:
            checks keep such commands short, whatever the sandbox's default.
        cancel: For a cancelled call to let go, before its event loop is given up.
        answer: For an event loop that is alive to run a callback.
        shrink: Spent on making a failing example smaller.
        shrink_advice: The same where the requirement is advice.
        silence: For a check to end or to begin its next example, before its process is
            killed; longer than an opening and a closing.
        exit: For a finished test process to leave.
    """

    open: float = 90.0
    close: float = 90.0
    files: float = 30.0
    kill: float = 5.0
    slack: float = 3.0
    unlimited: float = 30.0
    cancel: float = 2.0
    answer: float = 1.0
    shrink: float = 20.0
    shrink_advice: float = 1.0
    silence: float = 300.0
    exit: float = 8.0

    def execute(self, limit: float) -> float:
        """How long the caller of a command with this time limit may wait."""
        return limit + self.kill + self.slack


BOUNDS = Bounds()
