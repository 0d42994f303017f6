"""Say which addresses a cloud sandbox can open connections to; nothing is sent on one."""

from __future__ import annotations

import errno
import select
import time

from sandboxes.bare import socket, suppress


def opened(targets: list[tuple[str, int]], seconds: float) -> list[str]:
    """Those that accept a connection within so many seconds."""
    waiting: dict[int, tuple[socket.socket, str]] = {}
    found = []
    poll = select.poll()
    for address, port in targets:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with suppress(OSError):  # this machine has no such family
            one = socket.socket(family, socket.SOCK_STREAM)
            one.setblocking(False)
            code = one.connect_ex((address, port))
            if code == 0:
                found.append(address)
            elif code == errno.EINPROGRESS:
                waiting[one.fileno()] = one, address
                poll.register(one, select.POLLOUT)
    deadline = time.monotonic() + seconds
    while waiting and (left := deadline - time.monotonic()) > 0:
        for descriptor, _ in poll.poll(left * 1000):
            one, address = waiting.pop(descriptor)
            poll.unregister(descriptor)
            if one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                found.append(address)
            one.close()
    return found


def ever_opened(
    targets: list[tuple[str, int]], seconds: float, looks: int, pause: float
) -> list[str]:
    """The same, looked at several times, until anything was open."""
    found = opened(targets, seconds)
    for _ in range(looks - 1):
        if not found:
            time.sleep(pause)
            found = opened(targets, seconds)
    return found
