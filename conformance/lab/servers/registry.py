"""The sites that are defined: how an event or a connection is matched with one of them."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.lab import addresses
from conformance.lab.journal import NONCE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# An address, or for the host's own `lo`, which others use too, an address and a port.
Place = tuple[str, int]


def place_of(address: str, port: int) -> Place:
    """Give the key that events at `address` and `port` are kept under."""
    return (address, port if addresses.is_loopback(address) else 0)


def host_only(name: str) -> str:
    """Give a host name in the form that sites are kept under: lower case, no port, no dot."""
    name = name.lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    if name.count(":") == 1:
        name = name.partition(":")[0]
    return name.rstrip(".")


@dataclass
class DefinedSite:
    """A site as the servers know it."""

    nonce: str
    worker: str
    name: str
    addresses: tuple[str, ...]
    ports: dict[str, int]
    token: str
    certificate: str
    behaviour: str
    redirect: tuple[int, str] | None
    schedule: dict[str, Any]
    shared: bool
    created: int
    asked: Counter[str] = field(default_factory=Counter)

    def places(self) -> Iterator[Place]:
        """Give each place whose events belong to the site."""
        for address in self.addresses:
            if addresses.is_loopback(address):
                yield from ((address, port) for port in set(self.ports.values()))
            else:
                yield (address, 0)

    def answer(self, record_type: str) -> list[str]:
        """Give the addresses of the next answer to a question of this type."""
        answers = self.schedule["answers"]
        if not answers:
            return []
        step = min(self.asked[record_type], len(answers) - 1)
        self.asked[record_type] += 1
        return list(answers[step])

    def to_wire(self) -> dict[str, Any]:
        """Give what the client's `Site` is made from."""
        return {
            "name": self.name,
            "address": self.addresses[0],
            "addresses": self.addresses,
            "nonce": self.nonce,
            "token": self.token,
            "certificate": self.certificate,
            "worker": self.worker,
            **self.ports,
        }


class Registry:
    """All sites of a run.

    Args:
        pools: where fresh addresses come from, by family.
    """

    def __init__(self, pools: Mapping[int, Iterator[str]] | None = None) -> None:
        self._key = secrets.token_bytes(32)
        self._pools = pools or {4: addresses.fresh_ipv4(), 6: addresses.fresh_ipv6()}
        self._by_nonce: dict[str, DefinedSite] = {}
        self._by_name: dict[str, DefinedSite] = {}
        self._by_place: dict[Place, DefinedSite] = {}
        self._workers: defaultdict[str, int] = defaultdict(lambda: len(self._workers))

    def worker_index(self, worker: str) -> int:
        """Give the number of a worker, in the order in which workers were met."""
        return self._workers[worker]

    def fresh_addresses(self, family: int) -> tuple[str, ...]:
        """Take addresses from the pool: family 4, 6, or 46 for one of each.

        Raises:
            StopIteration: the pool is used up.
        """
        return tuple(next(self._pools[int(digit)]) for digit in str(family))

    def add(self, *, own_name: bool, **fields: Any) -> DefinedSite:  # noqa: ANN401 - JSON
        """Define a site.

        Args:
            own_name: whether the site answers to its name; a host's own service answers to
                a place only.
            fields: those of `DefinedSite` but the token.
        """
        digest = hmac.new(self._key, fields["nonce"].encode(), hashlib.sha256).hexdigest()
        site = DefinedSite(token=f"token-{digest[:32]}", **fields)
        self._by_nonce[site.nonce] = site
        if own_name:
            self._by_name[host_only(site.name)] = site
        for place in site.places():
            self._by_place[place] = site
        return site

    def by_nonce(self, nonce: str) -> DefinedSite | None:
        """Give the site with this nonce."""
        return self._by_nonce.get(nonce)

    def by_name(self, name: str) -> DefinedSite | None:
        """Give the site with this name."""
        return self._by_name.get(host_only(name))

    def serving(
        self, address: str, port: int, name: str = "", path: str = ""
    ) -> DefinedSite | None:
        """Give the site that answers a connection.

        An address that is the site's alone decides; where several share one, the name does,
        then the nonce in the path, then who came last.
        """
        there = self._by_place.get(place_of(address, port))
        if there is not None and not there.shared:
            return there
        marked = NONCE.search(path.lower())
        return self.by_name(name) or (marked and self.by_nonce(marked[0])) or there

    def owners(self, address: str, port: int, name: str, *texts: str) -> list[str]:
        """Give the nonces of the sites that an event speaks of, the place's own one first."""
        found: list[str] = []
        there = self._by_place.get(place_of(address, port))
        if there is not None and not there.shared:
            found.append(there.nonce)
        named = self.by_name(name) if name else None
        if named is not None:
            found.append(named.nonce)
        else:
            texts = (name, *texts)
        for text in texts:
            if "n" in text or "N" in text:
                found += [nonce for nonce in NONCE.findall(text.lower()) if nonce in self._by_nonce]
        return list(dict.fromkeys(found))
