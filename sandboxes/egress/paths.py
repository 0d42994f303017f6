"""What the path of a request can mean to servers, of which some undo what others keep."""

from __future__ import annotations

import re
from itertools import product
from urllib.parse import unquote_to_bytes

# One meaning only: no encoding, no empty segment, no parameter, no dots alone.
_PLAIN = re.compile(rb"/|(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~!$&'()*+,=:@-]+)+/?")
_DECODINGS = 4


def readings(path: bytes) -> frozenset[bytes] | None:
    """Give all that a path can come to: decoded or not, dots resolved, slashes folded.

    Args:
        path: The path of a request, without its query.

    Returns:
        The paths; None where it is encoded over and over.
    """
    if _PLAIN.fullmatch(path):
        return frozenset({path})
    forms = [path]
    while (decoded := unquote_to_bytes(forms[-1])) != forms[-1]:
        if len(forms) > _DECODINGS:
            return None
        forms.append(decoded)
    found = {path}
    for form, parameters, folded in product(forms, (True, False), (True, False)):
        found.add(_resolve(form, parameters=parameters, folded=folded))
        # A server that decodes first may take these for the end of the path.
        found.add(_resolve(re.split(rb"[?#\0]", form)[0], parameters=parameters, folded=folded))
    return frozenset(found)


def _resolve(path: bytes, *, parameters: bool, folded: bool) -> bytes:
    path = path.replace(b"\\", b"/")
    if not parameters:
        path = re.sub(rb";[^/]*", b"", path)
    if folded:
        path = re.sub(rb"/+", b"/", path)
    resolved: list[bytes] = []
    segments = path.removeprefix(b"/").split(b"/")
    for segment in segments:
        if segment == b"..":
            del resolved[-1:]
        elif segment != b".":
            resolved.append(segment)
    if segments[-1] in (b".", b".."):
        resolved.append(b"")
    return b"/" + b"/".join(resolved)


def is_plain(path: str) -> bool:
    """Whether a path means the same to every server."""
    return path.isascii() and _PLAIN.fullmatch(path.encode("ascii")) is not None


def is_under(path: bytes, prefix: bytes) -> bool:
    """Whether a path is a prefix, or continues it with a whole segment."""
    return path == prefix or path.startswith(prefix.removesuffix(b"/") + b"/")
