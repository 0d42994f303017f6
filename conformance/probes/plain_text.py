"""What is not TLS: bytes for a raw client, and web clients that send their text in the clear."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.probes.words import add_words, changed

if TYPE_CHECKING:
    from conformance.lab.sites import Site
    from conformance.probes.clients import Client

PAYLOADS: dict[str, str] = {
    "text": "/{nonce}\n",
    "HTTP": "GET /{nonce} HTTP/1.1\r\nHost: {name}\r\n\r\n",
    "SSH": "SSH-2.0-{nonce}\r\n",
    # A handshake record by its first bytes, and no ClientHello.
    "a record of TLS that holds none": "\x16\x03\x01\x01\x2c/{nonce} {name}\n",
}
"""Bytes for a raw client; each holds the nonce of its site."""


@dataclass(frozen=True, slots=True)
class Plain:
    """A way in which a web client sends no TLS.

    Attributes:
        kind: What it is called in a report.
        url: Where it goes.
        words: Its switches.
        client: The one client that has it; any where it is empty.
        before: What the command does first.
    """

    kind: str
    url: str = "http://{place}/{nonce}"
    words: tuple[str, ...] = ()
    client: str = ""
    before: str = ""

    def __repr__(self) -> str:
        return f"<{self.client or 'any client'}: {self.kind}>"

    def of(self, client: Client, site: Site) -> Client:
        """Give a client that sends its text this way."""
        words = [word.format(nonce=site.nonce) for word in self.words]
        return changed(client, lambda line: self.before + add_words(line, client.name, *words))

    def url_of(self, site: Site, host: str, port: int) -> str:
        """Write the URL for a port of a site."""
        bracketed = f"[{host}]" if ":" in host else host
        return self.url.format(place=f"{bracketed}:{port}", nonce=site.nonce)


# A sandbox with a proxy of its own may name it for HTTPS alone.
_OWN_PROXY = 'export http_proxy="${http_proxy:-$https_proxy}"; '

PLAIN = (
    Plain("plain HTTP"),
    Plain("a body", words=("-d", "{nonce}"), client="curl"),
    Plain("plain HTTP in a tunnel", words=("-p",), client="curl", before=_OWN_PROXY),
    Plain("a line before TLS", "https://{place}/{nonce}", ("--haproxy-protocol",), "curl"),
    Plain("gopher", "gopher://{place}/_{nonce}", client="curl"),
    Plain("dict", "dict://{place}/d:{nonce}", client="curl"),
)
"""Each way once."""
