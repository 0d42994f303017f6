"""Starting the servers' process."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

from conformance.lab.processes import close_all, fork
from conformance.lab.servers.line import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from conformance.lab.plan import Mode


class ServerProcess:
    """The builder's view of the servers.

    Args:
        pid: their process.
        line: the conversation with them.
    """

    def __init__(self, pid: int, line: Line) -> None:
        self.pid = pid
        self._line = line

    def await_namespace(self) -> None:
        """Wait until the servers are in a network namespace of their own."""
        self._line.hear("namespace")

    def network_is_built(self, device: str) -> None:
        """Tell the servers that `device` leads from the subject's namespace to theirs."""
        self._line.say("network", device=device)

    def await_ready(self) -> Mapping[str, str]:
        """Wait until every server listens, and give the URL of each proxy by its kind."""
        proxies: Mapping[str, str] = self._line.hear("ready")
        self._line.close()
        return proxies


def start_servers(
    mode: Mode, folder: Path, close: Iterable[int], prepare: Callable[[], object] = lambda: None
) -> ServerProcess:
    """Fork the servers off.

    Args:
        mode: the lab's.
        folder: the lab's folder, where they put their socket, journal and certificates.
        close: descriptors that are the command's or the launcher's alone.
        prepare: called first in the servers' process.
    """
    ours, theirs = socket.socketpair()

    def become_servers() -> None:
        ours.close()
        close_all(close)
        prepare()
        os.chdir(folder)  # the old one is the real folder below an overlay
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)  # who reads the command's output must see its end
        from conformance.lab.servers import process

        process.main(mode, folder, Line(theirs))

    pid = fork(become_servers)
    theirs.close()
    return ServerProcess(pid, Line(ours))
