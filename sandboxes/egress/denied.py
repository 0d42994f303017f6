"""What the proxy says when it refuses: one line, without anything that came with a secret."""

from __future__ import annotations

import http


class Denied(Exception):
    """A connection or a request that is not let through.

    Attributes:
        status: The HTTP status that the client gets.
        reason: One line of ASCII: the fact and the remedy. Never holds a header's value.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason

    def response(self) -> bytes:
        """The whole answer; many clients show its reason phrase only, so that has it too."""
        body = f"egress proxy: {self.reason}\n".encode("ascii")
        phrase = f"{http.HTTPStatus(self.status).phrase} ({self.reason})"
        return (
            f"HTTP/1.1 {self.status} {phrase}\r\n"
            "Content-Type: text/plain; charset=us-ascii\r\n"
            f"Content-Length: {len(body)}\r\n"
            "Cache-Control: no-store\r\n"
            "Connection: close\r\n\r\n"
        ).encode("ascii") + body
