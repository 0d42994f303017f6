"""A network client in one file, sent into sandboxes as `python3 -I -c SOURCE VERB ...`.

It runs on whatever Python 3 the inside has, so it needs the standard library alone
and no newer syntax than that of Python 3.8. It prints what it got, and fails with the
exception of the standard library. What only one verb needs is imported there: a run starts
it many hundred times, and most of what it costs is its imports.
"""

import contextlib
import os
import socket
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing

SECONDS = 5


def _bracket_tunnels() -> None:
    """Let CONNECT name an IPv6 address as RFC 9112 does: Python did not before 3.12."""
    import http.client

    plain = http.client.HTTPConnection._tunnel  # type: ignore[attr-defined]  # nothing public

    def tunnel(self: "typing.Any") -> None:  # noqa: ANN401 - untyped
        host = self._tunnel_host
        try:
            if ":" in host and not host.startswith("["):
                self._tunnel_host = "[" + host + "]"
            plain(self)
        finally:
            self._tunnel_host = host  # TLS compares it with the certificate

    http.client.HTTPConnection._tunnel = tunnel  # type: ignore[attr-defined]  # as above


def url(text: str) -> bytes:
    """Fetch a URL as an ordinary program does, certificates verified."""
    import urllib.request

    _bracket_tunnels()
    with urllib.request.urlopen(text, timeout=SECONDS) as answer:  # noqa: S310 - any scheme may try
        return bytes(answer.read(4096))


def tcp(host: str, port: str, payload: str) -> bytes:
    """Connect, send, and give what comes back first."""
    with socket.create_connection((host, int(port)), SECONDS) as connection:
        connection.sendall(payload.encode())
        return connection.recv(4096)


def udp(host: str, port: str, payload: str) -> bytes:
    """Send one datagram; no answer is awaited."""
    for family, kind, proto, _, address in socket.getaddrinfo(
        host, int(port), type=socket.SOCK_DGRAM
    ):
        with socket.socket(family, kind, proto) as sender:
            sender.sendto(payload.encode(), address)
    return b""


def _nameservers() -> "list[str]":
    with open("/etc/resolv.conf", encoding="utf-8") as lines:
        fields = [line.split() for line in lines]
    return [field[1] for field in fields if len(field) > 1 and field[0] == "nameserver"]


def _hear_refusals(asker: socket.socket) -> None:
    """Let Linux tell that nobody listens, as it does not where nothing was connected."""
    options = {socket.AF_INET: (0, 11), socket.AF_INET6: (41, 25)}  # IP_RECVERR, IPV6_RECVERR
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # another kernel that looks like one
            asker.setsockopt(*options[asker.family], 1)


def dns(name: str) -> bytes:
    """Ask for a name's address, straight from each name server that is configured."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    question = os.urandom(2) + struct.pack(">5H", 0x100, 1, 0, 0, 0) + labels + b"\0\0\1\0\1"
    answer = b""
    for address in _nameservers():
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as asker:
            asker.settimeout(SECONDS)
            _hear_refusals(asker)
            asker.sendto(question, (address, 53))
            answer = asker.recv(512)
    return answer


def lookup(name: str) -> bytes:
    """Ask the system's own resolver."""
    return repr(socket.getaddrinfo(name, 443)).encode()


VERBS: "dict[str, typing.Callable[..., bytes]]" = {
    "url": url,
    "tcp": tcp,
    "udp": udp,
    "dns": dns,
    "lookup": lookup,
}

if __name__ == "__main__":
    sys.stdout.buffer.write(VERBS[sys.argv[1]](*sys.argv[2:]))
