"""What a request means: the repositories that it is about, read as a generous server reads it.

A path is decoded, its dots resolved and its empty segments dropped; one `.git` comes off; case
counts for nothing; a former name means what has another one now.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from conformance.lab.github.place import API, UPLOADS, WEB

if TYPE_CHECKING:
    from conformance.lab.github.repositories import Repositories, Repository

ACCOUNT = "*"
"""Stands for all that an account has: more than any one repository."""

_DECODINGS = 4
_OPEN = {"", "user", "rate_limit", "meta", "versions", "zen", "emojis", "licenses", "gitignore"}
_COPIES = {"forks", "transfer", "generate"}


@dataclass(frozen=True)
class Route:
    """Where a request leads.

    Args:
        rest: the path's segments behind the repository, or all of them where there is none.
        repository: the one that it is about.
        former: whether that is by a name that it had.
        meant: full names in small letters of what it could show or change, or `ACCOUNT`.
    """

    rest: tuple[str, ...]
    repository: Repository | None = None
    former: bool = False
    meant: frozenset[str] = frozenset()


def segments(target: str) -> tuple[str, ...]:
    """Give a path's segments, its encodings undone and its dots resolved."""
    path = target.partition("?")[0].partition("#")[0]
    path = re.sub(r"^[a-z]+://[^/]*", "", path)
    for _ in range(_DECODINGS):
        path = unquote(path)
    path = re.sub(r";[^/]*", "", path.replace("\\", "/").replace("\0", ""))
    resolved = posixpath.normpath("/" + path.lstrip("/"))
    return tuple(part for part in resolved.split("/") if part)


def route(host: str, method: str, target: str, known: Repositories) -> Route:
    """Say where a request leads."""
    parts = segments(target)
    if host == WEB:
        return _of_web(parts, known)
    if host == API:
        return _of_api(method, parts, known)
    if host == UPLOADS and parts[:1] == ("repos",):
        return _named(parts[1:], known)
    # Further hosts are told by what they are given, and take no credential.
    return Route(parts, meant=frozenset({ACCOUNT}))


def _of_web(parts: tuple[str, ...], known: Repositories) -> Route:
    if len(parts) < 2:
        return Route(parts, meant=frozenset({ACCOUNT}))
    return _named((parts[0], parts[1].removesuffix(".git"), *parts[2:]), known)


def _of_api(method: str, parts: tuple[str, ...], known: Repositories) -> Route:
    if parts[:1] == ("repos",) and len(parts) >= 3:
        found = _named(parts[1:], known)
    elif parts[:1] == ("repositories",) and len(parts) >= 2:
        repository = known.numbered(_number(parts[1]))
        name = repository.full_name.lower() if repository else f"repositories/{parts[1]}"
        found = Route(parts[2:], repository, meant=frozenset({name}))
    elif not parts or (parts[0] in _OPEN and (len(parts) == 1 or parts[0] != "user")):
        return Route(parts)
    else:
        return Route(parts, meant=frozenset({ACCOUNT}))
    meant = found.meant | _compared(found)
    if method == "POST" and found.rest[:1] and found.rest[0] in _COPIES:
        meant |= {ACCOUNT}  # what comes of it is another repository
    return Route(found.rest, found.repository, found.former, meant)


def _named(parts: tuple[str, ...], known: Repositories) -> Route:
    if len(parts) < 2:
        return Route(parts, meant=frozenset({ACCOUNT}))
    owner, name, rest = parts[0], parts[1], parts[2:]
    repository = known.named(owner, name)
    former = None if repository else known.formerly(owner, name)
    # A former name shows nothing of the repository: it is answered by where that is now.
    return Route(
        rest, repository or former, former is not None, frozenset({f"{owner}/{name}".lower()})
    )


def _compared(found: Route) -> frozenset[str]:
    """The further repositories that a comparison shows."""
    if found.rest[:1] != ("compare",) or found.repository is None:
        return frozenset()
    names = set()
    for end in re.split(r"\.{2,3}", "/".join(found.rest[1:])):
        owner, *others = end.split(":")
        if others:
            name = others[0] if len(others) > 1 else found.repository.name
            names.add(f"{owner}/{name}".lower())
    return frozenset(names)


def _number(text: str) -> int:
    digits = re.match(r"[\s+0_]*([0-9]{1,12})", text)
    return int(digits[1]) if digits else 0
