"""The servers' process: opens the sockets of both sides, then serves until it is killed.

One process for both namespaces, since a socket stays in the namespace that it was made
in: so there is one journal, and one order of events.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from conformance.lab import kernel
from conformance.lab.processes import leave_group
from conformance.lab.servers import places

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from conformance.lab.plan import Mode
    from conformance.lab.servers.line import Line


def main(mode: Mode, folder: Path, line: Line) -> None:
    """Serve until killed.

    Args:
        mode: the lab's.
        folder: the lab's folder.
        line: the conversation with the lab's builder.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    leave_group()
    host: places.HostSockets = []
    packets: list[socket.socket] = []
    if mode == "sealed":
        host = places.open_host_sockets()
        packets = _packet_sockets()
        kernel.unshare(kernel.CLONE_NEWNET)
        kernel.raise_loopback()
        line.say("namespace")
    # Only now: these imports take longer than all else, and the network is built meanwhile.
    from conformance.lab.servers.serve import serve

    serve(mode, folder, line, host, packets)


def _packet_sockets() -> list[socket.socket]:
    import socket

    return [socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0) for _ in range(2)]
