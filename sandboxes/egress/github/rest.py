"""api.github.com and uploads.github.com: the REST interface."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sandboxes.egress.github.granted import Repository, refused

if TYPE_CHECKING:
    from sandboxes.egress.github.granted import Granted

_READS = ("GET", "HEAD")

# What says who asks, or nothing of anybody.
_OPEN = {"", "user", "rate_limit", "meta", "versions", "zen", "emojis"}
_OPEN_TREES = {"licenses", "gitignore"}

# Writes that carry a repository elsewhere, or leave a way in that outlives the session: below
# `/repos/owner/repository/`, each by the beginning of its path.
_LASTING = (
    *("actions/organization-secrets", "actions/organization-variables", "actions/permissions"),
    *("actions/oidc", "actions/runners", "actions/secrets", "actions/variables", "autolinks"),
    *("automated-security-fixes", "code-scanning/default-setup", "codespaces"),
    *("collaborators", "dependabot/secrets", "environments", "forks", "generate", "hooks"),
    *("immutable-releases", "import", "interaction-limits", "invitations", "keys", "pages"),
    *("private-vulnerability-reporting", "properties", "rulesets", "teams", "transfer"),
    "vulnerability-alerts",
)
# The same where something of the repository's comes before.
_DEEPER = re.compile(
    r"branches/.+/protection(?:/.*)?|tags/protection(?:/.*)?|pulls/[^/]+/codespaces(?:/.*)?"
    r"|security-advisories/[^/]+/forks(?:/.*)?"
)
_ASSETS = re.compile(r"releases/[0-9]+/assets", re.ASCII)


def decide(method: str, parts: tuple[str, ...], granted: Granted) -> None:
    """Judge a request to api.github.com, other than GraphQL, by its path's segments.

    Raises:
        Denied: It reaches beyond the granted repositories, or outlives the session.
    """
    if granted.everything:
        return
    if parts[0] == "repos" and len(parts) >= 3:
        repository = Repository.of(parts[1], parts[2])
        granted.check(repository)
        _inside(method, repository, parts[3:], granted)
    elif parts[0] == "repositories" and len(parts) >= 2:
        granted.check_id(parts[1])
        _inside(method, None, parts[2:], granted)
    elif method not in _READS or not _says_nothing(parts):
        raise refused()


def decide_upload(method: str, parts: tuple[str, ...], granted: Granted) -> None:
    """Judge a request to uploads.github.com.

    Raises:
        Denied: It is no upload to a release of a granted repository.
    """
    if len(parts) < 3 or parts[0] != "repos" or method != "POST":
        raise refused()
    if not _ASSETS.fullmatch("/".join(parts[3:])):
        raise refused()
    granted.check(Repository.of(parts[1], parts[2]))


def _says_nothing(parts: tuple[str, ...]) -> bool:
    if len(parts) == 1:
        return parts[0] in _OPEN | _OPEN_TREES
    return len(parts) == 2 and parts[0] in _OPEN_TREES


def _inside(
    method: str, repository: Repository | None, rest: tuple[str, ...], granted: Granted
) -> None:
    if rest[:1] == ("compare",):
        _compared(repository, "/".join(rest[1:]), granted)
    if method in _READS:
        return
    path = "/".join(rest).lower()
    # A repository itself is read only: it could be renamed, opened to all, or deleted.
    if not rest or _DEEPER.fullmatch(path):
        raise refused()
    if any(path == start or path.startswith(f"{start}/") for start in _LASTING):
        raise refused()


def _compared(repository: Repository | None, spread: str, granted: Granted) -> None:
    """Judge both ends, which may be of forks: `branch`, `owner:branch`, `owner:name:branch`."""
    for end in re.split(r"\.{2,3}", spread):
        owner, *others = end.split(":")
        if not others:
            continue
        if len(others) > 2:
            raise refused()
        # The fork of an owner may have any name, so only the repository itself is sure.
        if len(others) == 1 and (repository is None or owner.lower() != repository.owner):
            raise refused()
        if len(others) == 2:
            granted.check(Repository.of(owner, others[0]))
