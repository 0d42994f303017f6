"""Mistral's API: it hands out sessions of Sandbox Proxy, and tells as whom it was asked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

from conformance.lab.cloud.wire import Answer, Hangup
from conformance.lab.sandbox_proxy.sessions import Wanted
from sandboxes.contract import RefusedConfiguration, SandboxStartError

if TYPE_CHECKING:
    from conformance.lab.cloud.wire import Caller, Request
    from conformance.lab.sandbox_proxy.identities import Identities, Identity
    from conformance.lab.sandbox_proxy.sessions import Sessions

BOOTSTRAP = "/v1/sandbox-proxy/bootstrap"
SESSIONS = "/v1/sandbox-proxy/sessions/"

_TYPES = frozenset({"github", "mistral_api", "secret_injection"})


class Unusable(Exception):
    """A bootstrap asks for what cannot be."""


class Api:
    """Answers requests.

    Args:
        identities: who there is.
        sessions: hands them out.
        bootstraps: takes a row for each bootstrap.
        requests: takes a row for each other request.
    """

    def __init__(
        self,
        identities: Identities,
        sessions: Sessions,
        bootstraps: list[dict[str, Any]],
        requests: list[dict[str, Any]],
    ) -> None:
        self._identities = identities
        self._sessions = sessions
        self._bootstraps = bootstraps
        self._requests = requests

    async def handle(self, request: Request, _: Caller) -> Answer:
        """Answer one."""
        identity = self._identities.bearing(request.headers.get("authorization", ""))
        if request.path == BOOTSTRAP and request.method == "POST":
            return await self._bootstrap(request, identity)
        if request.path.startswith(SESSIONS) and request.method == "DELETE":
            return self._revoke(request.path.removeprefix(SESSIONS), identity)
        user = "" if identity is None else identity.name
        self._requests.append(
            {
                "method": request.method,
                "target": request.target,
                "user": user,
                "headers": dict(request.headers),
            }
        )
        if identity is None:
            return Answer.of(401, message="Unauthorized")
        return Answer.of(200, user=user)

    def _revoke(self, name: str, identity: Identity | None) -> Answer:
        if identity is None:
            return Answer.of(401, message="the credential is not known")
        found = self._sessions.end_one(identity, name)
        return Answer.of(200) if found else Answer.of(404, message="there is no such session")

    async def _bootstrap(self, request: Request, identity: Identity | None) -> Answer:
        row: dict[str, Any] = {
            "identity": identity.name if identity else "",
            "authorization": request.headers.get("authorization", ""),
            "body": request.json(),
            "status": 0,
            "session": "",
        }
        self._bootstraps.append(row)
        answer = await self._answer(request, identity, row)
        row["status"] = answer.status
        return answer

    async def _answer(
        self, request: Request, identity: Identity | None, row: dict[str, Any]
    ) -> Answer:
        if identity is None:
            return Answer.of(401, message="the credential is not known")
        if identity.goes_wrong("cut"):
            raise Hangup
        if fault := identity.goes_wrong("slow"):
            await asyncio.sleep(fault.seconds)
        if fault := identity.goes_wrong("refuse"):
            return Answer.of(fault.status, message="it was told to refuse")
        if identity.goes_wrong("rubbish"):
            return Answer.text(200, "<html>hello</html>")
        try:
            wanted = wanted_of(request.json())
        except Unusable as error:
            return Answer.of(422, message=str(error))
        if missing := identity.unreached(wanted.repositories):
            return Answer.of(403, message=f"the connector does not reach {', '.join(missing)}")
        short = identity.goes_wrong("short_life")
        seconds = wanted.seconds if short is None else min(short.seconds, wanted.seconds)
        try:
            session, certificate = await self._sessions.begin(identity, wanted, seconds)
        except (RefusedConfiguration, SandboxStartError) as error:
            return Answer.of(422, message=str(error))
        row["session"] = session.name
        return Answer.of(
            200,
            environment=session.environment(),
            certificate=certificate.decode("ascii"),
            expires_in_seconds=seconds,
            session=session.name,
        )


def wanted_of(body: dict[str, Any]) -> Wanted:
    """Read what a bootstrap asks for.

    Raises:
        Unusable: It cannot be.
    """
    found: dict[str, Any] = {}
    seconds = []
    integrations = body.get("integrations")
    if not isinstance(integrations, list) or not integrations:
        raise Unusable("integrations is no list, or empty")
    for one in integrations:
        kind = one.get("type") if isinstance(one, dict) else None
        if kind not in _TYPES or kind in found:
            raise Unusable(f"the integration {kind!r} is unknown, or there twice")
        found[kind] = one
        seconds.append(_seconds(one.get("ttl_seconds", 3600)))
    if found.get("mistral_api", {}).get("run_as", "auto") != "auto":
        raise Unusable('run_as is none but "auto"')
    return Wanted(
        repositories=_repositories(found["github"]) if "github" in found else None,
        mistral_api="mistral_api" in found,
        secret_injection="secret_injection" in found,
        seconds=min(seconds),
    )


def _seconds(given: object) -> float:
    if not isinstance(given, int) or isinstance(given, bool) or given <= 0:
        raise Unusable("ttl_seconds is no positive whole number")
    return float(given)


def _repositories(asked: dict[str, Any]) -> tuple[str, ...] | Literal["all"]:
    if asked.get("host", "github.com") != "github.com":
        raise Unusable("host is none but github.com")
    repos = asked.get("repos")
    if repos == "all":
        return "all"
    if not isinstance(repos, list) or not all(isinstance(one, str) for one in repos):
        raise Unusable('repos is no list of repositories, and not "all"')
    return tuple(repos)
