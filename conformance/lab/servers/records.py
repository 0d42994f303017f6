"""The servers' side of the journal: in memory, by site and by place, and a file to read later."""

from __future__ import annotations

import dataclasses
import json
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from conformance.lab.addresses import plain
from conformance.lab.journal import PAYLOAD_LIMIT, Kind, Sighting
from conformance.lab.servers.registry import place_of

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.lab.servers.registry import DefinedSite, Place, Registry

_MOST_EVENTS = 1_000_000


class Journal:
    """Every event of a run.

    Args:
        registry: the sites that events are matched with.
        path: file that a line of JSON is added to for each event.
    """

    def __init__(self, registry: Registry, path: Path) -> None:
        self._registry = registry
        self._events: list[Sighting] = []
        self._controls: set[int] = set()
        self._by_nonce: defaultdict[str, list[int]] = defaultdict(list)
        self._by_place: defaultdict[Place, list[int]] = defaultdict(list)
        self._file = path.open("a", encoding="utf-8")
        self.control_ports: set[tuple[str, int]] = set()
        self.dropped = 0

    def __len__(self) -> int:
        """Number of events."""
        return len(self._events)

    def record(
        self,
        kind: Kind,
        local: tuple[str, int],
        source: tuple[str, int],
        protocol: str = "tcp",
        **fields: Any,  # noqa: ANN401 - the other fields of Sighting
    ) -> int:
        """Add an event, and give its number.

        Args:
            kind: of the event.
            local: address and port that were dialled.
            source: address and port that it came from.
            protocol: of the packet.
            fields: further fields of `Sighting`.
        """
        number = len(self._events)
        if number >= _MOST_EVENTS:
            self.dropped += 1
            return number - 1
        event = Sighting(
            kind=kind,
            address=plain(local[0]),
            port=local[1],
            protocol=protocol,
            source=(plain(source[0]), source[1]),
            time=time.monotonic(),
            number=number,
            **fields,
        )
        self._events.append(self._filed(event))
        self._by_place[place_of(event.address, event.port)].append(number)
        if (protocol, source[1]) in self.control_ports:
            self._controls.add(number)
        self._write(self._events[number])
        return number

    def amend(self, number: int, payload: bytes) -> None:
        """Give an event the payload that came after it was recorded."""
        event = dataclasses.replace(self._events[number], payload=payload[:PAYLOAD_LIMIT])
        self._events[number] = self._filed(event)
        self._write(event)

    def _filed(self, event: Sighting) -> Sighting:
        text = event.payload.decode("latin-1")
        owners = self._registry.owners(event.address, event.port, event.name, event.path, text)
        for nonce in owners:
            numbers = self._by_nonce[nonce]
            if event.number not in numbers[-1:]:
                numbers.append(event.number)
        return dataclasses.replace(event, site=owners[0]) if owners else event

    def _write(self, event: Sighting) -> None:
        self._file.write(json.dumps(event.to_wire()) + "\n")

    def flush(self) -> None:
        """Bring the file up to date."""
        self._file.flush()

    def of_site(self, site: DefinedSite, *, controls: bool) -> list[Sighting]:
        """Give the events of a site: its marks, and what came to its places since it is there.

        Args:
            site: the site.
            controls: give those of the harness's own clients instead of all others.
        """
        numbers = set(self._by_nonce.get(site.nonce, ()))
        for place in site.places():
            here = self._by_place.get(place, ())
            numbers.update(number for number in here if number >= site.created)
        chosen = sorted(n for n in numbers if (n in self._controls) is controls)
        return [dataclasses.replace(self._events[n], site=site.nonce) for n in chosen]

    def since(self, number: int) -> list[Sighting]:
        """Give all events from `number` on but those of the harness's own clients."""
        return [event for event in self._events[number:] if event.number not in self._controls]
