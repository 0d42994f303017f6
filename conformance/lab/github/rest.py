"""What the lab's GitHub says on its REST interface: enough for gh, and for who reads on."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from conformance.lab.cloud.wire import Answer
from conformance.lab.github.place import API, CODELOAD, UPLOADS, WEB
from conformance.lab.github.repositories import BRANCH

if TYPE_CHECKING:
    from conformance.lab.cloud.wire import Request
    from conformance.lab.github.repositories import Repositories, Repository, Token
    from conformance.lab.github.routes import Route

_LISTS = {
    *("issues", "pulls", "commits", "branches", "tags", "forks", "collaborators", "comments"),
    *("labels", "milestones", "contributors"),
}
_LISTED_OF_THE_USER = {("user", "repos"), ("installation", "repositories"), ("repositories",)}


def missing() -> Answer:
    """Say of what is hidden what is said of what does not exist."""
    return Answer.of(404, message="Not Found", documentation_url="https://docs.github.com/rest")


def moved(route: Route, request: Request, host: str) -> Answer:
    """Send a request by a former name on: by number on the REST interface, else by name."""
    assert route.repository is not None
    path = "/".join(route.rest)
    query = request.target.partition("?")[2]
    if host == API:
        place = f"https://{API}/repositories/{route.repository.number}"
    else:
        prefix = "repos/" if host == UPLOADS else ""
        ending = ".git" if ".git/" in request.target else ""
        place = f"https://{host}/{prefix}{route.repository.full_name}{ending}"
    location = f"{place}/{path}".rstrip("/") + (f"?{query}" if query else "")
    body = json.dumps({"message": "Moved Permanently", "url": location}).encode()
    return Answer(301, body, headers={"location": location})


def described(repository: Repository) -> dict[str, Any]:
    """Give what is told of a repository."""
    url = f"https://{API}/repos/{repository.full_name}"
    return {
        "id": repository.number,
        "node_id": repository.node,
        "name": repository.name,
        "full_name": repository.full_name,
        "owner": {"login": repository.owner, "id": 1, "type": "User"},
        "private": repository.private,
        "description": repository.marker,
        "default_branch": BRANCH,
        "url": url,
        "html_url": f"https://{WEB}/{repository.full_name}",
        "clone_url": f"https://{WEB}/{repository.full_name}.git",
        "permissions": {"admin": True, "push": True, "pull": True},
    }


def answer(request: Request, route: Route, known: Repositories, token: Token | None) -> Answer:
    """Answer for the account, or for a repository that may be seen."""
    if route.repository is None:
        return _of_account(request, route, known, token)
    repository, rest = route.repository, route.rest
    if rest[:1] in (("tarball",), ("zipball",)):
        return archive(repository, rest[0], "/".join(rest[1:]) or BRANCH)
    if request.method == "GET":
        return _read(repository, rest)
    if request.method == "DELETE":
        return Answer(204)
    created = {"id": 1, "number": 1, "name": repository.marker, "html_url": "", "title": "made"}
    return Answer(201 if request.method == "POST" else 200, json.dumps(created).encode())


def _read(repository: Repository, rest: tuple[str, ...]) -> Answer:
    if not rest:
        return Answer.of(200, **described(repository))
    if len(rest) == 1 and rest[0] in _LISTS:
        said: Any = [{"id": 1, "number": 1, "title": repository.marker, "name": "one"}]
    else:
        content = base64.b64encode(repository.marker.encode()).decode()
        said = {"id": 1, "name": rest[-1], "encoding": "base64", "content": content}
    return Answer(200, json.dumps(said).encode())


def _of_account(request: Request, route: Route, known: Repositories, token: Token | None) -> Answer:
    if not route.rest:
        return Answer.of(200, current_user_url=f"https://{API}/user")
    if token is None:
        return Answer.of(401, message="Requires authentication")
    if route.rest == ("user",):
        return Answer(
            200,
            json.dumps({"login": "lab-user", "id": 1, "node_id": "U_lab1"}).encode(),
            headers={"x-oauth-scopes": "repo, read:org"},
        )
    if route.rest in _LISTED_OF_THE_USER or route.rest[-1:] == ("repos",):
        seen = [described(one) for one in known.all() if token.reaches(one)]
        return Answer(200, json.dumps(seen[-30:]).encode())
    if request.method == "GET":
        return Answer.of(200, resources={}, total_count=0, items=[])
    return Answer.of(201, id=1)


def archive(repository: Repository, kind: str, ref: str) -> Answer:
    """Send on to where archives are, with a credential of the URL's own."""
    place = f"https://{CODELOAD}/{repository.full_name}/{kind}/{ref}"
    return Answer(302, headers={"location": f"{place}?token={repository.marker}"})
