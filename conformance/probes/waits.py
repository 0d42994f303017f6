"""Waits of the harness's own, beside those that are judged: is this machine on time?"""

from __future__ import annotations

import threading
import time

from conformance.bounds import BOUNDS
from conformance.verdicts import HarnessError


class ControlWait:
    """A wait that begins now and that only a busy machine makes long.

    Args:
        seconds: How long it is to take.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._took = 0.0
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        began = time.monotonic()
        time.sleep(self._seconds)
        self._took = time.monotonic() - began

    def blame_the_sandbox(self) -> None:
        """Make sure that it is the sandbox that is late.

        Raises:
            HarnessError: This wait was late too.
        """
        self._thread.join(self._seconds + BOUNDS.slack)
        if not 0 < self._took < self._seconds + BOUNDS.slack:
            raise HarnessError("this machine is too busy: a control wait of the suite was late too")
