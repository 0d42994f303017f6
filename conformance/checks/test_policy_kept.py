"""EGR: a policy stays, however its session is opened and however much is done in it."""

from __future__ import annotations

import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, get_args

import pytest

from conformance.marks import needs, verifies
from conformance.probes.choices import wider
from conformance.probes.inside import connections, needs_of_lab
from conformance.probes.places import destination
from conformance.requirements import EGR_01, EGR_02, EGR_12
from conformance.verdicts import NotApplicable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.lab.client import Lab
    from conformance.lab.sites import Site
    from conformance.probes.clients import Client, Scheme
    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box
    from sandboxes.contract import Network

Mode = Literal["none", "allow"]
Way = Literal[
    "access='files'", "access='none'", "an instance_id", "an id used before", "a resumed session"
]
each_way = pytest.mark.parametrize("way", get_args(Way))

_TCP: tuple[Scheme, ...] = ("https", "http", "tcp")
_MANY = 60
_AT_ONCE = 4
# A client that is refused more slowly would take many times that.
_QUICK_SECONDS = 0.1
_REMEDY = "keep the policy with the session, whatever it is called and whatever came before"


@contextmanager
def _opened(inside: Inside, way: Way, network: Network, before: Network | None) -> Iterator[Box]:
    """Open a session in this way; where a name comes back, it had another policy before."""
    target, token = inside.target, f"kept-{secrets.token_hex(6)}"
    options, call = inside.known({"network": network}), dict[str, Any]()
    if way.startswith("access"):
        options["access"] = way.split("'")[1]
        if not target.has_option("access") or wider(target, options["access"]):
            raise NotApplicable(f"{target.cls.__name__} has no {way}")
    elif way == "an instance_id":
        options["instance_id"] = token
        if not target.has_option("instance_id") or target.refusal(**options):
            raise NotApplicable(f"{target.cls.__name__} has no instance_id")
    else:
        call["session_id"] = token
    if way == "a resumed session":
        if not target.declared.fact("supports_resume"):
            raise NotApplicable(f"{target.cls.__name__} does not resume sessions")
        with target.open(**call, **options) as first:
            call["resume"] = first.detach()
    elif not way.startswith("access") and before is not None:
        with target.open(**call, **options | {"network": before}):
            pass
    with target.open(**call, **options) as box:
        yield box


def _before(inside: Inside, site: Site) -> Network | None:
    """Give a policy that opens a site, of those that can be chosen."""
    declared, network = inside.target.declared.network, inside.target.Network
    if not inside.target.has_option("network"):
        return None
    if "allow" in declared:
        return network.allow(hosts=[site.entry])
    return network.all() if "all" in declared else None


def _leading(inside: Inside, mode: Mode) -> dict[Scheme, Client]:
    """The first client of each protocol: what each does by itself is asked elsewhere."""
    return {scheme: client for client, scheme in reversed(inside.ways(mode, *_TCP))}


def _stays_in_force(inside: Inside, lab: Lab, mode: Mode, way: Way) -> None:
    site, listed, network = lab.site(), lab.site(), inside.target.Network
    policy = network.none() if mode == "none" else network.allow(hosts=[listed.entry])
    ways = _leading(inside, mode)
    with _opened(inside, way, policy, _before(inside, site)) as box:
        for scheme, client in ways.items():
            ran = inside.attempt(box, client, scheme, destination(scheme, site))
            inside.judge(
                [one for one in connections(lab.seen(site), site) if one.protocol == "tcp"],
                did=f"under {policy!r}, in a session with {way}, it let {ran} out",
                remedy=_REMEDY,
            )
    inside.proven(mode, *_TCP)
    inside.control(site, "https")


@verifies(EGR_01)
@needs(opens=True, network="none")
@each_way
def test_no_way_to_open_a_session_gives_it_a_network(inside: Inside, lab: Lab, way: Way) -> None:
    """Under none() no connection leaves, whatever the session is called and whoever has tools."""
    _stays_in_force(inside, lab, "none", way)


@verifies(EGR_12)
@needs(opens=True, network="allow")
@each_way
def test_no_way_to_open_a_session_opens_another_host(inside: Inside, lab: Lab, way: Way) -> None:
    """Under allow() the list is in force, whatever the session is called and whoever has tools."""
    _stays_in_force(inside, lab, "allow", way)


@verifies(EGR_12)
@needs(opens=True, network="allow")
def test_requests_at_once_are_judged_apart(inside: Inside, lab: Lab) -> None:
    """Under allow() a request is judged by itself while others of the session are under way."""
    listed, others = lab.site(), [lab.site() for _ in range(_AT_ONCE)]
    client, scheme = inside.ways("allow", "https")[0]
    turns = [site for other in others for site in (listed, other)]
    with (
        inside.opened(network=inside.target.Network.allow(hosts=[listed.entry])) as box,
        ThreadPoolExecutor(len(turns)) as pool,
    ):
        list(
            pool.map(lambda to: inside.attempt(box, client, scheme, destination(scheme, to)), turns)
        )
    for other in others:
        inside.judge(
            connections(lab.seen(other), other),
            did=f"with only {listed.entry} listed, and requests there at the same time, it let a "
            f"request of {client.name} to {other.name} through",
            remedy="keep what belongs to one request apart from every other",
        )
    inside.proven("allow", "https")
    inside.control(others[0], "https")


@verifies(EGR_12)
@needs(opens=True, network="allow")
def test_the_list_is_in_force_after_many_requests(inside: Inside, lab: Lab) -> None:
    """Under allow() the list is as much in force after many requests as at first."""
    listed, other, last = (lab.site() for _ in range(3))
    client, scheme = inside.ways("allow", "https")[0]
    with inside.opened(network=inside.target.Network.allow(hosts=[listed.entry])) as box:
        began = time.monotonic()
        inside.attempt(box, client, scheme, destination(scheme, other))
        quick = time.monotonic() - began < _QUICK_SECONDS
        line = client.command(scheme, destination(scheme, other if quick else listed))
        numbers = " ".join(map(str, range(_MANY)))
        box.execute(f"for i in {numbers}; do {line}; done >/dev/null 2>&1", timeout_seconds=20)
        ran = inside.attempt(box, client, scheme, destination(scheme, last))
    inside.judge(
        [one for site in (other, last) for one in connections(lab.seen(site), site)],
        did=f"with only {listed.entry} listed, and {_MANY} requests before, it let {ran} through",
        remedy="judge each request of a session, and refuse where nobody can",
    )
    inside.proven("allow", "https")
    inside.control(last, "https")


def _further(inside: Inside, mode: Mode, *schemes: Scheme) -> list[tuple[Client, Scheme]]:
    """Give the clients that other checks leave out, where a sandbox has many.

    Raises:
        NotApplicable: It has no more than they try.
    """
    tried = {(client.name, scheme) for client, scheme in inside.ways(mode, *schemes)}
    rest = [
        (client, scheme)
        for client in inside.clients(mode, *schemes)
        for scheme in schemes
        if scheme in client.commands and (client.name, scheme) not in tried
    ]
    if not rest:
        raise NotApplicable("it has no more clients inside than other checks try")
    return rest


def _is_guarded(inside: Inside, lab: Lab, mode: Mode, box: Box, *schemes: Scheme) -> None:
    kind = "udp" if "udp" in schemes else "tcp"
    for client, scheme in _further(inside, mode, *schemes):
        site = lab.site()
        ran = inside.attempt(box, client, scheme, destination(scheme, site))
        inside.judge(
            [one for one in lab.seen(site) if one.protocol == kind],
            did=f"under {mode}() it let {ran} out, though not what other clients tried",
            remedy="enforce the policy below every client, and not in some of them",
        )
    inside.proven(mode, *schemes)
    inside.control(site, "https")


@verifies(EGR_01)
@needs(opens=True, network="none")
def test_no_client_of_many_connects_without_a_network(inside: Inside, lab: Lab) -> None:
    """Under none() no connection leaves by any client, however many there are inside."""
    _is_guarded(inside, lab, "none", inside.narrowest(), *_TCP)


@verifies(EGR_02)
@needs(opens=True, network="none")
def test_no_client_of_many_sends_without_a_network(inside: Inside, lab: Lab) -> None:
    """Under none() no datagram leaves by any client, however many there are inside."""
    needs_of_lab(lab, "dns", "packets")
    _is_guarded(inside, lab, "none", inside.narrowest(), "udp", "dns")


@verifies(EGR_12)
@needs(opens=True, network="allow")
def test_no_client_of_many_reaches_what_is_not_listed(inside: Inside, lab: Lab) -> None:
    """Under allow() no host that is not listed is reached by any client inside."""
    network = inside.target.Network.allow(hosts=[lab.site().entry])
    with inside.opened(network=network) as box:
        _is_guarded(inside, lab, "allow", box, *_TCP)
