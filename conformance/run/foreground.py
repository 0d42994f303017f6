"""Lending the terminal to another process group, as a shell does."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def terminal_lent(group: int) -> Iterator[None]:
    """Let a process group read from the terminal, and get its Ctrl-C, where we could."""
    if not (os.isatty(0) and os.tcgetpgrp(0) == os.getpgrp()):
        yield
        return
    os.tcsetpgrp(0, group)
    try:
        yield
    finally:
        # This process is in the background now; unblocked, the call would stop it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        os.tcsetpgrp(0, os.getpgrp())
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
