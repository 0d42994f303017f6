"""What the proxy says when it refuses: one line, without anything that came with a secret."""

from __future__ import annotations

import http
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class Denied(Exception):
    """A connection or a request that is not let through.

    Attributes:
        status: The HTTP status that the client gets.
        reason: One line of ASCII: the fact and the remedy. Never holds a header's value.
        document: What the answer holds instead of the line, as JSON, for clients of an
            interface that has a shape of its own for errors.
    """

    def __init__(self, status: int, reason: str, document: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.document = document

    def response(self) -> bytes:
        """The whole answer; many clients show its reason phrase only, so that has it too."""
        if self.document is None:
            kind, body = "text/plain; charset=us-ascii", f"egress proxy: {self.reason}\n"
        else:
            kind, body = "application/json; charset=utf-8", f"{json.dumps(self.document)}\n"
        phrase = f"{http.HTTPStatus(self.status).phrase} ({self.reason})"
        return (
            f"HTTP/1.1 {self.status} {phrase}\r\n"
            f"Content-Type: {kind}\r\n"
            f"Content-Length: {len(body)}\r\n"
            "Cache-Control: no-store\r\n"
            "Connection: close\r\n\r\n"
            f"{body}"
        ).encode("ascii")
