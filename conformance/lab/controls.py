"""The harness's own clients: what they cannot reach, no sandbox can be said to have refused."""

from __future__ import annotations

import secrets
import socket
import ssl
import struct
from typing import TYPE_CHECKING

from conformance.lab import addresses

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.lab.journal import Kind
    from conformance.lab.sites import Site

_SECONDS = 10.0
_BYTES = 65536
_QUESTION_A = 1
_CLASS_IN = 1

PROOF: dict[str, Kind] = {
    "https": "request",
    "http": "request",
    "tcp": "accept",
    "udp": "datagram",
    "dns": "dns",
}


def source_socket(site: Site, scheme: str) -> socket.socket:
    """Give a socket for `scheme` with a source port that the lab can be told of beforehand."""
    address = addresses.GATEWAY_IPV4 if scheme == "dns" else site.address
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    kind = socket.SOCK_DGRAM if scheme in ("udp", "dns") else socket.SOCK_STREAM
    client = socket.socket(family, kind)
    client.settimeout(_SECONDS)
    client.bind(("", 0))
    return client


def go(client: socket.socket, site: Site, scheme: str, bundle: Path) -> None:
    """Go to `site` and wait for its answer.

    Args:
        client: from `source_socket`.
        site: where to go.
        scheme: "https", "http", "tcp", "udp" or "dns".
        bundle: certificates to trust; a site whose certificate is wrong is taken as it is.

    Raises:
        OSError: the site was not reached, or did not answer.
    """
    if scheme == "dns":
        client.connect((addresses.GATEWAY_IPV4, addresses.DNS_PORT))
        client.send(_question(site.name))
        client.recv(_BYTES)
    elif scheme == "udp":
        client.connect((site.address, site.udp_port))
        client.send(site.nonce.encode())
        client.recv(_BYTES)
    elif scheme == "tcp":
        client.connect((site.address, site.other_port))
        client.recv(_BYTES)
    elif scheme == "http":
        client.connect((site.address, site.http_port))
        _request(client, site)
    else:
        # Wrapped before it is connected: a reset in between would leak a descriptor.
        with _context(site, bundle).wrap_socket(client, server_hostname=site.name) as tls:
            tls.connect((site.address, site.https_port))
            _request(tls, site)


def _context(site: Site, bundle: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if site.certificate == "good":
        context.load_verify_locations(bundle)
    else:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _request(client: socket.socket, site: Site) -> None:
    lines = (f"GET /{site.nonce} HTTP/1.1", f"host: {site.name}", "connection: close", "", "")
    client.sendall("\r\n".join(lines).encode())
    if not client.recv(_BYTES).startswith(b"HTTP/1.1 "):
        raise ConnectionError("the site did not answer in HTTP")


def _question(name: str) -> bytes:
    head = struct.pack("!HHHHHH", secrets.randbits(16), 0x0100, 1, 0, 0, 0)
    labels = b"".join(bytes([len(label)]) + label for label in name.encode("ascii").split(b"."))
    return head + labels + b"\0" + struct.pack("!HH", _QUESTION_A, _CLASS_IN)
