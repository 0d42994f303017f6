"""Generated allow lists and targets as places of the laboratory, and what came of each."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.oracle import Origin, opens
from conformance.probes.clients import Destination
from conformance.probes.inside import connections, describe
from conformance.strategies.policies import name_of
from conformance.verdicts import NotRun, Violation

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from conformance.lab.client import Lab
    from conformance.lab.journal import Sighting
    from conformance.lab.sites import Site
    from conformance.probes.attempts import Attempt
    from conformance.probes.inside import Inside
    from conformance.strategies.policies import Case, Kin, Spot, Target
    from conformance.subject.facade import Box
    from sandboxes.contract import Network

# Where the laboratory answers HTTPS; elsewhere the connection itself shows.
_HTTPS_PORTS = (443, 8443)
_SHOWN_ENTRIES = 5


@dataclass
class _Try:
    """A target under the policy of its session, and what came of it so far."""

    target: Target
    origin: Origin
    network: Network
    sites: list[Site]
    mark: str
    ran: list[Attempt] = field(default_factory=list)
    seen: list[Sighting] = field(default_factory=list)

    def opened(self, port: int) -> bool:
        """What the subject's own value type says of the target's host and a port."""
        return bool(self.network.reaches(str(Origin(self.origin.host, port))))

    @property
    def where(self) -> Destination:
        """Where clients go."""
        authority = self.target.authority(self.origin)
        url = f"{self.target.scheme}://{authority}/{self.sites[0].nonce}/{self.mark}"
        return Destination(url=url, host=self.origin.host, port=self.origin.port)

    def arrived(self) -> bool:
        """Whether the witnesses saw it where it was to go."""
        there = [
            one
            for one in self.seen
            if one.address in self.sites[0].addresses and one.port == self.origin.port
        ]
        if self.origin.port not in _HTTPS_PORTS:
            return bool(there)
        return any(one.kind == "request" and one.path.endswith(f"/{self.mark}") for one in there)

    def strays(self) -> list[Sighting]:
        """What the witnesses saw that the policy does not open."""
        return [
            one
            for one in self.seen
            if not self.opened(one.port) or (one.kind == "request" and one.method and not one.tls)
        ]


class Rehearsal:
    """One case, played in live sandboxes; each session lasts from its first to its last target.

    Args:
        inside: The sandboxes of the check.
        lab: Where the hosts are.
        case: What is listed, and what is tried.
        ipv6: Whether IPv6 leaves the sandbox under some policy.
    """

    def __init__(self, inside: Inside, lab: Lab, case: Case, *, ipv6: bool) -> None:
        self._inside, self._lab, self._case, self._ipv6 = inside, lab, case, ipv6
        self._dual = {spot.host for spot in case.spots() if ipv6 and spot.by == "IPv6"}
        self._sites: dict[tuple[int, Kin], Site] = {}
        self._networks = [
            self._network([entry.text(self._origin(entry.spot)) for entry in entries])
            for entries in case.lists
        ]
        self._stacks = [ExitStack() for _ in case.lists]
        self._boxes: dict[int, Box] = {}
        self._known: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with ExitStack() as both:
            for stack in self._stacks:
                both.push(stack)

    def play(self) -> Site:
        """Try every target in turn.

        Returns:
            A site that was tried, for a control.

        Raises:
            Violation: One arrived that must not, or did not arrive.
        """
        targets = self._case.targets
        for number, target in enumerate(targets):
            tried = self._tried(number, target)
            self._judge(tried)
            if all(later.session != target.session for later in targets[number + 1 :]):
                self._stacks[target.session].close()
        return tried.sites[-1]

    def _network(self, written: list[str]) -> Network:
        try:
            return self._inside.target.Network.allow(hosts=self._case.texts(written))
        except Exception as error:
            fact = f"{type(error).__name__} for a list with {written}"
            raise NotRun(
                f"Network.allow() raised {fact}, so nothing arrives: see NET-02"
            ) from error

    def _box(self, session: int) -> Box:
        if session not in self._boxes:
            opened = self._inside.opened(network=self._networks[session])
            self._boxes[session] = self._stacks[session].enter_context(opened)
        return self._boxes[session]

    def _site(self, host: int, kin: Kin) -> Site:
        if (host, kin) not in self._sites:
            own = None if kin == "itself" else self._site(host, "itself")
            self._sites[host, kin] = self._lab.site(
                family=46 if host in self._dual else 4,
                name=name_of(kin, own.name) if own else None,
                dns=[own.addresses] if own and kin == "twin" else None,
            )
        return self._sites[host, kin]

    def _origin(self, spot: Spot) -> Origin:
        site = self._site(spot.host, spot.kin)
        if spot.by == "name":
            return Origin(site.name, spot.port)
        colon = spot.by == "IPv6" and self._ipv6
        address = next(address for address in site.addresses if (":" in address) == colon)
        return Origin(address, spot.port)

    def _tried(self, number: int, target: Target) -> _Try:
        spot, network = target.spot, self._networks[target.session]
        sites = [self._site(spot.host, spot.kin)]
        if spot.kin == "twin":
            sites.append(self._site(spot.host, "itself"))
        tried = _Try(target, self._origin(spot), network, sites, str(number))
        wanted = target.scheme == "https" and tried.opened(spot.port)
        ways = self._inside.ways("allow", target.scheme)
        # Each client is refused by itself elsewhere; here two in turn show the same.
        chosen = ways if wanted else [ways[at] for at in {0, number % len(ways)}]
        for client, scheme in chosen:
            ran = self._inside.attempt(
                self._box(target.session), client, scheme, tried.where, patient=wanted
            )
            tried.ran.append(ran)
            if wanted:  # one way out is enough
                self._look(tried)
                if tried.arrived() or not target.is_canonical:
                    return tried
        self._look(tried)
        return tried

    def _look(self, tried: _Try) -> None:
        """Ask the witnesses what is new at the target."""
        for site in tried.sites:
            known = self._known.get(site.nonce, -1)
            new = [one for one in self._lab.seen(site) if one.number > known]
            self._known[site.nonce] = max((one.number for one in new), default=known)
            # Names of relatives hold one another's, and so do the first bytes of their TLS.
            tried.seen += [
                one
                for one in connections(new, *tried.sites)
                if one.address in site.addresses or site.nonce in one.path
            ]

    def _judge(self, tried: _Try) -> None:
        target, hosts = tried.target, tried.network.hosts
        says = tried.opened(tried.origin.port)
        listed = {self._origin(entry.spot) for entry in self._case.lists[target.session]}
        odd = "" if says == opens("allow", listed, tried.origin) else ", against its own list"
        rest = f" and {len(hosts) - _SHOWN_ENTRIES} more" if len(hosts) > _SHOWN_ENTRIES else ""
        under = f"with {list(hosts[-_SHOWN_ENTRIES:])}{rest} listed"
        word = f"Network.reaches({str(tried.origin)!r}) is {says}{odd}"
        ran = "; ".join(map(str, tried.ran))
        if strays := tried.strays():
            raise Violation(
                f"{under}, where {word}, it let this through: {ran}",
                saw=describe(strays),
                remedy="let nothing through but HTTPS to what Network.reaches() says",
            )
        wanted = says and target.scheme == "https" and target.is_canonical
        if wanted and not tried.arrived():
            self._inside.control(tried.sites[0], "https")
            raise Violation(
                f"{under}, where {word}, it refused this: {ran}",
                saw=describe(tried.seen),
                remedy="let HTTPS through to all that Network.reaches() says",
            )
