"""The executor inside a sandbox, as it is called through the cloud's public address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandboxes.mistral import errors
from sandboxes.mistral.errors import CloudError
from sandboxes.mistral.transport import Call, json_object

if TYPE_CHECKING:
    import httpx

    from sandboxes.mistral.definition import Json
    from sandboxes.mistral.transport import Transport

_HEALTHY = frozenset({"ok", "healthy", "ready"})
_ROUTE = "/koyeb-sandbox"
_FILE_SECONDS = 120.0
# What whoever stands before the sandbox says when there is none behind it.
_GONE = frozenset({404, 410, 502, 503, 504})


class Executor:
    """Calls of one session.

    Args:
        transport: Makes them.
        url: The sandbox's public address.
        routing_key: Leads to it.
        secret: What it asks of its callers.
    """

    def __init__(self, transport: Transport, url: str, routing_key: str, secret: str) -> None:
        self._transport = transport
        self._sandbox = transport.sandbox
        self._base = transport.check_address(url) + _ROUTE
        self._headers = {"Authorization": f"Bearer {secret}"}
        if routing_key:
            self._headers["X-Routing-Key"] = routing_key

    async def is_healthy(self, seconds: float) -> bool:
        """Whether it answers within so many seconds that it is."""
        action = "say whether the sandbox is ready"
        call = Call("GET", f"{self._base}/health", action, self._headers)
        try:
            response = await self._transport.once(call, seconds=seconds, attempts=1)
            body = response.json() if response.is_success else {}
        except (CloudError, ValueError):
            return False
        return isinstance(body, dict) and body.get("status") in _HEALTHY

    async def run(self, command: str, *, seconds: float) -> Json:
        """Run a command, once, and give what it answers within so many seconds.

        Raises:
            CloudError: There is no answer; the command may have run.
        """
        call = self._post("run", "run a command", {"cmd": command})
        try:
            response = await self._transport.once(call, seconds=seconds)
        except CloudError as error:
            if error.may_have_happened:
                raise CloudError(
                    errors.command_unanswered(self._sandbox, str(error)), may_have_happened=True
                ) from None
            raise
        return self._body(response, call.action)

    async def write_text(self, path: str, text: str) -> None:
        """Write a file of text; of anything but ASCII it would lose bytes.

        Raises:
            CloudError: It was not written.
        """
        call = self._post("write_file", "take a file", {"path": path, "content": text})
        response = await self._transport.repeated(call, seconds=_FILE_SECONDS)
        body = self._body(response, call.action)
        if body.get("error") or body.get("success") is False:
            said = self._transport.cleaned(str(body.get("error") or "no reason given"))
            raise CloudError(errors.refused(self._sandbox, call.action, response.status_code, said))

    def _post(self, name: str, action: str, body: Json) -> Call:
        return Call("POST", f"{self._base}/{name}", action, self._headers, body)

    def _body(self, response: httpx.Response, action: str) -> Json:
        status = response.status_code
        if status == 401:
            raise CloudError(errors.gone(self._sandbox, "it does not know its secret"), status=401)
        if status in _GONE:
            fact = f"HTTP {status}: {self._transport.said(response)}"
            raise CloudError(
                errors.gone(self._sandbox, fact), status=status, may_have_happened=status >= 500
            )
        if not response.is_success:
            said = self._transport.said(response)
            raise CloudError(errors.refused(self._sandbox, action, status, said), status=status)
        return json_object(response, self._sandbox, action)
