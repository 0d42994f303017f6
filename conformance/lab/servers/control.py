"""The control socket: what clients inside the lab define and ask for, a line of JSON each."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Protocol

from conformance.lab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from conformance.lab.journal import Sighting
    from conformance.lab.servers.records import Journal
    from conformance.lab.servers.registry import DefinedSite, Registry
    from conformance.lab.servers.sniffer import Sniffer

_LINE_BYTES = 1 << 20
_MARKER_SECONDS = 5.0
_PAUSE_SECONDS = 0.001
_TURNS = 4
_BUSY_TURNS = 200


class Places(Protocol):
    """How sites come to listen, which differs between the modes."""

    def open(self, family: int) -> tuple[tuple[str, ...], dict[str, int]]:
        """Give fresh addresses and the ports of a new site on the internet."""

    def on_host(self, worker: int, family: int) -> tuple[tuple[str, ...], dict[str, int]]:
        """Give the addresses and ports of a service of the subject's own host."""


class Control:
    """Answers the lab's clients.

    Args:
        journal: what was seen.
        registry: the sites.
        places: where sites listen.
        sniffers: those whose queues a barrier empties; none in a lab without packets.
        drains: what else a barrier empties: accept queues and datagrams.
        unread: whether a connection holds bytes that are not recorded yet.
    """

    def __init__(
        self,
        journal: Journal,
        registry: Registry,
        places: Places,
        sniffers: Sequence[Sniffer],
        drains: Sequence[Callable[[], None]],
        unread: Callable[[], bool],
    ) -> None:
        self._journal = journal
        self._registry = registry
        self._places = places
        self._sniffers = sniffers
        self._drains = drains
        self._unread = unread

    async def listen(self, path: Path) -> asyncio.Server:
        """Begin to answer at `path`."""
        return await asyncio.start_unix_server(self._converse, path, limit=_LINE_BYTES)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                request = json.loads(line)
                number = request.pop("id")
                try:
                    answer = await self._answer(request)
                except LabError as failure:
                    answer = {"error": failure.reason}
                answer["id"] = number
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError):
            pass  # the client is gone, or is none of ours
        finally:
            writer.close()

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        operation = request.pop("do")
        if operation == "define":
            return self._define(**request)
        if operation == "controls":
            self._journal.control_ports.update(map(tuple, request["add"]))
            self._journal.control_ports.difference_update(map(tuple, request["remove"]))
            return {}
        if operation == "ping":
            return {"events": len(self._journal)}
        await self._barrier(request["marker"].encode())
        if operation == "mark":
            return {"number": len(self._journal)}
        if operation == "traffic":
            return _wired(self._journal.since(request["since"]))
        site = self._registry.by_nonce(request["nonce"])
        if site is None:
            raise LabError(f"the lab knows no site {request['nonce']}; make it with Lab.site")
        return _wired(self._journal.of_site(site, controls=request["controls"]))

    def _define(
        self,
        *,
        worker: str,
        family: int,
        on_host: bool,
        name: str | None,
        given: list[str],
        names: dict[str, Any] | None,
        redirect: list[Any] | None,
        **fields: Any,  # noqa: ANN401 - JSON
    ) -> dict[str, Any]:
        if on_host:
            found, ports = self._places.on_host(self._registry.worker_index(worker), family)
        else:
            found, ports = self._places.open(0 if given else family)
        addresses = tuple(given) or found
        site: DefinedSite = self._registry.add(
            own_name=not on_host and name not in (None, "localhost"),
            worker=worker,
            name="localhost" if on_host else name or addresses[0],
            addresses=addresses,
            ports=ports,
            redirect=(redirect[0], redirect[1]) if redirect else None,
            schedule=names or {"answers": [list(addresses)], "delay": 0.0, "silent": False},
            shared=bool(given) or on_host,
            created=len(self._journal),
            **fields,
        )
        return site.to_wire()

    async def _barrier(self, marker: bytes) -> None:
        """Return when everything that was sent before the question is recorded.

        Raises:
            LabError: the question's own packet did not come by, or packets were lost.
        """
        self._drain()
        deadline = asyncio.get_running_loop().time() + _MARKER_SECONDS
        while self._sniffers and marker not in self._markers():
            if asyncio.get_running_loop().time() > deadline:
                raise LabError(
                    f"the lab's sniffer saw no packet of ours within {_MARKER_SECONDS:.0f} s; "
                    "the machine is overloaded, or the wire was cut"
                )
            await asyncio.sleep(_PAUSE_SECONDS)
            self._drain()
        # A connection that was just taken is read in the turns that follow.
        for turn in range(_BUSY_TURNS):
            await asyncio.sleep(0 if turn < _TURNS else _PAUSE_SECONDS)
            self._drain()
            if turn >= _TURNS - 1 and not self._unread():
                break
        for sniffer in self._sniffers:
            sniffer.markers.discard(marker)
            sniffer.check()
        if self._journal.dropped:
            raise LabError("the journal is full; run fewer examples at a time")
        self._journal.flush()

    def _markers(self) -> set[bytes]:
        return set().union(*(sniffer.markers for sniffer in self._sniffers))

    def _drain(self) -> None:
        for sniffer in self._sniffers:
            sniffer.drain()
        for drain in self._drains:
            drain()


def _wired(events: Sequence[Sighting]) -> dict[str, Any]:
    return {"events": [event.to_wire() for event in events]}
