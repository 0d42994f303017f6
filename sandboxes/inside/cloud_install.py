"""Put Sandbox Proxy's environment into a protected file of a cloud sandbox, or take it away."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import ssl
import stat
import tempfile
import zlib
from contextlib import suppress
from typing import Any
from urllib.parse import unquote, urlsplit

from sandboxes.inside import cloud_bundle, cloud_call, cloud_environment

_NAME = "environment.json"
_HOMES = ("/run", "~", "")
_PROXY = "HTTPS_PROXY"
_SECONDS = 3.0
_WELL = (b"200", b"204")


def protected_folder(earlier: str) -> str:
    """A folder that only this user looks into: the earlier one, or a new one."""
    if earlier:
        with suppress(OSError):
            os.makedirs(earlier, 0o700, exist_ok=True)
            about = os.lstat(earlier)
            if stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid():
                os.chmod(earlier, 0o700)
                return earlier
    for home in _HOMES:
        with suppress(OSError):
            return tempfile.mkdtemp(
                prefix=".sandbox-proxy-", dir=os.path.expanduser(home) if home else None
            )
    raise OSError("no folder can be made")


def check_proxy(url: str, bundle: str) -> None:
    """See that the proxy takes this session's credential.

    Raises:
        OSError: It does not, or there is no way to it.
    """
    parts = urlsplit(url)
    tls = parts.scheme == "https"
    place = parts.hostname or "", parts.port or (443 if tls else 80)
    user = unquote(f"{parts.username or ''}:{parts.password or ''}")
    coded = base64.b64encode(user.encode()).decode()
    lines = ("OPTIONS * HTTP/1.1", f"Host: {place[0]}", f"Proxy-Authorization: Basic {coded}",
             "Connection: close", "", "")  # fmt: skip
    with socket.create_connection(place, _SECONDS) as connection:
        peer = connection
        if tls:
            context = ssl.create_default_context(cafile=bundle)
            peer = context.wrap_socket(connection, server_hostname=place[0])
        with peer:
            peer.sendall("\r\n".join(lines).encode())
            words = peer.recv(4096).split(b" ")
    if words[1:2] not in ([one] for one in _WELL):
        status = words[1].decode("latin-1") if len(words) > 1 else "nothing"
        raise OSError(f"the proxy {place[0]} answered {status}")


def install(asked: dict[str, Any]) -> dict[str, Any]:
    """Write the file, in the place of an earlier one at once."""
    certificates = zlib.decompress(asked["certificates"])
    bundle = cloud_bundle.bundle(certificates)
    if not bundle:
        raise OSError("no file of certificates can be written")
    if _PROXY in asked["environment"]:
        check_proxy(asked["environment"][_PROXY], bundle)
    environment = {**asked["environment"], **dict.fromkeys(asked["bundle_variables"], bundle)}
    data = json.dumps(environment).encode()
    folder = protected_folder(asked["folder"])
    handle, written = tempfile.mkstemp(dir=folder)  # of mode 0600
    with open(handle, "wb") as file:
        file.write(data)
    path = os.path.join(folder, _NAME)
    os.replace(written, path)
    return {
        "fact": "",
        "folder": folder,
        "file": path,
        "digest": cloud_environment.digest(data),
    }


def main() -> None:
    """Do what the arguments ask."""
    asked = cloud_call.request()
    if "remove" in asked:
        shutil.rmtree(asked["remove"], ignore_errors=True)
        cloud_call.answer({"fact": ""})
        return
    if asked["instance"] != cloud_call.instance():
        cloud_call.answer({"restarted": True})
        return
    try:
        answer = install(asked)
    except OSError as error:
        answer = {"fact": error.strerror or str(error)}
    cloud_call.answer(answer)


if __name__ == "__main__":
    main()
