"""Paths under a prefix, beside it, and such that servers do not agree on."""

from __future__ import annotations

import re
from itertools import product

from hypothesis import strategies as st

_SEGMENTS = ("api", "v1", "repos", "acme", "a-b", "x.y", "A", "packages", "~me")
_segments = st.one_of(
    st.sampled_from(_SEGMENTS), st.from_regex(r"[A-Za-z0-9_-][A-Za-z0-9._~-]{0,7}", fullmatch=True)
)

_LONG = "/long" * 400
"""Longer than many a buffer for paths."""

# The ways out lead to /other.
prefixes = (
    st.lists(_segments, min_size=1, max_size=3)
    .map(lambda parts: "/" + "/".join(parts))
    .filter(lambda prefix: not prefix.startswith("/other"))
)
"""Prefixes of one to three segments."""

PLAIN = re.compile(r"/|(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)+/?")
"""A path that every server reads in the same way."""


def is_under(path: str, prefix: str) -> bool:
    """Whether a plain path is a prefix, or goes on behind it with a whole segment."""
    stem = prefix.rstrip("/")
    return path == prefix or path.startswith(f"{stem}/")


def inside_of(prefix: str) -> list[str]:
    """Plain paths under a prefix."""
    stem = prefix.rstrip("/")
    return [
        *([prefix] if prefix == stem else []),
        f"{stem}/",
        f"{stem}/x",
        f"{stem}/x/y.z/",
        f"{stem}{prefix}",
        f"{stem}{_LONG}",
    ]


def beside(prefix: str) -> list[str]:
    """Plain paths that are not under a prefix, and look as if they were."""
    stem = prefix.rstrip("/")
    parent, _, last = stem.rpartition("/")
    swapped = stem.swapcase()
    found = [
        "/",
        f"{stem}x",
        f"{stem}-private/x",
        f"{stem}.git",
        f"{stem}.",
        stem[:-1] or "/",
        f"{parent}/{last[::-1]}z/x",
        f"/x{stem}",
        f"/x{stem}/y",
        f"/x{stem}{_LONG}",
        *([swapped, f"{swapped}/x"] if swapped != stem else []),
        *([parent, f"{parent}/x"] if parent else []),
    ]
    return [path for path in dict.fromkeys(found) if not is_under(path, prefix)]


# Each leads a segment up for some server: what is decoded, and how often, differs.
_DOTS = ("..", "%2e%2e", ".%2E", "%2e.", "%252e%252e", "%25252e%25252e")
_BREAKS = (
    *(("/", "/"), ("%2f", "/"), ("/", "%2f"), ("%2F", "%2F"), ("%252f", "/")),
    *(("\\", "\\"), ("%5c", "%5C"), ("//", "/"), ("/", "//"), ("/./", "/")),
)


def escapes(prefix: str) -> list[str]:
    """Paths that begin with a prefix, and lead out of it where a server reads them so."""
    stem = prefix.rstrip("/")
    depth = stem.count("/")
    found = []
    for dots, (before, behind) in product(_DOTS, _BREAKS):
        up = before + behind.join([dots] * depth) + behind
        found.append(f"{stem}{up}other/x")
        if not before.startswith("/"):  # which may be taken for part of a segment
            found.append(f"{stem}/x{before}{dots}{up}other/x")
    # Out of a folder below it, and no further than to a look-alike beside it.
    up = "/.." * depth
    found += [f"{stem}/x/..{up}{stem}x/y", f"{stem}/%2e%2e{up[3:]}{stem}-private"]
    return found


ESCAPES = tuple(escapes("/api"))
"""Every way out of a prefix of one segment."""

ways_out = st.tuples(prefixes, st.lists(st.integers(0, len(ESCAPES) - 1), min_size=4, max_size=8))
"""A prefix, and which of the ways out of it are tried."""


def same(prefix: str) -> list[str]:
    """Paths that are not written like a prefix, and are under it by RFC 3986 (6.2.2)."""
    first, rest = prefix[1], prefix[2:]
    return [
        f"/%{ord(first):02x}{rest}/x",
        f"/%{ord(first):02X}{rest}",
        f"/other/..{prefix}/x",
        f"/./{prefix[1:]}/x",
        f"{prefix}/./x",
        f"{prefix}/y/../x",
    ]
