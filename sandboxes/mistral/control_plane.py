"""The control plane: apps, services and deployments."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sandboxes.contract import SandboxStartError
from sandboxes.mistral import errors
from sandboxes.mistral.definition import Deployment, Json
from sandboxes.mistral.errors import TOKEN_VARIABLES, CloudError
from sandboxes.mistral.transport import CALL_SECONDS, Call, json_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from sandboxes.mistral.transport import Transport

HOST_VARIABLE = "KOYEB_API_HOST"
DEFAULT_HOST = "https://app.koyeb.com"
_PAGE = 100
_MOST_PAGES = 100
_NOT_FOUND = 404


def token(sandbox: str) -> str:
    """The API token of the environment.

    Raises:
        SandboxStartError: There is none.
    """
    for variable in TOKEN_VARIABLES:
        found = os.environ.get(variable, "").strip()
        if found:
            return found
    raise SandboxStartError(errors.no_token(sandbox))


class ControlPlane:
    """Calls of one session; none is made twice that would make a thing twice.

    Args:
        transport: Makes them.
        api_token: Says who we are.
    """

    def __init__(self, transport: Transport, api_token: str) -> None:
        self._transport = transport
        self._sandbox = transport.sandbox
        host = os.environ.get(HOST_VARIABLE, "").strip() or DEFAULT_HOST
        self._base = transport.check_address(host) + "/v1"
        self._headers = {"Authorization": f"Bearer {api_token}"}

    async def create(self, kind: str, body: Json, deadline: float) -> str:
        """Make an app or a service, once, and give its id.

        Args:
            kind: `"app"` or `"service"`.
            body: What it is to be.
            deadline: When nobody wants it any more, on `time.monotonic`.

        Raises:
            CloudError: It was refused, or nobody knows whether it was made.
        """
        action = f"create the {kind}"
        call = Call("POST", f"{self._base}/{kind}s", action, self._headers, body)
        response = await self._transport.once(call, seconds=CALL_SECONDS, deadline=deadline)
        made = self._body(response, action).get(kind)
        identifier = made.get("id") if isinstance(made, dict) else None
        if not isinstance(identifier, str) or not identifier:
            fact = f"it names no {kind}"
            raise CloudError(errors.nonsense(self._sandbox, action, fact), may_have_happened=True)
        return identifier

    async def find(
        self, kind: str, name: str, *, deadline: float | None = None, **filters: str
    ) -> str | None:
        """The id of the app or service of that name; None where there is none.

        Raises:
            CloudError: It cannot be told.
        """
        action = f"list the {kind}s"
        for page in range(_MOST_PAGES):
            query = {"limit": str(_PAGE), "offset": str(page * _PAGE), "name": name, **filters}
            body = await self._get(f"{kind}s", action, deadline, query)
            entries = body.get(f"{kind}s")
            entries = entries if isinstance(entries, list) else []
            for entry in entries:
                # The filter need not be exact.
                if isinstance(entry, dict) and entry.get("name") == name:
                    return str(entry.get("id") or "") or None
            if len(entries) < _PAGE:
                return None
        return None

    async def service(self, identifier: str, deadline: float | None = None) -> Json:
        """What the cloud knows of a service."""
        body = await self._get(f"services/{identifier}", "show the service", deadline)
        found = body.get("service")
        return found if isinstance(found, dict) else {}

    async def deployment(self, identifier: str, deadline: float | None = None) -> Deployment:
        """What the cloud knows of a deployment."""
        body = await self._get(f"deployments/{identifier}", "show the deployment", deadline)
        return Deployment.read(body)

    async def domain(self, app_id: str, deadline: float | None = None) -> str:
        """The first public name of an app; empty where it has none."""
        app = (await self._get(f"apps/{app_id}", "show the app", deadline)).get("app")
        domains = app.get("domains") if isinstance(app, dict) else None
        first = domains[0] if isinstance(domains, list) and domains else {}
        return str(first.get("name") or "") if isinstance(first, dict) else ""

    async def delete_app(self, identifier: str, deadline: float | None = None) -> None:
        """Delete an app with all that is in it; one that is gone is deleted.

        Raises:
            CloudError: It is not.
        """
        action = "delete the app"
        call = Call("DELETE", f"{self._base}/apps/{identifier}", action, self._headers)
        response = await self._transport.repeated(call, deadline=deadline)
        if response.status_code != _NOT_FOUND:
            self._check(response, action)

    async def _get(
        self,
        path: str,
        action: str,
        deadline: float | None,
        query: Mapping[str, str] | None = None,
    ) -> Json:
        call = Call("GET", f"{self._base}/{path}", action, self._headers, query=query)
        response = await self._transport.repeated(call, deadline=deadline)
        return self._body(response, action)

    def _body(self, response: httpx.Response, action: str) -> Json:
        self._check(response, action)
        return json_object(response, self._sandbox, action)

    def _check(self, response: httpx.Response, action: str) -> None:
        if response.is_success:
            return
        status = response.status_code
        said = self._transport.said(response)
        raise CloudError(
            errors.refused(self._sandbox, action, status, said),
            status=status,
            # Whoever stands before the cloud may have lost its answer.
            may_have_happened=status >= 500,
        )
