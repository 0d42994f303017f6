"""GitHub as a service of the lab's: what its keeper becomes when somebody asks for it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from conformance.lab.github.place import CONTROL_SOCKET, DOOR, FOLDER
from conformance.lab.services import Service, listen

if TYPE_CHECKING:
    import socket


def _become_github(control: socket.socket, subject: int, internet: int) -> None:
    os.close(subject)
    os.close(internet)
    # Only now: most runs need none, and these imports take longer than a lab.
    import asyncio

    from conformance.lab.github.service import run

    asyncio.run(run(FOLDER, listen(DOOR), control))


GITHUB = Service("GitHub", CONTROL_SOCKET, FOLDER, _become_github)
