"""Where every request to the lab's GitHub arrives: it is written down, and answered."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from conformance.lab.cloud.wire import Answer
from conformance.lab.github import answering, git, rest
from conformance.lab.github.place import API, CREDENTIALED, OBJECTS, RAW, WEB
from conformance.lab.github.routes import route

if TYPE_CHECKING:
    from conformance.lab.cloud.wire import Caller, Request
    from conformance.lab.github.repositories import Repositories, Token
    from conformance.lab.github.routes import Route

_KEPT_REQUESTS = 20_000
_KEPT_BYTES = 8192
_GIT = ("info", "git-upload-pack", "git-receive-pack", "HEAD", "objects")


class Edge:
    """Takes the connections of the lab's GitHub.

    Args:
        known: its repositories and credentials.
    """

    def __init__(self, known: Repositories) -> None:
        self._known = known
        # One after the other: two pushes into one repository are no matter of these checks.
        self._turn = asyncio.Semaphore(4)
        self.requests: deque[dict[str, Any]] = deque(maxlen=_KEPT_REQUESTS)

    async def handle(self, request: Request, _caller: Caller) -> Answer:
        """Answer one request."""
        host = request.headers.get("host", "").partition(":")[0].lower()
        credential, token = self._known.bearer(request.headers)
        row: dict[str, Any] = {
            "host": host,
            "method": request.method,
            "target": request.target,
            "headers": dict(request.headers),
            "body": request.body[:_KEPT_BYTES].decode("latin-1"),
            "credential": credential,
            "meant": [],
            "status": 0,
        }
        self.requests.append(row)
        found = route(host, request.method, request.target, self._known)
        answer, meant = await self._answered(request, host, found, token)
        row["meant"], row["status"] = sorted(meant), answer.status
        return answer

    async def _answered(
        self, request: Request, host: str, found: Route, token: Token | None
    ) -> tuple[Answer, frozenset[str]]:
        if host == API and found.rest == ("graphql",) and found.repository is None:
            return answering.answer(request.body, self._known, token)
        if host not in CREDENTIALED:
            return Answer.text(200, f"{request.target}\n"), found.meant
        repository = found.repository
        if (
            repository is not None
            and repository.private
            and not (token and token.reaches(repository))
        ):
            return self._hidden(host), found.meant
        if found.former:
            return rest.moved(found, request, host), found.meant
        if host == WEB:
            return await self._page(request, found), found.meant
        if repository is None and found.meant and found.rest[:1] not in _ACCOUNT:
            return rest.missing(), found.meant
        return rest.answer(request, found, self._known, token), found.meant

    def _hidden(self, host: str) -> Answer:
        if host == WEB:
            # git asks for a credential then, as with the real one.
            basic = {"www-authenticate": 'Basic realm="GitHub"'}
            return Answer(401, b"Repository not found.\n", "text/plain", basic)
        return rest.missing()

    async def _page(self, request: Request, found: Route) -> Answer:
        repository, parts = found.repository, found.rest
        if repository is None or not parts:
            return Answer.text(404, "Not Found\n")
        if parts[:2] == ("info", "lfs"):
            return Answer(200, b'{"objects": [], "locks": []}', "application/vnd.git-lfs+json")
        if parts[0] in _GIT:
            async with self._turn:
                return await git.answer(request, repository, parts)
        if parts[0] == "archive":
            return rest.archive(repository, "zip", "/".join(parts[1:]))
        if parts[0] in ("raw", "releases"):
            host = RAW if parts[0] == "raw" else OBJECTS
            place = f"https://{host}/{repository.full_name}/{'/'.join(parts[1:])}"
            return Answer(302, headers={"location": f"{place}?token={repository.marker}"})
        return Answer.text(200, "a page\n")


_ACCOUNT = (
    *(("user",), ("users",), ("orgs",), ("installation",), ("repositories",), ("search",)),
    *(("gists",), ("notifications",), ("issues",), ("events",), ("teams",)),
)
