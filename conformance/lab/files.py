"""Files of the system that the lab puts its own in the place of, and the sockets of daemons.

Everything here runs in a mount namespace of its own, made private, before the command
starts; nothing that it mounts is visible outside.
"""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.lab import addresses, kernel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)
# Daemons that speak for whoever asks; those that listen in this network namespace are
# found in /proc/net/unix, these may listen in another one.
_DAEMONS = (
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/dbus/system_bus_socket",
    "/run/nscd/socket",
    "/run/systemd/resolve/io.systemd.Resolve",
    "/run/systemd/private",
)


def _name_services(path: Path) -> str:
    """Give the system's own name services, but for hosts, which are ours to tell."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    others = [line for line in lines if not line.lstrip().startswith("hosts:")]
    return "\n".join([*others, "hosts: files dns", ""])


_CONFIGURATION = {
    "/etc/resolv.conf": f"nameserver {addresses.GATEWAY_IPV4}\noptions timeout:2 attempts:2\n",
    # Some servers look the machine's own name up when they start.
    "/etc/hosts": (
        "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
        f"127.0.1.1 {socket.gethostname()}\n"
    ),
    "/etc/nsswitch.conf": _name_services(Path("/etc/nsswitch.conf")),
}


def unix_sockets() -> tuple[str, ...]:
    """Give the absolute paths of the unix sockets of this network namespace."""
    lines = Path("/proc/net/unix").read_text(encoding="utf-8", errors="surrogateescape")
    fields = (line.split(maxsplit=7) for line in lines.splitlines()[1:])
    return tuple(sorted({row[7] for row in fields if len(row) == 8 and row[7].startswith("/")}))


def bind_configuration(folder: Path) -> None:
    """Put the lab's resolver, hosts and name service files in the place of the system's.

    Raises:
        OSError: one cannot be bound, or there is no resolv.conf and none can be made.
    """
    for path, content in _CONFIGURATION.items():
        own = folder / Path(path).name
        own.write_text(content, encoding="utf-8")
        own.chmod(0o644)
        real = os.path.realpath(path)
        if path == "/etc/resolv.conf" and not os.path.exists(real):
            os.makedirs(os.path.dirname(real), exist_ok=True)
            Path(real).touch()  # in the overlay
        if os.path.exists(real):
            kernel.mount(str(own), real, None, kernel.MS_BIND)


def bind_bundle(bundle: Path) -> None:
    """Put the lab's certificates in the place of the system's bundles.

    Raises:
        OSError: one cannot be bound.
    """
    for real in {os.path.realpath(path) for path in _BUNDLES if os.path.exists(path)}:
        kernel.mount(str(bundle), real, None, kernel.MS_BIND)


def mask_sockets(listening: Iterable[str], leave: Sequence[str]) -> None:
    """Bind /dev/null over the sockets of daemons, so that a connection finds no listener.

    Args:
        listening: paths found in /proc/net/unix.
        leave: paths that the subject needs.

    Raises:
        OSError: a socket that this account can reach cannot be covered.
    """
    left = {os.path.realpath(path) for path in leave}
    for path in sorted({os.path.realpath(path) for path in (*listening, *_DAEMONS)} - left):
        try:
            mode = os.stat(path).st_mode
        except OSError:
            continue  # gone, or out of reach for the command as well
        if stat.S_ISSOCK(mode):
            kernel.mount("/dev/null", path, None, kernel.MS_BIND)
