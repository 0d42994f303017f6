"""Who may be in the lab, and at which places, at a time: file locks of its workers."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from conformance.lab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_WAIT_SECONDS = 600.0
_PAUSE_SECONDS = 0.005


class Room:
    """A room with a gate: who waits to be alone closes the gate to newcomers.

    Args:
        gate: file of the gate.
        room: file of the room.

    Raises:
        OSError: a file cannot be opened.
    """

    def __init__(self, gate: Path, room: Path) -> None:
        self._gate = _open(gate)
        self._room = _open(room)
        self._inside = 0
        self._is_alone = False

    def close(self) -> None:
        """Leave for good."""
        os.close(self._gate)
        os.close(self._room)

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Be inside beside others."""
        if not self._inside:
            self._enter(fcntl.LOCK_SH)
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                fcntl.flock(self._room, fcntl.LOCK_UN)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be inside with nobody else; who is inside already goes out first, so none deadlocks."""
        if self._is_alone:
            yield
            return
        if self._inside:
            fcntl.flock(self._room, fcntl.LOCK_UN)
        self._enter(fcntl.LOCK_EX)
        self._is_alone = True
        self._inside += 1
        try:
            yield
        finally:
            self._is_alone = False
            self._inside -= 1
            fcntl.flock(self._room, fcntl.LOCK_SH if self._inside else fcntl.LOCK_UN)

    def _enter(self, kind: int) -> None:
        _lock(self._gate, fcntl.LOCK_EX)
        try:
            _lock(self._room, kind)
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)


class Turn:
    """What one worker at a time has. Who has it does not ask to be alone: that would deadlock.

    Args:
        path: file of the lock.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._lock = _open(path)

    def close(self) -> None:
        """Give it up for good."""
        os.close(self._lock)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Have it."""
        _lock(self._lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _lock(descriptor: int, kind: int) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise LabError(
                    f"other workers did not make room within {_WAIT_SECONDS:.0f} s; "
                    "run with fewer of them"
                ) from None
            time.sleep(_PAUSE_SECONDS)
        else:
            return
