"""A secret in whatever shape it may be found in: as it is, and in the common encodings."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable

# A shorter piece of an encoding may be found in any text by chance.
_SHORTEST = 8


def spellings(secret: str) -> dict[str, bytes]:
    """Give what a secret looks like, by the name of how it is written.

    In Base64 a text looks different at each of three places: what depends on what stands
    before and behind it is cut off.
    """
    raw = secret.encode()
    found = {"as it is": raw, "in hexadecimal": raw.hex().encode()}
    for name, text in (
        ("escaped for JSON", json.dumps(secret)[1:-1]),
        ("escaped for JSON", json.dumps(secret)[1:-1].replace("/", "\\/")),
        ("encoded for a URL", quote(secret, safe="")),
        ("encoded for a form", quote_plus(secret)),
    ):
        found.setdefault(name if text != secret else "as it is", text.encode())
    for ahead in range(3):
        coded = base64.b64encode(b"." * ahead + raw)
        first = (8 * ahead + 5) // 6
        last = 8 * (ahead + len(raw)) // 6
        found[f"in Base64, {ahead} bytes behind its beginning"] = coded[first:last]
    return {name: text for name, text in found.items() if len(text) >= _SHORTEST}


def shape(secret: str, data: bytes) -> str:
    """Say how a secret is written in some bytes; nothing if it is not there.

    Letter case counts for nothing in hexadecimal digits.
    """
    for name, text in spellings(secret).items():
        if text in (data.lower() if "hexadecimal" in name else data):
            return name
    return ""


def found_in(secrets: Iterable[str], data: bytes | str) -> str:
    """Say how one of some secrets is written in a text; nothing if none is."""
    sought = data.encode(errors="surrogateescape") if isinstance(data, str) else data
    return next(filter(None, (shape(secret, sought) for secret in secrets)), "")
