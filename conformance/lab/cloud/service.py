"""The cloud as a process: its two doors, one for its customers and one for the checks."""

from __future__ import annotations

import secrets
import socket
from typing import TYPE_CHECKING, Any

from conformance.lab.cloud.control_plane import ControlPlane
from conformance.lab.cloud.edge import Edge
from conformance.lab.cloud.estate import Estate
from conformance.lab.cloud.faults import Fault, Faults
from conformance.lab.cloud.nursery import Nursery
from conformance.lab.cloud.place import SUFFIX
from conformance.lab.cloud.wire import Caller
from conformance.lab.errors import LabError
from conformance.lab.serving import Door, serve, until_cancelled

if TYPE_CHECKING:
    import asyncio
    import ssl
    from pathlib import Path

    from conformance.lab.cloud.estate import App


class Cloud:
    """One organization at the provider.

    Args:
        folder: where instances are put.
        address: what its public address is where there are no names; by default apps have
            names of their own, over TLS.
    """

    def __init__(self, folder: Path, address: str = "") -> None:
        nursery = Nursery()  # before there is a secret
        self._address = address
        self.token = secrets.token_urlsafe(32)
        self._faults = Faults()
        self.estate = Estate(folder, self._faults, _domain, nursery)
        plane = ControlPlane(self.estate, self.token, self._public_url)
        self._edge = Edge(self.estate, plane, self._faults)

    def _public_url(self, app: App) -> str:
        return self._address or f"https://{app.domain}"

    async def serve(
        self, door: socket.socket, control: socket.socket, tls: ssl.SSLContext | None = None
    ) -> None:
        """Serve until cancelled, and delete everything then.

        Args:
            door: listens for customers.
            control: a unix socket that listens for the checks.
            tls: the certificate of the door, where nobody before it speaks TLS.
        """
        try:
            await serve(control, self._do, Door(door, self._take, tls=tls))
        finally:
            await self.estate.close()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        caller = writer.get_extra_info("socket")
        if caller.family != socket.AF_UNIX:  # asyncio does it only where it knows the protocol
            caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await Caller(reader, writer).serve(self._edge.handle)

    async def _do(self, what: str, fields: dict[str, Any]) -> dict[str, Any]:
        if what == "token":
            return {"token": self.token}
        if what == "inventory":
            return {"rows": self.estate.inventory()}
        if what == "last_request":
            return {"number": self._edge.last_request}
        if what == "requests":
            return {"rows": [row for row in self._edge.requests if row["number"] > fields["since"]]}
        if what == "provision":
            return {"service": await self.estate.provision(**fields)}
        if what == "inject":
            self._faults.add(Fault(**fields))
        elif what == "remove":
            service = self.estate.services.get(fields["service"])
            if service is not None:
                await self.estate.remove_app(self.estate.apps[service.app_id])
        elif what == "reset":
            self._faults.clear()
            self._edge.requests.clear()
            for app in list(self.estate.apps.values()):
                await self.estate.remove_app(app)
        elif what == "mend":
            self._faults.clear()
        elif what == "kill":
            for deployment in self.estate.deployments.values():
                if deployment.instance is not None:
                    deployment.instance.kill()
        else:
            raise LabError(f"the cloud does not know how to {what}")
        return {}


def _domain(app: str) -> str:
    return f"{app[:40]}-{secrets.token_hex(4)}{SUFFIX}"


async def run(
    cloud: Cloud, door: socket.socket, control: socket.socket, tls: ssl.SSLContext | None = None
) -> None:
    """Serve until the task is cancelled."""
    await until_cancelled(cloud.serve(door, control, tls))
