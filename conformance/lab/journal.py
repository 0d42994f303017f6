"""What the witnesses saw: one record an event, as the servers write and the client reads it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["packet", "dns", "accept", "hello", "request", "datagram", "connect"]

# A nonce is found wherever it stands: in a name, a longer name, a path, a payload.
NONCE = re.compile("n[0-9a-f]{14}z")
MARKER = b"lab-marker:"
PAYLOAD_LIMIT = 4096


@dataclass(frozen=True)
class Mark:
    """A point in the journal; see `Lab.mark`."""

    number: int


@dataclass(frozen=True)
class Sighting:
    """One event at the lab.

    Args:
        kind: "packet" (a TCP SYN, a datagram or another packet left the subject's
            namespace), "accept" (a connection was taken), "hello" (a TLS ClientHello),
            "request" (an HTTP request, or other bytes on a connection), "datagram" (a UDP
            server got one), "dns" (a question), "connect" (a CONNECT to a proxy of the lab).
        address: what was dialled, in normal form.
        port: what was dialled; 0 where the protocol has none.
        protocol: "tcp", "udp", "icmp" or "ip-N".
        site: nonce of the site that the event belongs to, or "".
        name: server name of the hello, name asked for, or host of the request, in lower case.
        method: HTTP method, DNS record type, or "" where the bytes are neither.
        path: request target as sent.
        headers: header fields in the order of the wire, names in lower case.
        payload: first bytes of the body, the datagram or the raw stream.
        source: address and port that it came from.
        tls: whether it came inside TLS.
        alpn: protocols that the hello offers.
        time: seconds on the clock of `time.monotonic`.
        number: position in the journal.
    """

    kind: Kind
    address: str
    port: int
    protocol: str
    site: str = ""
    name: str = ""
    method: str = ""
    path: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    payload: bytes = b""
    source: tuple[str, int] = ("", 0)
    tls: bool = False
    alpn: tuple[str, ...] = ()
    time: float = 0.0
    number: int = 0

    def __str__(self) -> str:
        """Give one readable line."""
        what = " ".join(filter(None, (self.method, self.name, self.path)))
        size = f" ({len(self.payload)} bytes)" if self.payload else ""
        return (
            f"{self.protocol} {self.kind} at {self.address} port {self.port} {what}{size}".strip()
        )

    def to_wire(self) -> dict[str, Any]:
        """Give what JSON can carry."""
        return {**self.__dict__, "payload": self.payload.decode("latin-1")}

    @classmethod
    def from_wire(cls, fields: dict[str, Any]) -> Sighting:
        """Read `to_wire` back."""
        fields["payload"] = fields["payload"].encode("latin-1")
        fields["headers"] = tuple((name, value) for name, value in fields["headers"])
        fields["source"] = tuple(fields["source"])
        fields["alpn"] = tuple(fields["alpn"])
        return cls(**fields)
