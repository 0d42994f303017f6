"""Secrets that an origin sends back are covered before the sandbox sees them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable

SHORTEST = 8
"""Shorter secrets are not looked for: they would be found in what is none."""

_MOST_LEARNED = 16


def _spellings(secret: bytes) -> set[bytes]:
    text = secret.decode("ascii")
    escaped = json.dumps(text)[1:-1]
    spellings = {text, escaped, escaped.replace("/", "\\/"), quote(text, safe=""), quote_plus(text)}
    return {spelling.encode("ascii") for spelling in spellings}


class Redaction:
    """Covers secrets with as many asterisks, so that lengths stay true.

    Args:
        secrets: What is looked for, as it is and as JSON and URLs write it.
    """

    def __init__(self, secrets: Iterable[bytes]) -> None:
        self._secrets = frozenset(secrets)
        # In the order in which they came: of what is renewed, the oldest are over.
        self._learned: dict[bytes, None] = {}
        self._prepare()

    def learn(self, secrets: Iterable[bytes]) -> None:
        """Look for further secrets from now on, and for no more than the latest of these."""
        new = [secret for secret in secrets if secret not in self._learned]
        if new:
            self._learned |= dict.fromkeys(new)
            for old in list(self._learned)[:-_MOST_LEARNED]:
                del self._learned[old]
            self._prepare()

    def _prepare(self) -> None:
        secrets = self._secrets | self._learned.keys()
        found = {spelling for secret in secrets for spelling in _spellings(secret)}
        # The longest first: one secret may begin as another.
        self._spellings = sorted(
            (spelling for spelling in found if len(spelling) >= SHORTEST), key=len, reverse=True
        )
        self._pattern = re.compile(b"|".join(map(re.escape, self._spellings)) or rb"(?!)")
        self._longest = max(map(len, self._spellings), default=0)

    def cover(self, data: bytes) -> bytes:
        """Cover what is whole in some bytes."""
        return self._pattern.sub(lambda match: b"*" * len(match.group()), data)

    def settled(self, data: bytes) -> int:
        """How many of the first bytes stay what they are, whatever comes after them."""
        end = len(data)
        for size in range(min(self._longest - 1, len(data)), 0, -1):
            tail = data[-size:]
            if any(len(one) > size and one.startswith(tail) for one in self._spellings):
                end -= size
                break
        for match in self._pattern.finditer(data):
            if match.start() < end < match.end():
                return match.start()
        return end


class RedactedStream:
    """A body that passes in pieces.

    Args:
        redaction: What is covered.
    """

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Take a piece, and give what can be shown."""
        data = self._held + data
        end = self._redaction.settled(data)
        self._held = data[end:]
        return self._redaction.cover(data[:end])

    def rest(self) -> bytes:
        """Give what was held back, when the body has ended."""
        held, self._held = self._held, b""
        return self._redaction.cover(held)
