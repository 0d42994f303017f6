"""GitHub's part of the proxy: each request judged, and the credential in the form of its host."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Awaitable, Callable
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal

from sandboxes.contract import HostEntry
from sandboxes.contract.bindings import GITHUB_HOSTS
from sandboxes.egress import authorizers
from sandboxes.egress.denied import Denied
from sandboxes.egress.github.granted import Granted
from sandboxes.egress.github.rules import HOSTS, STRIPPED, GitHubRequest, GitHubRules

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sandboxes.egress.authorizers import Ask, Asked

Token = Callable[[], Awaitable[str]]
"""Gives the credential of the moment; raises `Denied` where there is none."""

ENVIRONMENT: Mapping[str, str] = MappingProxyType(
    {
        # gh asks nothing without one; the proxy takes it out.
        "GH_TOKEN": "the-proxy-adds-it",
        "GH_NO_UPDATE_NOTIFIER": "1",
        "GH_PROMPT_DISABLED": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
)
"""What git and gh inside need beside the proxy's own variables."""

_API = HostEntry.parse("api.github.com")
_TOKEN = re.compile(r"[\x21-\x7e]+")
_BY_NUMBER = re.compile(r"/repositories/[0-9]+(?:[/?].*)?", re.DOTALL)


class GitHubAuthorizer:
    """Lets requests to GitHub through to some repositories, as a `GitHubBinding` says.

    Args:
        repos: `owner/repository` names, or `"all"`.
        token: Gives the user's credential, for each request anew.
    """

    hosts = HOSTS
    required = GITHUB_HOSTS
    stripped = STRIPPED
    rules_type: ClassVar[type[GitHubRules]] = GitHubRules

    def __init__(self, repos: Iterable[str] | Literal["all"], token: Token) -> None:
        self._repos: tuple[str, ...] | Literal["all"] = "all" if repos == "all" else tuple(repos)
        self._token = token
        # By name: None where GitHub knows no such repository.
        self._numbers: dict[str, int | None] = {}
        self._rules = self.rules_type(Granted(self._repos))

    def body_limit(self, asked: Asked) -> int | None:
        """Give a limit for a GraphQL request; nothing else is judged by its body.

        Raises:
            Denied: The path can be read in several ways.
        """
        request = _request(asked)
        try:
            return self._rules.LONGEST_BODY if self._rules.wants_body(request) else None
        except Denied as denied:
            raise _in_shape(request, denied) from None

    async def authorize(self, asked: Asked, ask: Ask) -> authorizers.Granted:
        """Judge a request, and give the credential in the form that its host takes.

        Raises:
            Denied: The binding does not grant it, or there is no credential.
        """
        request = _request(asked)
        try:
            if self._repos != "all" and _BY_NUMBER.fullmatch(request.target):
                await self._learn_numbers(ask)
            decision = self._rules.decide(request)
            token = await self._current()
        except Denied as denied:
            raise _in_shape(request, denied) from None
        basic = base64.b64encode(b"x-access-token:" + token)
        value = b"Basic " + basic if decision.scheme == "basic" else b"Bearer " + token
        return authorizers.Granted(
            headers=((b"Authorization", value),), secrets=(token, basic), body=decision.body
        )

    async def _current(self) -> bytes:
        token = await self._token()
        if not _TOKEN.fullmatch(token):
            raise Denied(502, "the credential for GitHub is no header's value; get another one")
        return token.encode("ascii")

    async def _learn_numbers(self, ask: Ask) -> None:
        """Ask for the number of each listed repository, once: it stays when the name changes.

        Where a name leads elsewhere by now, that is another name, which is not listed.
        """
        unknown = [name for name in self._repos if name not in self._numbers]
        if not unknown:
            return
        agent = (b"User-Agent", b"egress-proxy")
        for name in unknown:
            token = await self._current()
            headers = ((b"Authorization", b"Bearer " + token), agent)
            self._numbers[name] = _number(await ask(_API, f"/repos/{name}", headers))
        numbers = [number for number in self._numbers.values() if number is not None]
        self._rules = self.rules_type(Granted(self._repos, numbers))


def _number(answer: authorizers.Answered) -> int | None:
    if answer.status in (301, 404):
        return None
    try:
        found = json.loads(answer.body)["id"] if answer.status == 200 else None
    except (ValueError, KeyError, TypeError):
        found = None
    if not isinstance(found, int):
        raise Denied(502, "GitHub did not say which repository is meant; try again")
    return found


def _request(asked: Asked) -> GitHubRequest:
    return GitHubRequest(asked.origin.host, asked.method, asked.target, asked.body)


def _in_shape(request: GitHubRequest, denied: Denied) -> Denied:
    """Word a refusal as GitHub's interfaces word theirs, so that clients show its reason."""
    if request.host == "github.com":
        return denied
    document: dict[str, object] = {"message": denied.reason}
    if request.target.partition("?")[0] == "/graphql":
        document["errors"] = [{"type": "FORBIDDEN", "message": denied.reason}]
    return Denied(denied.status, denied.reason, document)
