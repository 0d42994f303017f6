"""An instance: a process with namespaces, files and a network of its own."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from conformance.lab.cloud import forks, wires
from conformance.lab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.lab.cloud.nursery import Nursery, Order

_SECONDS = 30.0


class Instance:
    """One that was started; made by `start`.

    Args:
        order: what it is.
        folder: where its sockets are, outside of it.
        outer: the process that waits for it.
        inner: its first process.
    """

    def __init__(self, order: Order, folder: Path, outer: int, inner: int) -> None:
        self.order = order
        self.folder = folder
        self.pid = inner
        self._namespace = os.open(f"/proc/{inner}/ns/net", os.O_RDONLY)
        self._end = asyncio.ensure_future(forks.gone(outer))

    @classmethod
    async def start(cls, order: Order, folder: Path, nursery: Nursery) -> Instance:
        """Start one.

        Raises:
            LabError: it did not start; the message of its builder is on the error stream.
        """
        folder.mkdir(mode=0o700)  # noqa: ASYNC240 - in memory
        listeners = [_listen(folder / name) for name in ("calls", "public")]
        answer, told = os.pipe()
        place = folder / "root"
        place.mkdir()
        nursery.begin(order, place, told, [listener.fileno() for listener in listeners])
        os.close(told)
        for listener in listeners:
            listener.close()
        pids = [int(word) for word in (await forks.heard(answer, _SECONDS)).split()]
        try:
            outer, inner = pids
            return cls(order, folder, outer, inner)
        except (ValueError, FileNotFoundError) as cause:
            for pid in pids[:1]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                await forks.gone(pid)
            shutil.rmtree(folder)
            raise LabError("an instance of the cloud did not start; see above") from cause

    @property
    def calls(self) -> Path:
        """The socket of the server inside."""
        return self.folder / "calls"

    @property
    def public(self) -> Path:
        """The socket that leads to the port that somebody inside bound."""
        return self.folder / "public"

    @property
    def is_alive(self) -> bool:
        """Whether its first process is there."""
        return not self._end.done()

    async def over(self) -> None:
        """Wait until it has ended."""
        await asyncio.shield(self._end)

    async def enforce(self, ranges: Sequence[str]) -> None:
        """Let it reach these ranges alone from now on.

        Raises:
            LabError: the kernel refused.
        """
        number, namespace = self.order.number, self._namespace
        await forks.in_child(lambda: wires.enforce(number, namespace, ranges), (namespace,))

    def kill(self) -> None:
        """End all that runs in it, as a machine does that fails."""
        with suppress(ProcessLookupError):
            if self.is_alive:
                os.kill(self.pid, signal.SIGKILL)

    async def remove(self) -> None:
        """End it, and forget all that was made for it."""
        if self._namespace < 0:
            return
        namespace, self._namespace = self._namespace, -1
        self.kill()
        await asyncio.shield(self._end)
        os.close(namespace)
        wires.detach(self.order.number)
        shutil.rmtree(self.folder, ignore_errors=True)


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(128)
    return listener
