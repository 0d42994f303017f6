"""Sandbox Proxy as a process: its two doors for customers, and one for the checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.lab.cloud.wire import Caller
from conformance.lab.errors import LabError
from conformance.lab.sandbox_proxy.api import Api
from conformance.lab.sandbox_proxy.gate import HEAD_BYTES, Gate
from conformance.lab.sandbox_proxy.identities import Fault, Identities, Identity, Rule
from conformance.lab.sandbox_proxy.sessions import Sessions
from conformance.lab.serving import Door, serve, until_cancelled

if TYPE_CHECKING:
    import asyncio
    import socket
    from pathlib import Path


class SandboxProxy:
    """The service.

    Args:
        folder: where the proxies of sessions listen.
        bundle: certificates that it trusts.
    """

    def __init__(self, folder: Path, bundle: Path) -> None:
        self._records: dict[str, list[dict[str, Any]]] = {
            "bootstraps": [],
            "requests": [],
            "connections": [],
        }
        self._identities = Identities()
        self.sessions = Sessions(folder, bundle)
        self._api = Api(
            self._identities, self.sessions, self._records["bootstraps"], self._records["requests"]
        )
        self._gate = Gate(self.sessions, self._records["connections"])

    async def serve(self, api: socket.socket, gate: socket.socket, control: socket.socket) -> None:
        """Serve until cancelled.

        Args:
            api: listens for whoever asks Mistral's API.
            gate: listens for whoever wants a proxy.
            control: listens for the checks.
        """
        doors = (
            Door(api, self._take_api),
            Door(gate, self._gate.serve, HEAD_BYTES),
        )
        try:
            await serve(control, self._do, *doors)
        finally:
            await self.sessions.close()

    async def _take_api(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Caller(reader, writer).serve(self._api.handle)

    async def _do(self, what: str, fields: dict[str, Any]) -> dict[str, Any]:
        if what in self._records:
            return {"rows": list(self._records[what])}
        if what == "workspaces":
            return {"rows": self._identities.workspaces()}
        if what == "sessions":
            return {"rows": list(self.sessions.handed_out())}
        if what == "identity":
            return {"credential": self._add(**fields)}
        identity = self._identities.named(fields.pop("identity"))
        if what == "rules":
            identity.rules = tuple(Rule(**rule) for rule in fields["rules"])
        elif what == "connect":
            identity.repositories = _repositories(fields["repositories"])
        elif what == "inject":
            identity.faults.append(Fault(**fields))
        elif what == "mend":
            identity.faults.clear()
        elif what == "end":
            self.sessions.end(identity)
        else:
            raise LabError(f"the sandbox proxy does not know how to {what}")
        return {}

    def _add(
        self,
        *,
        name: str,
        rules: list[dict[str, Any]],
        repositories: list[str] | None,
        github_token: str,
    ) -> str:
        identity = Identity(
            name,
            rules=tuple(Rule(**rule) for rule in rules),
            repositories=_repositories(repositories),
            github_token=github_token,
        )
        self._identities.add(identity)
        return identity.credential


def _repositories(given: list[str] | None) -> tuple[str, ...] | None:
    return None if given is None else tuple(given)


async def run(
    folder: Path, bundle: Path, api: socket.socket, gate: socket.socket, control: socket.socket
) -> None:
    """Serve until the task is cancelled."""
    await until_cancelled(SandboxProxy(folder, bundle).serve(api, gate, control))
