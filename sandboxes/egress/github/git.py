"""github.com: git itself, large files, and what is downloaded from a repository's page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandboxes.egress.github.granted import Repository, refused

if TYPE_CHECKING:
    from sandboxes.egress.github.granted import Granted

_SERVICES = ("git-upload-pack", "git-receive-pack")
_READS = ("GET", "HEAD")
_LFS_LOCK = re.compile(r"info/lfs/locks(?:/verify|/[A-Za-z0-9_-]+/unlock)?")
_DOWNLOADS = (("archive",), ("releases", "download"), ("raw",))


def decide(method: str, parts: tuple[str, ...], query: str, granted: Granted) -> None:
    """Judge a request by its path's segments.

    Raises:
        Denied: It is none of git's, or of a repository that is not granted.
    """
    if len(parts) < 3:
        raise refused()
    owner, name, rest = parts[0], parts[1], parts[2:]
    # Git adds the ending or leaves it out; GitHub takes one off, and so no more than one here.
    repository = Repository.of(owner, name.removesuffix(".git"))
    if not _of_git(method, "/".join(rest), query) and not _download(method, rest):
        raise refused()
    granted.check(repository)


def _of_git(method: str, rest: str, query: str) -> bool:
    if rest == "info/refs":
        return method in _READS and query in {f"service={service}" for service in _SERVICES}
    if method == "POST" and (rest in _SERVICES or rest == "info/lfs/objects/batch"):
        return not query
    return method in ("GET", "POST") and _LFS_LOCK.fullmatch(rest) is not None


def _download(method: str, rest: tuple[str, ...]) -> bool:
    return method in _READS and any(
        rest[: len(start)] == start and len(rest) > len(start) for start in _DOWNLOADS
    )
