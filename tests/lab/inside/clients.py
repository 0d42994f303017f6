"""Plain clients, unrestricted: what a sandbox without any policy would do."""

from __future__ import annotations

import socket
import ssl
import struct
from typing import TYPE_CHECKING

from conformance.lab import addresses

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.lab.sites import Site

SECONDS = 5.0
BYTES = 65536


def dial(address: str, port: int) -> socket.socket:
    return socket.create_connection((address, port), timeout=SECONDS)


def read_all(connection: socket.socket) -> bytes:
    found = b""
    while data := connection.recv(BYTES):
        found += data
    return found


def get(site: Site, *, path: str = "", headers: str = "", method: str = "GET") -> bytes:
    """Ask over plain HTTP and give the whole answer."""
    with dial(site.address, site.http_port) as connection:
        head = f"{method} /{site.nonce}{path} HTTP/1.1\r\nhost: {site.name}\r\n{headers}"
        connection.sendall(f"{head}connection: close\r\n\r\n".encode())
        return read_all(connection)


def handshake(lab: Lab, site: Site, name: str) -> str:
    """Connect with verification on and give what is wrong, or ""."""
    context = ssl.create_default_context(cafile=str(lab.ca_bundle))
    with dial(site.address, site.https_port) as connection:
        try:
            context.wrap_socket(connection, server_hostname=name).close()
        except ssl.SSLCertVerificationError as wrong:
            return wrong.verify_message
    return ""


def question(name: str, kind: int = 1) -> bytes:
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + labels + struct.pack("!BHH", 0, kind, 1)


def ask(name: str, kind: int = 1, seconds: float = SECONDS) -> bytes:
    """Ask the lab's resolver and give the message that comes back."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(seconds)
        client.sendto(question(name, kind), (addresses.GATEWAY_IPV4, 53))
        return client.recv(BYTES)


def resolve(name: str, family: socket.AddressFamily = socket.AF_INET) -> list[str]:
    """Ask through the system, as programs do."""
    try:
        found = socket.getaddrinfo(name, None, family, socket.SOCK_STREAM)
    except socket.gaierror:
        return []
    return [str(item[4][0]) for item in found]
