"""Clients inside of a sandbox: which there are, and one try of one of them."""

from __future__ import annotations

import time
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from conformance.probes import discovery
from conformance.probes.boxes import Boxes
from conformance.probes.clients import CLIENT_SECONDS, WEB, Client, Destination, Scheme
from conformance.probes.places import destination
from conformance.verdicts import NotApplicable, NotRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conformance.lab.client import Lab
    from conformance.lab.sites import Site
    from conformance.oracle import Mode
    from conformance.subject.facade import Box
    from conformance.subject.targets import Target

# Kept for the whole run: what a sandbox has inside does not change between checks.
_found: dict[tuple[str, Mode], tuple[Client, ...]] = {}
_slow: set[str] = set()

# More clients for one protocol would show the same again.
_MOST_CLIENTS = 4
# Where refusals are silent, each one costs the whole patience of its client.
_SLOW_SECONDS = 4.0
_SHORT_PATIENCE = 2
_FEWEST_CLIENTS = 2
_REST_SECONDS = 2.0
_LIMIT_SECONDS = 0.5


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


class Attempts(Boxes):
    """Sandboxes, and what clients inside of them try.

    Args:
        target: The sandbox under test.
        lab: Gives the laboratory it is in, when it is first needed.
    """

    def __init__(self, target: Target, lab: Callable[[], Lab]) -> None:
        super().__init__(target)
        self._lab = lab
        self._first: dict[tuple[str, ...], str] = {}

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

    def ways_for(
        self, example: object, mode: Mode, *schemes: Scheme, each: int = 1
    ) -> Sequence[tuple[Client, Scheme]]:
        """Give the clients that try one example of a check; see `ways`.

        All of them try the check's first example, and few each other one: each try takes a
        program's start, and what a program is let do hardly ever depends on the example.
        Where commands are no processes no program starts, and each client is the sandbox's
        own code with rules of its own: there all of them try every example.

        Args:
            example: What was drawn; it has a text of its own, and the same one again.
            mode: The policy.
            *schemes: What they speak.
            each: So many for each scheme.
        """
        return self.rotated(example, self.ways(mode, *schemes), each=each)

    def rotated(
        self, example: object, ways: Sequence[tuple[Client, Scheme]], *, each: int = 1
    ) -> Sequence[tuple[Client, Scheme]]:
        """Give all of these for the first example, and few for another; see `ways_for`."""
        if not self.target.declared.fact("has_processes"):
            return ways
        text = repr(example)
        if self._first.setdefault(tuple(client.name for client, _ in ways), text) == text:
            return ways
        # By the example alone, so that what failed fails when it is repeated.
        first = zlib.crc32(text.encode())
        chosen: set[int] = set()
        for same in _turns(ways, each):
            chosen.update(same[(first + step) % len(same)] for step in range(each))
        return [ways[place] for place in sorted(chosen)]

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


def _turns(ways: Sequence[tuple[Client, Scheme]], each: int) -> Iterator[list[int]]:
    """Give the places of those that take turns: clients that go the same way out.

    A web client that knows no proxy is not asked for one that does, whose way is another.
    Its own way is that of raw clients; only where there are none has it turns of its own.
    """
    schemes = dict.fromkeys(scheme for _, scheme in ways)
    for wanted in schemes:
        same = [place for place, (_, scheme) in enumerate(ways) if scheme == wanted]
        proxied = [place for place in same if ways[place][0].takes_proxies]
        if wanted not in WEB or not proxied or each > 1:  # two are never both of the few
            yield same
        else:
            yield proxied
            straight = [place for place in same if place not in proxied]
            if straight and "tcp" not in schemes:
                yield straight
