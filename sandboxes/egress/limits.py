"""How much, how many and how long: what bounds the proxy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyLimits:
    """The bounds of one proxy.

    Attributes:
        connections: How many clients are served at once; the next get a 503. Each takes two open
            files, of which a process often has 1024.
        head_bytes: The longest head of a request or response.
        header_count: The most headers of one head.
        head_seconds: Time for a client's whole head, hello and handshake, each.
        dial_seconds: Time to resolve a name and connect, and for the origin's handshake.
        idle_seconds: How long a connection is kept between two requests.
        silence_seconds: How long a request, answer or tunnel may stand still.
    """

    connections: int = 400
    head_bytes: int = 64 * 1024
    header_count: int = 200
    head_seconds: float = 15
    dial_seconds: float = 15
    idle_seconds: float = 60
    silence_seconds: float = 600
