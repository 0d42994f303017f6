"""One check's view of the inside: live sandboxes, the clients they have, and controls.

A refusal counts only with controls in the same laboratory, so nothing here trusts a
client that was not seen to get through somewhere.
"""

from __future__ import annotations

import secrets
import shlex
from dataclasses import replace
from importlib.resources import files
from typing import TYPE_CHECKING

from conformance.probes.attempts import Attempts
from conformance.probes.clients import Client, Destination, Scheme
from conformance.probes.places import Family, Place, destination, entry
from conformance.verdicts import NotRun, Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conformance.lab.client import Lab
    from conformance.lab.journal import Sighting
    from conformance.lab.sites import Site
    from conformance.oracle import Mode
    from conformance.subject.targets import Target

# Kept for the whole run: what a client can do does not change between checks.
_private_reached: dict[str, bool] = {}
_proven: dict[tuple[str, str, Scheme, Family], bool] = {}
_heard: dict[tuple[str, str, Scheme], bool] = {}

_DNS_PORT = 53


def connections(sightings: Iterable[Sighting], *sites: Site) -> list[Sighting]:
    """Leave out name resolution: what an allow list says of it is a rule of its own.

    Args:
        sightings: What the witnesses saw.
        *sites: What came to their own addresses is no resolution, whatever the port.
    """
    own = {address for site in sites for address in site.addresses}
    return [
        one
        for one in sightings
        if (one.kind != "dns" and one.port != _DNS_PORT) or one.address in own
    ]


def describe(sightings: Sequence[Sighting]) -> str:
    """Say in one line what the witnesses saw."""
    shown = [str(one) for one in sightings[:3]]
    more = [f"and {len(sightings) - 3} more"] if len(sightings) > 3 else []
    return ", ".join([*shown, *more]) or "nothing"


def needs_of_lab(lab: Lab, *shown: str) -> None:
    """Go on only where the laboratory can show these things; see `Lab.missing`.

    Raises:
        NotRun: It cannot; the reason says how to have one that can.
    """
    for thing in shown:
        if thing in lab.missing:
            raise NotRun(lab.missing[thing])


class Inside(Attempts):
    """The sandboxes of one check, what is tried in them, and what proves that it works.

    Args:
        target: The sandbox under test.
        lab: Gives the laboratory it is in, when it is first needed.
    """

    def __init__(self, target: Target, lab: Callable[[], Lab]) -> None:
        super().__init__(target, lab)
        self._controlled: set[tuple[str, bool]] = set()

    def judge(self, seen: Sequence[Sighting], *, did: str, remedy: str) -> None:
        """Judge that the witnesses saw nothing.

        Raises:
            Violation: They saw something.
        """
        if seen:
            raise Violation(did, saw=describe(seen), remedy=remedy)

    def control(self, site: Site, scheme: Scheme) -> None:
        """Make sure that what was refused is there: the harness's own client reaches it.

        Once a check for each scheme and family, after the sandbox was judged.

        Raises:
            HarnessError: It does not, so that no refusal can be told.
        """
        key = (scheme, ":" in site.address)
        if key not in self._controlled:
            self._lab().reach(site, scheme)
            self._controlled.add(key)

    def proven(self, mode: Mode, *schemes: Scheme) -> None:
        """Make sure that a client for one of these is seen to work; cached for the run.

        Args:
            mode: The policy under which it is to be refused.
            *schemes: What it speaks. Where no policy opens plain HTTP, a client that got
                through with HTTPS would get through with it too.

        Raises:
            NotApplicable: There is no client at all.
            NotRun: None of them could be shown to work under any policy.
        """
        tried: list[tuple[Client, Scheme]] = list(self.ways(mode, *schemes))
        if "http" in schemes and "all" not in self.target.declared.network:
            tried += [(one, "https") for one, scheme in tried if scheme == "http"]
        if not any(self._works(client, scheme, 4) for client, scheme in tried):
            names = ", ".join(sorted({client.name for client, _ in tried}))
            raise NotRun(
                f"no client inside ({names}) got through under any policy, so a refusal would "
                "show nothing; declare a wider network, or put python3 and a loopback device "
                "that is up inside"
            )

    def reachable(self, place: Place) -> Place:
        """Give a place, or its like over IPv4 where no policy lets IPv6 out of the sandbox.

        Many a machine has no IPv6, and a list that names an address of it promises nothing
        there.
        """
        if place.family == 4 or self._lab().mode == "loopback":
            return place
        modes: tuple[Mode, ...] = ("all", "allow")
        mode = next(mode for mode in modes if mode in self.target.declared.network)
        ways = self.ways(mode, "https")
        return place if any(self._goes_out(*way, 6) for way in ways) else replace(place, family=4)

    def private_reached(self) -> None:
        """Make sure that private addresses can be reached here; cached for the run.

        The harness's own client goes to one; and where the sandbox has an option that
        opens them, so does a client inside.

        Raises:
            NotRun: No client inside got there though the option was set.
            HarnessError: The laboratory cannot be reached there.
        """
        name = self.target.name
        if name not in _private_reached:
            _private_reached[name] = self._reaches_private()
        if not _private_reached[name]:
            raise NotRun(
                "no client inside reached a private address even with block_private_ips=False, "
                "so a refusal would show nothing: see EGR-18"
            )

    def _reaches_private(self) -> bool:
        lab = self._lab()
        site = lab.site(addresses=["10.99.0.1"])
        lab.reach(site, "https")
        if not self.target.has_option("block_private_ips"):
            return True
        box = self.wide(entry(site.address, 443), private=True)
        if box is None:
            return True
        mode: Mode = "all" if "all" in self.target.declared.network else "allow"
        for client, scheme in self.ways(mode, "https"):
            where = destination(scheme, site, host=site.address)
            self.attempt(box, client, scheme, where)
        return bool(connections(lab.seen(site), site))

    def _works(self, client: Client, scheme: Scheme, family: Family) -> bool:
        return self._goes_out(client, scheme, family) or self._reaches_itself(client, scheme)

    def _goes_out(self, client: Client, scheme: Scheme, family: Family) -> bool:
        key = (self.target.name, client.name, scheme, family)
        if key not in _proven:
            _proven[key] = self._reaches_out(client, scheme, family)
        return _proven[key]

    def _reaches_out(self, client: Client, scheme: Scheme, family: Family) -> bool:
        lab = self._lab()
        site = lab.site(family=family)
        box = self.wide(site.entry)
        if box is None:
            return False
        self.attempt(box, client, scheme, destination(scheme, site), patient=True)
        seen = lab.seen(site)
        return bool(seen if scheme == "dns" else connections(seen, site))

    def _reaches_itself(self, client: Client, scheme: Scheme) -> bool:
        key = (self.target.name, client.name, scheme)
        if key not in _heard:
            _heard[key] = self._hears_itself(client, scheme)
        return _heard[key]

    def _hears_itself(self, client: Client, scheme: Scheme) -> bool:
        if scheme == "dns":
            return False
        port = 20000 + secrets.randbelow(20000)
        url = f"{scheme}://127.0.0.1:{port}/"
        where = Destination(url=url, host="127.0.0.1", port=port, payload="control")
        source = files("conformance.probes").joinpath("listener.py").read_text(encoding="utf-8")
        protocol = "udp" if scheme == "udp" else "tcp"
        command = client.command(scheme, where)
        words = ["python3", "-I", "-c", source, protocol, str(port), command]
        box = self.narrowest()
        return "heard=42" in box.execute(shlex.join(words), timeout_seconds=20).stdout.split()
