"""The keeper: the process of a sealed lab that becomes the cloud when somebody asks for it.

It was forked while the lab was built, and kept what it takes to make namespaces. Nothing
listens for customers, and no name of the provider's exists, until the first question comes.
"""

from __future__ import annotations

import os
import select
import socket
from typing import TYPE_CHECKING, NoReturn

from conformance.lab import kernel
from conformance.lab.cloud.place import CONTROL_SOCKET, DOOR, FOLDER
from conformance.lab.errors import LabError
from conformance.lab.processes import close_all, fork

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def start_cloud_keeper(internet_pid: int, close: Iterable[int]) -> int:
    """Fork the keeper, and give its id once it can be asked.

    Args:
        internet_pid: a process in the internet's network namespace.
        close: descriptors that are not the keeper's.

    Raises:
        LabError: the keeper ended.
    """
    ready, told = os.pipe()
    keeper = fork(lambda: _keep(internet_pid, told, [*close, ready]))
    os.close(told)
    answer = os.read(ready, 1)
    os.close(ready)
    if not answer:
        raise LabError("the keeper of the lab's cloud ended; see the message above")
    return keeper


def _keep(internet_pid: int, told: int, close: Iterable[int]) -> NoReturn:
    os.setsid()
    close_all(close)
    subject, internet = (
        os.open(f"/proc/{process}/ns/net", os.O_RDONLY) for process in ("self", internet_pid)
    )
    kernel.drop_capabilities(kernel.MACHINE_CAPABILITIES)
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    FOLDER.mkdir(mode=0o700)
    os.chdir(FOLDER)
    control = _listen(CONTROL_SOCKET)
    os.write(told, b"y")
    os.close(told)
    select.select([control], [], [])
    _become_cloud(control, subject, internet)
    raise AssertionError("the cloud serves until it is killed")


def _become_cloud(control: socket.socket, subject: int, internet: int) -> None:
    # Only now: most runs need no cloud, and these imports take longer than a lab.
    import asyncio

    from conformance.lab.cloud import wires
    from conformance.lab.cloud.service import Cloud, run

    wires.enter_router()
    router = os.getpid()
    builder = fork(lambda: wires.join(router, subject, internet))
    if os.waitpid(builder, 0)[1]:
        raise LabError("the cloud's network was not built; see the message above")
    os.close(subject)
    os.close(internet)
    asyncio.run(run(Cloud(FOLDER), _listen(DOOR), control))


def _listen(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(128)
    return listener
