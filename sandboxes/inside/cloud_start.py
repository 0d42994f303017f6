"""Make a cloud sandbox ready for a session: its workspace, and whom its programs trust."""

from __future__ import annotations

import base64
import os
import shutil
import tempfile
import zlib
from contextlib import suppress

from sandboxes.inside import cloud_call

_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def workspace(folders: list[str]) -> str:
    """The first of these folders that can be made and written to."""
    for folder in map(os.path.expanduser, folders):
        with suppress(OSError):
            os.makedirs(folder, exist_ok=True)
            if os.access(folder, os.W_OK | os.X_OK):
                return folder
    return tempfile.mkdtemp(prefix="workspace-")


def bundle(certificates: bytes) -> str:
    """A file of the image's certificates and these."""
    for place in _BUNDLES:
        with suppress(OSError), open(place, "rb") as file:
            certificates = file.read() + b"\n" + certificates
            break
    for folder in ("/etc", tempfile.gettempdir()):
        path = os.path.join(folder, "sandbox-ca.pem")
        with suppress(OSError), open(path, "wb") as file:
            file.write(certificates)
            os.chmod(path, 0o644)
            return path
    return ""


def main() -> None:
    """Do what the arguments ask."""
    asked = cloud_call.request()
    certificates = zlib.decompress(base64.b64decode(asked["certificates"]))
    cloud_call.answer(
        {
            "folder": workspace(asked["folders"]),
            "instance": cloud_call.instance(),
            "bash": shutil.which("bash") or "",
            "bundle": bundle(certificates) if certificates else "",
        }
    )


if __name__ == "__main__":
    main()
