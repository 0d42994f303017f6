"""Ending a lab from outside: Ctrl-C is passed on, and what does not end is ended."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

_INTERRUPT_SECONDS = 60.0
_KILL_SECONDS = 5.0


class Ending:
    """Ever harder means to end a launcher's command: one at each Ctrl-C, or when time is up.

    A signal handler, not `KeyboardInterrupt`: that could break in anywhere, also where an
    earlier one is being passed on. In another thread than the main one Ctrl-C never comes.
    """

    def __init__(self) -> None:
        self._means: Iterator[tuple[Callable[[], object], float]] | None = None
        self._asked = 0
        self._guard = threading.RLock()  # a signal may come while a timer is being set
        self._timer: threading.Timer | None = None
        self._before: object = None

    def __enter__(self) -> Self:
        """Begin to listen for Ctrl-C."""
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, lambda _number, _frame: self.harder())
        return self

    def __exit__(self, *_: object) -> None:
        """Give Ctrl-C back."""
        if self._timer is not None:
            self._timer.cancel()
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)  # type: ignore[arg-type]

    def is_asked_for(self) -> bool:
        """Whether an end was asked for."""
        return self._asked > 0

    def of(self, process: subprocess.Popen[bytes]) -> None:
        """Name the launcher, which began as the leader of the command's process group."""
        interrupt, kill = (
            partial(_signal_group, process.pid, number)
            for number in (signal.SIGINT, signal.SIGKILL)
        )
        self._means = iter(
            (
                (interrupt, _INTERRUPT_SECONDS),
                (kill, _KILL_SECONDS),
                (process.terminate, _KILL_SECONDS),
                (process.kill, _KILL_SECONDS),
            )
        )
        if self._asked:
            self.harder()

    def harder(self) -> None:
        """Take the next means, and the one after it when it has not helped in time."""
        with self._guard:
            self._asked += 1
            if self._means is None:
                return
            if self._timer is not None:
                self._timer.cancel()
            means, seconds = next(self._means, (None, 0.0))
            if means is None:
                return
            means()
            self._timer = threading.Timer(seconds, self.harder)
            self._timer.daemon = True
            self._timer.start()


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)
