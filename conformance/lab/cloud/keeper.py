"""The cloud as a service of the lab's: what its keeper becomes when somebody asks for it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from conformance.lab.cloud.place import CONTROL_SOCKET, DOOR, FOLDER
from conformance.lab.errors import LabError
from conformance.lab.processes import fork
from conformance.lab.services import Service, listen

if TYPE_CHECKING:
    import socket


def _become_cloud(control: socket.socket, subject: int, internet: int) -> None:
    # Only now: most runs need no cloud, and these imports take longer than a lab.
    import asyncio

    from conformance.lab.cloud import router
    from conformance.lab.cloud.service import Cloud, run

    router.enter_router()
    place = os.getpid()
    builder = fork(lambda: router.join(place, subject, internet))
    if os.waitpid(builder, 0)[1]:
        raise LabError("the cloud's network was not built; see the message above")
    os.close(subject)
    os.close(internet)
    asyncio.run(run(Cloud(FOLDER), listen(DOOR), control))


CLOUD = Service("cloud", CONTROL_SOCKET, FOLDER, _become_cloud)
