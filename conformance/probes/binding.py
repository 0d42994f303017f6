"""Requests from inside a sandbox with header bindings, and what of them reached an origin."""

from __future__ import annotations

import json
import secrets as random
import shlex
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.probes import choices
from conformance.probes.clients import CLIENT_SECONDS
from conformance.probes.fronts import tunneller
from conformance.verdicts import NotApplicable, NotRun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from conformance.lab.client import Lab
    from conformance.lab.journal import Sighting
    from conformance.lab.sites import Site
    from conformance.oracle import Mode
    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box
    from conformance.subject.targets import Target
    from sandboxes.contract import HeaderBinding, Network, SandboxExecutionResult

NUMBER = "x-ask"
"""The header that tells requests of one command apart."""

_REST_SECONDS = 5.0
_MOST_SECONDS = 60.0


def new_secret() -> str:
    """A secret that nothing else in the world contains."""
    return f"cnry{random.token_hex(14)}"


@dataclass(frozen=True, slots=True)
class Ask:
    """One request.

    Attributes:
        target: Its path and query, as it is sent.
        headers: What the command adds itself.
        host: Another Host header than the site's.
        method: How it asks.
        body: What goes with it, in ASCII.
    """

    target: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    host: str = ""
    method: str = "GET"
    body: str = ""


@dataclass(frozen=True, slots=True)
class Sender:
    """A client that sends requests as they are written, and shows whole answers.

    Attributes:
        name: What messages call it.
        write: Gives the command line for a site, its port, some requests, and whether
            certificates are verified.
        keeps: Whether all of them share a connection, where the other side lets them.
    """

    name: str
    write: Callable[[Site, int, Sequence[Ask], bool], str]
    keeps: bool = False


def _fields(site: Site, port: int, number: int, ask: Ask) -> list[tuple[str, str]]:
    host = ask.host or (site.name if port == 443 else f"{site.name}:{port}")
    return [("Host", host), (NUMBER, str(number)), *ask.headers]


def _python(site: Site, port: int, asks: Sequence[Ask], verified: bool) -> str:
    sent = [
        [ask.method, ask.target, _fields(site, port, no, ask), ask.body]
        for no, ask in enumerate(asks)
    ]
    check = "verified" if verified else "unverified"
    return tunneller("asks", site.name, port, check, json.dumps(sent))


def _curl(site: Site, port: int, asks: Sequence[Ask], verified: bool) -> str:
    lines = []
    for number, ask in enumerate(asks):
        words = ["curl", "-s", "-S", "-i", "-m", str(CLIENT_SECONDS), "--path-as-is"]
        words += [] if verified else ["-k"]
        words += [] if ask.method == "GET" else ["-X", ask.method, "--data-raw", ask.body]
        for name, value in _fields(site, port, number, ask):
            if name != "Host" or ask.host:
                words += ["-H", f"{name}: {value}"]
        place = site.name if port == 443 else f"{site.name}:{port}"
        lines.append(shlex.join([*words, f"https://{place}{ask.target}"]))
    return "\n".join(lines)


SENDERS = (Sender("python3", _python, keeps=True), Sender("curl", _curl))
"""Every sender that is known, the more exact first."""


def mode_of(target: Target) -> Mode:
    """The mode under which a sandbox reaches the hosts of its bindings.

    Raises:
        NotApplicable: It has no network at all.
    """
    modes: tuple[Mode, ...] = ("allow", "all")
    for mode in modes:
        if mode in target.declared.network:
            return mode
    raise NotApplicable("no network is declared, so no binding has a host that is reached")


def senders(inside: Inside) -> list[Sender]:
    """Give the senders that a sandbox has inside.

    Raises:
        NotRun: It has none.
    """
    names = {client.name for client in inside.clients(mode_of(inside.target), "https")}
    found = [sender for sender in SENDERS if sender.name in names]
    if not found:
        raise NotRun(
            f"no client inside ({', '.join(sorted(names))}) sends headers and paths as they are "
            "written; put curl or python3 inside"
        )
    return found


def reaching(target: Target, bindings: Sequence[HeaderBinding], *others: str) -> Network:
    """A network that opens the hosts of bindings, and others; as narrow as can be."""
    hosts = dict.fromkeys([*(one.host for one in bindings), *others])
    network: Network = choices.network(target, mode_of(target), list(hosts))
    return network


@contextmanager
def bound(
    inside: Inside, bindings: Sequence[HeaderBinding], secrets: Mapping[str, str], *others: str
) -> Iterator[Box]:
    """Open a sandbox with bindings, under a network that reaches their hosts and others."""
    network = reaching(inside.target, bindings, *others)
    with inside.opened(network=network, header_bindings=tuple(bindings), secrets=secrets) as box:
        yield box


def send(
    box: Box,
    sender: Sender,
    site: Site,
    asks: Sequence[Ask],
    *,
    verified: bool = True,
    port: int = 0,
) -> SandboxExecutionResult:
    """Let a client send requests one after the other."""
    command = sender.write(site, port or site.https_port, asks, verified)
    seconds = min(_MOST_SECONDS, CLIENT_SECONDS * len(asks) + _REST_SECONDS)
    return box.execute(command, timeout_seconds=seconds)


def requests(lab: Lab, *sites: Site) -> list[Sighting]:
    """What came to some sites and is, or may be, a request."""
    return [one for site in sites for one in lab.seen(site) if one.kind == "request"]


def arrived(lab: Lab, site: Site) -> dict[int, Sighting]:
    """The requests of a command that came to a site over TLS, by their numbers.

    Where it came twice, such as after a broken connection, it is the last one.
    """
    found = {}
    for one in requests(lab, site):
        number = next(iter(values(one, NUMBER)), "")
        if one.tls and number.isdecimal():
            found[int(number)] = one
    return found


def values(sighting: Sighting, header: str) -> list[str]:
    """What stood in a header of a request, once for each time that it was sent."""
    return [value for name, value in sighting.headers if name == header.lower()]


def whole(sighting: Sighting) -> bytes:
    """All that was recorded of an event, as one text to search."""
    lines = [
        sighting.name,
        sighting.path,
        *(f"{name}: {value}" for name, value in sighting.headers),
    ]
    return "\n".join(lines).encode("latin-1", "replace") + b"\n" + sighting.payload
