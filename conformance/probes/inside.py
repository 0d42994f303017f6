"""One check's view of the inside: live sandboxes, the clients they have, and controls.

A refusal counts only with controls in the same laboratory, so nothing here trusts a
client that was not seen to get through somewhere.
"""

from __future__ import annotations

import secrets
import shlex
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from conformance.probes import clients
from conformance.probes.clients import ATTEMPT_SECONDS, Client, Destination, Scheme
from conformance.probes.places import Family, destination, entry
from conformance.verdicts import NotApplicable, NotRun, Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType
    from typing import Self

    from conformance.facade import Box
    from conformance.lab.client import Lab
    from conformance.lab.journal import Sighting
    from conformance.lab.sites import Site
    from conformance.targets import Target

# Kept for the whole run: what a client can do does not change between checks.
_found: dict[str, tuple[Client, ...]] = {}
_private_reached: dict[str, bool] = {}
_proven: dict[tuple[str, str, Scheme, Family], bool] = {}

_DNS_PORT = 53


def connections(sightings: Iterable[Sighting]) -> list[Sighting]:
    """Leave out name resolution: what an allow list says of it is a rule of its own."""
    return [
        one
        for one in sightings
        if one.kind != "dns" and (one.protocol, one.port) != ("udp", _DNS_PORT)
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
        key = tuple(sorted(overrides.items()))
        if key not in self._boxes:
            self._boxes[key] = self._stack.enter_context(self.target.open(**overrides))
        return self._boxes[key]

    def narrowest(self) -> Box:
        """Give a sandbox under the strictest policy that is declared."""
        declared, network = self.target.declared.network, self.target.Network
        if "none" in declared:
            return self.under(network=network.none())
        if "allow" in declared:
            return self.under(network=network.allow(hosts=["nothing.invalid"]))
        return self.under()

    def clients(self, *schemes: Scheme) -> tuple[Client, ...]:
        """Give the clients inside that speak one of these.

        Raises:
            NotApplicable: There is none.
        """
        name = self.target.name
        if name not in _found:
            _found[name] = clients.found(self.narrowest())
        fitting = tuple(
            client
            for client in _found[name]
            if any(scheme in client.commands for scheme in schemes)
        )
        if not fitting:
            raise NotApplicable(f"no network client for {' or '.join(schemes)} found inside")
        return fitting

    def ways(self, *schemes: Scheme) -> list[tuple[Client, Scheme]]:
        """Give each client inside with each of these that it speaks; see `clients`."""
        return [
            (client, scheme)
            for client in self.clients(*schemes)
            for scheme in schemes
            if scheme in client.commands
        ]

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

    def attempt(self, box: Box, client: Client, scheme: Scheme, where: Destination) -> Attempt:
        """Let one client try once."""
        command = client.command(scheme, where)
        ran = box.execute(command, timeout_seconds=ATTEMPT_SECONDS)
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

    def proven(self, *schemes: Scheme, family: Family = 4) -> None:
        """Make sure that a client for one of these is seen to work; cached for the run.

        Raises:
            NotApplicable: There is no client at all.
            NotRun: None of them could be shown to work under any policy.
        """
        ways = self.ways(*schemes)
        if not any(self._works(client, scheme, family) for client, scheme in ways):
            names = ", ".join(sorted({client.name for client, _ in ways}))
            raise NotRun(
                f"no client inside ({names}) got through under any policy, so a refusal would "
                "show nothing; declare a wider network, or put python3 inside"
            )

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
                "so a refusal would show nothing"
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
        for client, scheme in self.ways("https"):
            where = destination(scheme, site, host=site.address)
            self.attempt(box, client, scheme, where)
        return bool(connections(lab.seen(site)))

    def _works(self, client: Client, scheme: Scheme, family: Family) -> bool:
        key = (self.target.name, client.name, scheme, family)
        if key not in _proven:
            _proven[key] = self._reaches_out(client, scheme, family) or self._reaches_itself(
                client, scheme
            )
        return _proven[key]

    def _reaches_out(self, client: Client, scheme: Scheme, family: Family) -> bool:
        lab = self._lab()
        site = lab.site(family=family)
        box = self.wide(site.entry)
        if box is None:
            return False
        self.attempt(box, client, scheme, destination(scheme, site))
        seen = lab.seen(site)
        return bool(seen if scheme == "dns" else connections(seen))

    def _reaches_itself(self, client: Client, scheme: Scheme) -> bool:
        if not self.target.declared.fact("has_processes") or scheme == "dns":
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
