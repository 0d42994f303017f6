"""Where the lab's GitHub is, on the machine and on the internet."""

from __future__ import annotations

from conformance.lab.addresses import GITHUB_ADDRESS
from conformance.lab.devices import SCRATCH
from conformance.lab.door import Door

CONTROL_SOCKET = SCRATCH / "lab" / "github.sock"
"""Where it is told of repositories; the first question has it start."""

DOOR = SCRATCH / "lab" / "github-door.sock"
"""Where its customers' connections come in, without TLS; it is there once it runs."""

FOLDER = SCRATCH / "lab" / "github"
"""Where its repositories are."""

WEB, API, UPLOADS = "github.com", "api.github.com", "uploads.github.com"
CREDENTIALED = frozenset({WEB, API, UPLOADS})
"""Where a credential belongs."""

CODELOAD, RAW, OBJECTS = (
    *("codeload.github.com", "raw.githubusercontent.com", "objects.githubusercontent.com"),
)

PUBLIC = Door(DOOR, GITHUB_ADDRESS, CREDENTIALED | {CODELOAD, RAW, OBJECTS})
"""GitHub's names."""
