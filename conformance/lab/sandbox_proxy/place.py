"""Where the lab's Sandbox Proxy is, on the machine and on the internet."""

from __future__ import annotations

from conformance.lab.addresses import MISTRAL_API_ADDRESS, SANDBOX_PROXY_ADDRESS
from conformance.lab.devices import SCRATCH
from conformance.lab.door import Door

CONTROL_SOCKET = SCRATCH / "lab" / "sandbox-proxy.sock"
"""Where it is told of identities; the first question has it start."""

FOLDER = SCRATCH / "lab" / "sandbox-proxy"
"""Where the proxies of sessions listen."""

API_HOST = "api.mistral.ai"
PROXY_HOST = "sandbox-proxy.mistral.ai"

API_DOOR = SCRATCH / "lab" / "mistral-api-door.sock"
PROXY_DOOR = SCRATCH / "lab" / "sandbox-proxy-door.sock"

PUBLIC = (
    Door(API_DOOR, MISTRAL_API_ADDRESS, frozenset({API_HOST})),
    Door(PROXY_DOOR, SANDBOX_PROXY_ADDRESS, frozenset({PROXY_HOST})),
)
"""The names of Mistral's API and of the proxy."""
