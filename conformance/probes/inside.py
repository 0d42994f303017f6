"""One check's view of the inside: live sandboxes, the clients they have, and controls.

A refusal counts only with controls in the same laboratory, so nothing here trusts a
client that was not seen to get through somewhere.
"""

from __future__ import annotations

import secrets
import shlex
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from conformance.probes import discovery
from conformance.probes.clients import CLIENT_SECONDS, Client, Destination, Scheme
from conformance.probes.places import Family, Place, destination, entry
from conformance.verdicts import NotApplicable, NotRun, Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType
    from typing import Self

    from conformance.lab.client import Lab
    from conformance.lab.journal import Sighting
    from conformance.lab.sites import Site
    from conformance.oracle import Mode
    from conformance.subject.facade import Box
    from conformance.subject.targets import Target

# Kept for the whole run: what a client can do does not change between checks.
_found: dict[tuple[str, Mode], tuple[Client, ...]] = {}
_private_reached: dict[str, bool] = {}
_proven: dict[tuple[str, str, Scheme, Family], bool] = {}
_heard: dict[tuple[str, str, Scheme], bool] = {}
_slow: set[str] = set()

_DNS_PORT = 53
# More clients for one protocol would show the same again.
_MOST_CLIENTS = 4
# Where refusals are silent, each one costs the whole patience of its client.
_SLOW_SECONDS = 4.0
_SHORT_PATIENCE = 2
_FEWEST_CLIENTS = 2
_REST_SECONDS = 2.0
_LIMIT_SECONDS = 0.5


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


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of one client, and how it ended."""

    client: str
    command: str
    exit_code: int
    stdout: str
    stderr: str

    def __str__(self) -> str:
        command = self.command if len(self.command) <= 160 else f"{self.command[:157]}..."
        words = " ".join((self.stderr.strip() or "no error").split())[:120]
        return f"{command!r} (exit code {self.exit_code}: {words})"


class Inside:
    """The sandboxes of one check.

    Args:
        target: The sandbox under test.
        lab: Gives the laboratory it is in, when it is first needed.
    """

    def __init__(self, target: Target, lab: Callable[[], Lab]) -> None:
        self.target = target
        self._lab = lab
        self._stack = ExitStack()
        self._boxes: dict[tuple[Any, ...], Box] = {}
        self._controlled: set[tuple[str, bool]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    def under(self, **overrides: Any) -> Box:  # noqa: ANN401 - a constructor's own options
        """Give a live sandbox with these options, the same for the same ones.

        Raises:
            Violation: It did not open.
        """
        # As text: whether the subject's own types can be hashed and compared is what is tested.
        key = tuple(sorted((name, repr(value)) for name, value in overrides.items()))
        if key not in self._boxes:
            self._boxes[key] = self._stack.enter_context(self.opened(**overrides))
        return self._boxes[key]

    @contextmanager
    def opened(self, **overrides: Any) -> Iterator[Box]:  # noqa: ANN401 - see above
        """Open a sandbox with these options, for as long as the block runs.

        Raises:
            NotRun: It has one policy that cannot be chosen, and this is another one.
            Violation: It did not open or close.
        """
        with self.target.open(**self.known(overrides)) as box:
            yield box

    def known(self, overrides: dict[str, Any]) -> dict[str, Any]:
        """Give the options without a network that the constructor does not take, but has.

        Raises:
            NotRun: It has one policy that cannot be chosen, and this is another one.
        """
        if "network" not in overrides or self.target.has_option("network"):
            return overrides
        rest = {name: value for name, value in overrides.items() if name != "network"}
        wanted, fixed = overrides["network"], self.target.build(**rest).network
        if wanted is not None and (wanted.mode, wanted.hosts) != (fixed.mode, fixed.hosts):
            raise NotRun(
                f"{self.target.cls.__name__} has no option `network` and is built with "
                f"{fixed.mode}(), so another policy cannot be had; give it that option"
            )
        return rest

    def narrowest(self) -> Box:
        """Give a sandbox under the strictest policy that is declared."""
        modes: tuple[Mode, ...] = ("none", "allow", "all")
        return self.plain(next(mode for mode in modes if mode in self.target.declared.network))

    def plain(self, mode: Mode) -> Box:
        """Give a sandbox under a policy of this mode that opens nothing of the laboratory's."""
        network = self.target.Network
        if mode == "allow":
            return self.under(network=network.allow(hosts=["nothing.invalid"]))
        return self.under(network=network.all() if mode == "all" else network.none())

    def clients(self, mode: Mode, *schemes: Scheme) -> tuple[Client, ...]:
        """Give the clients that a sandbox under this mode has inside and that speak one of these.

        Raises:
            NotApplicable: There is none, and no command could bring one.
            NotRun: There is none that is known, which does not mean that there is none.
        """
        key = (self.target.name, mode)
        if key not in _found:
            _found[key] = discovery.found(self.plain(mode))
        fitting = tuple(
            client for client in _found[key] if any(scheme in client.commands for scheme in schemes)
        )
        if fitting:
            return fitting
        spoken = " or ".join(schemes)
        brought = self.target.declared.fact("has_processes")
        if brought or (mode != "none" and "https" in schemes):
            why = "and a command can bring its own" if brought else "though there is a network"
            raise NotRun(
                f"no client for {spoken} that the suite knows was found inside under {mode}(), "
                f"{why}; put curl, python3 or bash inside"
            )
        raise NotApplicable(f"no network client for {spoken} found inside")

    def ways(self, mode: Mode, *schemes: Scheme) -> list[tuple[Client, Scheme]]:
        """Give clients inside with each of these that they speak, a few each; see `clients`."""
        most = _FEWEST_CLIENTS if self.target.name in _slow else _MOST_CLIENTS
        found = self.clients(mode, *schemes)
        chosen = {
            scheme: [client for client in found if scheme in client.commands][:most]
            for scheme in schemes
        }
        return [
            (client, scheme) for client in found for scheme in schemes if client in chosen[scheme]
        ]

    def answered(
        self,
        box: Box,
        site: Site,
        *places: Destination,
        flawed: tuple[Site, Destination] | None = None,
    ) -> list[str]:
        """Let clients fetch from a site over HTTPS until one gets an answer each time.

        Args:
            box: Where; under an allow list.
            site: Whose token is the answer.
            *places: Where the clients go, in turn.
            flawed: A site with a wrong certificate, which must get no request, and where it is.

        Returns:
            What was tried in vain, a line each; empty where one client did it all.

        Raises:
            NotRun: There is no client that shows what it fetched.
        """
        ways = [client for client, _ in self.ways("allow", "https") if client.prints]
        if not ways:
            raise NotRun("no HTTPS client inside shows what it fetched; put curl inside")
        tried = []
        for client in ways:
            for where in places:
                ran = self.attempt(box, client, "https", where, patient=True)
                if site.token not in ran.stdout:
                    tried.append(f"{ran} got no answer")
                    break
            else:
                if flawed is None:
                    return []
                ran = self.attempt(box, client, "https", flawed[1])
                if not any(one.kind == "request" for one in self._lab().seen(flawed[0])):
                    return []
                tried.append(f"{ran} sent a request though the certificate is wrong")
        return tried

    def use(self, box: Box, mode: Mode, site: Site, port: int | None = None) -> None:
        """Let clients make a permitted request, for what a sandbox may remember of it."""
        for client, scheme in self.ways(mode, "https"):
            self.attempt(box, client, scheme, destination(scheme, site, port=port), patient=True)

    def times_out(self, box: Box) -> None:
        """Let a command run into its limit, for what a sandbox may lose by ending it."""
        box.execute("sleep 20", timeout_seconds=_LIMIT_SECONDS)

    def wide(self, *entries: str, private: bool = False) -> Box | None:
        """Give a sandbox under the widest policy that is declared; None if that opens nothing.

        Args:
            *entries: What an allow list names where `Network.all()` is not declared.
            private: Whether private addresses are to be open too, where there is an option.
        """
        declared, network = self.target.declared.network, self.target.Network
        options: dict[str, Any] = {}
        if private and self.target.has_option("block_private_ips"):
            options["block_private_ips"] = False
        if "all" in declared:
            return self.under(network=network.all(), **options)
        if "allow" in declared and entries:
            return self.under(network=network.allow(hosts=entries), **options)
        return None

    @property
    def is_slow(self) -> bool:
        """Whether its refusals are silent, so that each costs the patience of a client."""
        return self.target.name in _slow

    def attempt(
        self,
        box: Box,
        client: Client,
        scheme: Scheme,
        where: Destination,
        *,
        patient: bool = False,
    ) -> Attempt:
        """Let one client try once.

        Args:
            box: Where.
            client: Which.
            scheme: What it is to speak.
            where: Where it is to go.
            patient: Whether it is to get an answer, and not only to try.
        """
        name = self.target.name
        seconds = _SHORT_PATIENCE if name in _slow and not patient else CLIENT_SECONDS
        command = client.command(scheme, replace(where, seconds=seconds))
        began = time.monotonic()
        ran = box.execute(command, timeout_seconds=seconds + _REST_SECONDS)
        if ran.exit_code and time.monotonic() - began > _SLOW_SECONDS:
            _slow.add(name)
        return Attempt(client.name, command, ran.exit_code, ran.stdout, ran.stderr)

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
