"""The protected file of Sandbox Proxy's environment in a cloud sandbox, as it is read.

It is data and never run: a shell that sourced it would run what somebody wrote into it.
"""

from __future__ import annotations

import os
import stat

# Most sessions have no such file, and each command waits for the imports.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST_BYTES = 1 << 20


def digest(data: bytes) -> str:
    """What tells one content from another."""
    import hashlib

    return hashlib.sha256(data).hexdigest()


def variables(wanted: dict[str, Any]) -> dict[str, str] | None:
    """The variables in it, or None where it is not as it was installed.

    Args:
        wanted: The `file`, and the `digest` of what it holds.
    """
    try:
        handle = os.open(wanted["file"], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(handle, "rb") as file:
            about = os.fstat(handle)
            data = file.read(_MOST_BYTES)
    except OSError:
        return None
    protected = about.st_uid == os.geteuid() and not stat.S_IMODE(about.st_mode) & 0o077
    if not protected or digest(data) != wanted["digest"]:
        return None
    import json

    found: dict[str, str] = json.loads(data)
    return found
