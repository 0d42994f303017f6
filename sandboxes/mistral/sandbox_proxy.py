"""The client of Sandbox Proxy's bootstrap API: what a session's commands get instead of secrets.

The protocol is that of docs/sandbox-proxy.md.
"""

from __future__ import annotations

import math
import os
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

from sandboxes.contract import (
    GitHubBinding,
    MistralApiBinding,
    SandboxStartError,
    WorkspaceHeaderBindings,
    messages,
)
from sandboxes.mistral import errors
from sandboxes.mistral.errors import CloudError
from sandboxes.mistral.transport import Call, json_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import httpx

    from sandboxes.contract import AnyBinding
    from sandboxes.mistral.definition import Json
    from sandboxes.mistral.transport import Transport

URL_VARIABLE = "MISTRAL_API_URL"
DEFAULT_URL = "https://api.mistral.ai"
KEY_VARIABLE = "MISTRAL_API_KEY"
_BASE = "/v1/sandbox-proxy"
_ACTION = "set up Sandbox Proxy"
_REVOKING = "revoke the session's credential"
_ANSWER_SECONDS = 4.0
_NOT_FOUND = 404
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHORTEST_SECRET = 16
_CERTIFICATE = "-----BEGIN CERTIFICATE-----"


def credential_of(sandbox: str, identity: str | None) -> str:
    """Whose credential a session asks with: its caller's, or in process that of the environment.

    Args:
        sandbox: What errors call the sandbox.
        identity: What the session brings.

    Raises:
        SandboxStartError: There is none, or it cannot be sent.
    """
    found = os.environ.get(KEY_VARIABLE, "").strip() if identity is None else identity
    if not found and identity is None:
        raise SandboxStartError(errors.no_identity(sandbox, KEY_VARIABLE))
    if not found.isascii() or not found.isprintable() or not found or " " in found:
        raise SandboxStartError(f"{sandbox}: {messages.unusable_identity()}")
    return found


def integrations(bindings: Iterable[AnyBinding]) -> list[Json]:
    """What is asked for, one entry for each binding."""
    found: list[Json] = []
    for binding in bindings:
        if isinstance(binding, GitHubBinding):
            repos = binding.repos if binding.repos == "all" else list(binding.repos)
            found.append(
                {
                    "type": "github",
                    "repos": repos,
                    "ttl_seconds": binding.ttl_seconds,
                    "host": binding.host,
                }
            )
        elif isinstance(binding, MistralApiBinding):
            found.append(
                {
                    "type": "mistral_api",
                    "ttl_seconds": binding.ttl_seconds,
                    "run_as": binding.run_as,
                }
            )
        elif isinstance(binding, WorkspaceHeaderBindings):
            found.append({"type": "secret_injection"})
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a bootstrap answered.

    Attributes:
        environment: Variables of commands.
        certificate: What programs inside must trust, as PEM; empty where nothing is opened.
        began: When it was asked for, on `time.monotonic`.
        seconds: How long it lives from then.
        session: Its name, by which it is revoked; empty where it has none.
    """

    environment: Mapping[str, str] = field(repr=False)
    certificate: str
    began: float
    seconds: float
    session: str = ""

    @property
    def left(self) -> float:
        """How long it still lives, in seconds."""
        return self.began + self.seconds - time.monotonic()


class SandboxProxy:
    """Asks for a session's setups; each is a new one, so that asking again does no harm.

    Args:
        transport: Makes the calls.
        credential: The user's.
        bindings: What is asked for.
    """

    def __init__(
        self, transport: Transport, credential: str, bindings: Iterable[AnyBinding]
    ) -> None:
        self._transport = transport
        self._sandbox = transport.sandbox
        origin = os.environ.get(URL_VARIABLE, "").strip() or DEFAULT_URL
        base = transport.check_address(origin) + _BASE
        self._url, self._sessions = f"{base}/bootstrap", f"{base}/sessions"
        self._headers = {"Authorization": f"Bearer {credential}"}
        self._body: Json = {"integrations": integrations(bindings)}

    async def bootstrap(self, *, seconds: float, deadline: float) -> Setup:
        """Ask for one.

        Args:
            seconds: How long one answer may take.
            deadline: When nobody wants it any more, on `time.monotonic`.

        Raises:
            CloudError: It was refused, or no answer came that can be used.
        """
        began = time.monotonic()
        call = Call("POST", self._url, _ACTION, self._headers, self._body)
        response = await self._transport.repeated(call, seconds=seconds, deadline=deadline)
        if not response.is_success:
            raise self._refused(response)
        return self._setup(json_object(response, self._sandbox, _ACTION, URL_VARIABLE), began)

    def _refused(self, response: httpx.Response) -> CloudError:
        status, said = response.status_code, self._transport.said(response)
        return CloudError(errors.no_bootstrap(self._sandbox, status, said), status=status)

    def _setup(self, body: Json, began: float) -> Setup:
        environment, certificate = body.get("environment"), body.get("certificate")
        seconds = body.get("expires_in_seconds")
        if not isinstance(environment, dict) or not environment:
            raise self._nonsense("it has no environment")
        for name, value in environment.items():
            if not _NAME.fullmatch(name) or not isinstance(value, str) or "\0" in value:
                raise self._nonsense(f"its variable {name!r} is none")
            if len(value) >= _SHORTEST_SECRET:
                self._transport.keep_secret(value)
        if not isinstance(certificate, str) or (certificate and _CERTIFICATE not in certificate):
            raise self._nonsense("its certificate is none")
        right = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not right or not 0 < float(seconds or 0) < math.inf:
            raise self._nonsense("expires_in_seconds is no positive number")
        return Setup(
            environment=environment,
            certificate=certificate,
            began=began,
            seconds=float(seconds or 0),
            session=str(body.get("session") or ""),
        )

    async def revoke(self, setup: Setup, *, deadline: float) -> None:
        """Have what was handed out refused from now on; what is over already is.

        Args:
            setup: What was handed out.
            deadline: When nobody waits any more, on `time.monotonic`.

        Raises:
            CloudError: It is accepted until its life ends.
        """
        if not setup.session or setup.left <= 0:
            return
        url = f"{self._sessions}/{quote(setup.session, safe='')}"
        call = Call("DELETE", url, _REVOKING, self._headers)
        response = await self._transport.repeated(call, seconds=_ANSWER_SECONDS, deadline=deadline)
        if not response.is_success and response.status_code != _NOT_FOUND:
            said = self._transport.said(response)
            fact = f"HTTP {response.status_code}: {said}"
            raise CloudError(errors.not_revoked(self._sandbox, fact, setup.left))

    def _nonsense(self, fact: str) -> CloudError:
        return CloudError(errors.nonsense(self._sandbox, _ACTION, fact, URL_VARIABLE))
