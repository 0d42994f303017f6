"""Make a cloud sandbox ready for a session: its workspace, and whom its programs trust.

Before that it looks whether the network policy is in force, if there is one to be proven.
"""

from __future__ import annotations

import os
import zlib

# Half of importlib.util, without what it imports.
from _frozen_importlib_external import MAGIC_NUMBER

from sandboxes.bare import suppress
from sandboxes.inside import cloud_bundle, cloud_call, cloud_probe


def workspace(folders: list[str]) -> str:
    """The first of these folders that can be made and written to."""
    for folder in map(os.path.expanduser, folders):
        with suppress(OSError):
            os.makedirs(folder, exist_ok=True)
            if os.access(folder, os.W_OK | os.X_OK):
                return folder
    parent = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - the folder has a name of its own
    folder = os.path.join(parent, f"workspace-{os.urandom(8).hex()}")
    os.mkdir(folder, 0o700)
    return folder


def found(program: str) -> str:
    """Where a program is along PATH, or nothing."""
    for folder in os.get_exec_path():
        path = os.path.join(folder, program)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return ""


def main() -> None:
    """Do what the arguments ask."""
    asked = cloud_call.request()
    knock = asked["knock"]
    if knock and (opened := cloud_probe.ever_opened(**knock)):
        cloud_call.answer({"open": opened})  # and nothing is made ready
        return
    certificates = zlib.decompress(asked["certificates"])
    cloud_call.answer(
        {
            "folder": workspace(asked["folders"]),
            "instance": cloud_call.instance(),
            "bash": found("bash"),
            "magic": MAGIC_NUMBER.hex(),
            "bundle": cloud_bundle.bundle(certificates) if certificates else "",
        }
    )


if __name__ == "__main__":
    main()
