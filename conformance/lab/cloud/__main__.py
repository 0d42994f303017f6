"""A cloud of one's own on loopback: `python -m conformance.lab.cloud FOLDER [--tls PEM]`.

It says in one line of JSON where it is, and ends with its standard input. Its instances have
no way out: there is no laboratory around them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import ssl
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.lab import kernel
from conformance.lab.cloud import router
from conformance.lab.cloud.service import Cloud, run

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m conformance.lab.cloud", description=__doc__)
    parser.add_argument("folder", type=Path, help="where sockets are put; it must be empty")
    parser.add_argument("--tls", type=Path, help="key and certificates for 127.0.0.1")
    options = parser.parse_args(arguments)
    door = socket.create_server(("127.0.0.1", 0))
    _enter_namespaces()
    asyncio.run(_serve(options.folder, options.tls, door))
    return 0


def _enter_namespaces() -> None:
    user, group = os.geteuid(), os.getegid()
    if not kernel.has_capability(kernel.CAP_SYS_ADMIN):
        kernel.unshare(kernel.CLONE_NEWUSER)
        kernel.map_only(user, group)
    kernel.unshare(kernel.CLONE_NEWNS)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    router.enter_router()


async def _serve(folder: Path, pem: Path | None, door: socket.socket) -> None:
    tls = None
    if pem is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(pem)
    control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = folder / "control"
    control.bind(str(path))
    control.listen()
    address = f"{'https' if tls else 'http'}://127.0.0.1:{door.getsockname()[1]}"
    cloud = Cloud(folder, address)
    serving = asyncio.ensure_future(run(cloud, door, control, tls))
    sys.stdout.write(json.dumps({"url": address, "control": str(path)}) + "\n")
    sys.stdout.flush()
    over = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, over.set)
    await over.wait()
    serving.cancel()
    await serving


if __name__ == "__main__":
    raise SystemExit(main())
