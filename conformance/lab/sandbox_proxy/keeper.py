"""Sandbox Proxy as a service of the lab's: what its keeper becomes when somebody asks for it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from conformance.lab import kernel
from conformance.lab.plan import BUNDLE_NAME
from conformance.lab.sandbox_proxy.place import (
    API_DOOR,
    CONTROL_SOCKET,
    FOLDER,
    PROXY_DOOR,
)
from conformance.lab.services import Service, listen

if TYPE_CHECKING:
    import socket


def _become_sandbox_proxy(control: socket.socket, subject: int, internet: int) -> None:
    # What it sends goes out to the internet from there, and never takes the subject's wire.
    kernel.setns(internet, kernel.CLONE_NEWNET)
    os.close(subject)
    os.close(internet)
    # Only now: most runs need none, and these imports take longer than a lab.
    import asyncio

    from conformance.lab.sandbox_proxy.service import run

    bundle = FOLDER.with_name(BUNDLE_NAME)
    asyncio.run(run(FOLDER, bundle, listen(API_DOOR), listen(PROXY_DOOR), control))


SANDBOX_PROXY = Service("sandbox proxy", CONTROL_SOCKET, FOLDER, _become_sandbox_proxy)
