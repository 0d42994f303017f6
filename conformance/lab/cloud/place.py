"""Where a sealed lab's cloud is, on the machine and on the internet."""

from __future__ import annotations

from conformance.lab.devices import SCRATCH

CONTROL_SOCKET = SCRATCH / "lab" / "cloud.sock"
"""Where the cloud is told what to do wrong; the first question has it start."""

DOOR = SCRATCH / "lab" / "cloud-door.sock"
"""Where its customers' connections come in, without TLS; it is there once the cloud runs."""

FOLDER = SCRATCH / "lab" / "cloud"
"""Where its instances are put."""

API_HOST = "app.koyeb.com"
SUFFIX = ".koyeb.app"


def is_provider(name: str) -> bool:
    """Whether a host name is the provider's: its API, or the public name of an app."""
    name = name.lower().rstrip(".")
    return name == API_HOST or name.endswith(SUFFIX)
