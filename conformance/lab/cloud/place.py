"""Where a sealed lab's cloud is, on the machine and on the internet."""

from __future__ import annotations

from conformance.lab.addresses import CLOUD_ADDRESS
from conformance.lab.devices import SCRATCH
from conformance.lab.door import Door

CONTROL_SOCKET = SCRATCH / "lab" / "cloud.sock"
"""Where the cloud is told what to do wrong; the first question has it start."""

DOOR = SCRATCH / "lab" / "cloud-door.sock"
"""Where its customers' connections come in, without TLS; it is there once the cloud runs."""

FOLDER = SCRATCH / "lab" / "cloud"
"""Where its instances are put."""

API_HOST = "app.koyeb.com"
SUFFIX = ".koyeb.app"

PUBLIC = Door(DOOR, CLOUD_ADDRESS, frozenset({API_HOST}), (SUFFIX,))
"""The provider's names: its API, and those of apps."""
