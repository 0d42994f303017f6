"""One request to GitHub: let through with a credential, or denied."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import unquote

from sandboxes.egress.denied import Denied
from sandboxes.egress.github import git, graphql, rest
from sandboxes.egress.github.granted import refused

if TYPE_CHECKING:
    from sandboxes.egress.github.granted import Granted

HOSTS = ("github.com", "api.github.com", "uploads.github.com")
"""Where the credential goes, and nowhere else: others get none, whatever GitHub redirects to."""

STRIPPED = frozenset(
    {b"authorization", b"cookie", b"x-http-method", b"x-http-method-override", b"x-method-override"}
)
"""Headers of a client that could change whose request it is, or what it does."""

Scheme = Literal["basic", "bearer"]
"""How the credential is written: of the user `x-access-token`, or as it is."""


class Decision(NamedTuple):
    """How a request goes on.

    Attributes:
        scheme: The form in which the credential joins it.
        body: What is sent instead of the body that was judged; None leaves it.
    """

    scheme: Scheme
    body: bytes | None = None


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
# No encoding of what GitHub might decode into a separator, a dot or an end, and no empty segment.
_PATH = re.compile(r"/|(?:/(?!\.{1,2}(?:/|\Z))(?:[A-Za-z0-9._~!$&'()*+,=:@-]|%[0-9A-Fa-f]{2})+)+")
_HIDDEN = re.compile(r"%(?:2f|5c|2e|25|[01][0-9a-f]|7f)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GitHubRequest:
    """A request, as its head says.

    Attributes:
        host: One of `HOSTS`.
        method: In capitals.
        target: Path and query, as they were sent.
        body: All of it where `GitHubRules.wants_body` says so, otherwise nothing.
    """

    host: str
    method: str
    target: str
    body: bytes = b""


class GitHubRules:
    """Decides for one session.

    Args:
        granted: The repositories that it may use.
    """

    LONGEST_BODY = graphql.LONGEST
    """The most bytes of a body that are judged; a longer one is denied."""

    def __init__(self, granted: Granted) -> None:
        self._granted = granted

    def wants_body(self, request: GitHubRequest) -> bool:
        """Whether the decision needs the body."""
        graph = request.host == "api.github.com" and _path(request.target) == ("graphql",)
        return graph and not self._granted.everything

    def decide(self, request: GitHubRequest) -> Decision:
        """Say how a request goes on.

        Raises:
            Denied: It is not let through. The reason is the same whether a repository is not
                granted or does not exist.
        """
        if request.method not in _METHODS:
            raise Denied(405, "the method is not let through to GitHub")
        parts = _path(request.target)
        query = request.target.partition("?")[2]
        if request.host == "github.com":
            git.decide(request.method, parts, query, self._granted)
            return Decision("basic")
        if request.host == "uploads.github.com":
            rest.decide_upload(request.method, parts, self._granted)
        elif request.host != "api.github.com":
            raise refused()
        elif parts == ("graphql",) and not self._granted.everything:
            if request.method != "POST" or query:
                raise refused()
            return Decision("bearer", graphql.decide(request.body, self._granted))
        else:
            rest.decide(request.method, parts, self._granted)
        return Decision("bearer")


def _path(target: str) -> tuple[str, ...]:
    path = target.partition("?")[0]
    try:
        plain = unquote(path, errors="strict")
    except UnicodeDecodeError:
        plain = ""
    if not plain or "#" in target or not _PATH.fullmatch(path) or _HIDDEN.search(path):
        raise Denied(400, "the path can be read in several ways; send it without encodings")
    return tuple(plain[1:].split("/"))
