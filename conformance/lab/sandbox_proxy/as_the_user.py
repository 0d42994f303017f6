"""Requests to Mistral's API: the sandbox's own key becomes the user's, and no other does."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from conformance.lab.sandbox_proxy.place import API_HOST
from sandboxes.egress import Granted

if TYPE_CHECKING:
    from sandboxes.egress import Ask, Asked

_HEADER = b"authorization"


class MistralApiAuthorizer:
    """Puts the user's key in the place of the sandbox's.

    Args:
        placeholder: the key that the sandbox has.
        credential: the user's.
    """

    hosts = (API_HOST,)
    required = (API_HOST,)
    stripped = frozenset({_HEADER})

    def __init__(self, placeholder: str, credential: str) -> None:
        self._own = f"Bearer {placeholder}".encode()
        self._users = credential.encode()

    def body_limit(self, _asked: Asked) -> int | None:
        """Judge no body."""
        return None

    async def authorize(self, asked: Asked, _ask: Ask) -> Granted:
        """Let a request through, as the user only where it bears the sandbox's key."""
        values = asked.values(_HEADER)
        if len(values) == 1 and hmac.compare_digest(values[0].strip(), self._own):
            return Granted(((b"Authorization", b"Bearer " + self._users),), (self._users,))
        return Granted(tuple((b"Authorization", value) for value in values))
