"""End the calls of a cloud sandbox whose token begins so, with all that they started.

The token comes backwards, so that this process does not find itself.
"""

from __future__ import annotations

import os
import time

from sandboxes.bare import signal, suppress
from sandboxes.inside import cloud_call

_AGAIN_SECONDS = 0.05


def calls(token: str) -> list[int]:
    """The processes of such calls that run."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with suppress(OSError), open(f"/proc/{name}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
            # python3 -I -S - TOKEN
            if len(words) > 4 and words[4].startswith(token.encode()):
                found.append(int(name))
    return found


def send(pids: list[int], *numbers: int) -> None:
    """Send each of them signals."""
    for pid in pids:
        for number in numbers:
            with suppress(OSError):
                os.kill(pid, number)


def main() -> None:
    """Do what the arguments ask."""
    asked = cloud_call.request()
    token = asked["token"][::-1]
    found = left = calls(token)
    deadline = time.monotonic() + asked["seconds"]
    while left and time.monotonic() < deadline:
        # Again: one that has just begun does not listen yet. And one may have been stopped.
        send(left, signal.SIGTERM, signal.SIGCONT)
        time.sleep(_AGAIN_SECONDS)
        left = calls(token)
    send(left, signal.SIGKILL)
    cloud_call.answer({"found": len(found), "left": len(left)})


if __name__ == "__main__":
    main()
