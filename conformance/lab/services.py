"""Services of the lab's own, each a process that begins to serve when somebody asks for it.

Their keepers are forked while the lab is built, and have what it takes to enter its
namespaces. Nothing listens for customers, and none of their names exists, until the first
question comes.
"""

from __future__ import annotations

import os
import select
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from conformance.lab import kernel
from conformance.lab.errors import LabError
from conformance.lab.processes import close_all, fork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


@dataclass(frozen=True)
class Service:
    """One service.

    Args:
        name: what it is asked for by.
        control: the socket at which checks ask it; the first question has it start.
        folder: made for it; its working folder.
        become: serves for ever; takes the control socket, which listens, and descriptors of
            the network namespaces of the subject and of the internet.
    """

    name: str
    control: Path
    folder: Path
    become: Callable[[socket.socket, int, int], None]


def start_keeper(service: Service, internet_pid: int, close: Iterable[int]) -> int:
    """Fork the keeper of a service, and give its id once it can be asked.

    Args:
        service: which.
        internet_pid: a process in the internet's network namespace.
        close: descriptors that are not the keeper's.

    Raises:
        LabError: the keeper ended.
    """
    ready, told = os.pipe()
    keeper = fork(lambda: _keep(service, internet_pid, told, [*close, ready]))
    os.close(told)
    answer = os.read(ready, 1)
    os.close(ready)
    if not answer:
        raise LabError(f"the keeper of the lab's {service.name} ended; see the message above")
    return keeper


def _keep(service: Service, internet_pid: int, told: int, close: Iterable[int]) -> NoReturn:
    os.setsid()
    close_all(close)
    subject, internet = (
        os.open(f"/proc/{process}/ns/net", os.O_RDONLY) for process in ("self", internet_pid)
    )
    kernel.drop_capabilities(kernel.MACHINE_CAPABILITIES)
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    service.folder.mkdir(mode=0o700)
    os.chdir(service.folder)
    control = listen(service.control)
    os.write(told, b"y")
    os.close(told)
    select.select([control], [], [])
    service.become(control, subject, internet)
    raise AssertionError("a service serves until it is killed")


def listen(path: Path) -> socket.socket:
    """Open a unix socket that listens."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(128)
    return listener
