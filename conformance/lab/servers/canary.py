"""The lab's servers in a container on an engine's network: the only place that is dialled there.

Started as `python -m conformance.lab.servers.canary FOLDER USER GROUP` in a container that
sees the machine's files and has a network namespace of its own. Half of the network's
addresses become the container's own, so that each site has one, on the usual ports.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
import threading
import time
from ipaddress import IPv4Network
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pyroute2 import IPRoute

from conformance.lab.canaries import LINE_NAME, LOG_NAME
from conformance.lab.plan import LOCK_NAME
from conformance.lab.servers.line import Line
from conformance.lab.servers.serve import serve_canary

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEVICE = "eth0"
_RTN_LOCAL = 2
_RT_TABLE_LOCAL = 255
_RT_SCOPE_HOST = 254
_WATCH_SECONDS = 0.5
_SITES = 1 << 14


def main(folder: Path, user: int, group: int) -> None:
    """Take the addresses, become the user whose folder it is, and serve until he is gone."""
    with (folder / LOG_NAME).open("wb") as log:
        os.dup2(log.fileno(), 2)
    address, upper = _take_addresses()
    os.chdir(folder)
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
    threading.Thread(target=_end_with_the_lab, args=(folder / LOCK_NAME,), daemon=True).start()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(str(folder / LINE_NAME))
    serve_canary(folder, Line(connection), address, _pool(upper))


def _take_addresses() -> tuple[str, IPv4Network]:
    """Make the upper half of the device's network local; give the own address and that half."""
    with IPRoute() as handle:
        (link,) = handle.get_links(ifname=_DEVICE)
        (own,) = handle.get_addr(index=link["index"], family=socket.AF_INET)
        address, bits = str(own.get("local") or own.get("address")), int(own["prefixlen"])
        _, upper = IPv4Network(f"{address}/{bits}", strict=False).subnets()
        (loopback,) = handle.get_links(ifname="lo")
        handle.route(
            "add",
            dst=str(upper),
            oif=loopback["index"],
            type=_RTN_LOCAL,
            table=_RT_TABLE_LOCAL,
            scope=_RT_SCOPE_HOST,
        )
    return address, upper


def _pool(upper: IPv4Network) -> Iterator[str]:
    for address in islice(upper.hosts(), _SITES):
        if address.packed[3] not in (0, 255):
            yield str(address)


def _end_with_the_lab(lock: Path) -> None:
    """End when nobody holds the lock any more: the lab's launcher is gone, however it ended."""
    held = os.open(lock, os.O_RDWR)
    while True:
        try:
            fcntl.lockf(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(_WATCH_SECONDS)
        else:
            os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
