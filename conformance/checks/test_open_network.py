"""EGR-06: an open network is open, as the laboratory's own witnesses saw it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st

from conformance.marks import needs, verifies
from conformance.probes.fronts import by_hand
from conformance.probes.inside import describe, needs_of_lab
from conformance.probes.places import Family, Place, destination, port_at
from conformance.requirements import EGR_06
from conformance.strategies.costly import half_the_examples
from conformance.verdicts import NotApplicable, NotRun, Violation

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.lab.sites import Site
    from conformance.probes.attempts import Attempt
    from conformance.probes.clients import Client, Scheme
    from conformance.probes.inside import Inside

families: st.SearchStrategy[Family] = st.sampled_from((4, 6))
https_ports = st.sampled_from((443, 8443))
http_ports = st.sampled_from((80, 8080))
other_ports = st.sampled_from((5432, 22))


def _arrived(lab: Lab, site: Site, client: Client, scheme: Scheme, ran: Attempt) -> bool:
    """Whether a request, or for a raw client its payload, came to the site and was answered."""
    came = any(one.kind == "request" and one.tls == (scheme == "https") for one in lab.seen(site))
    shows = scheme != "tcp" and client.prints
    return came and (not shows or site.token in ran.stdout)


def _is_reached(inside: Inside, lab: Lab, place: Place, scheme: Scheme) -> None:
    """Let clients go there until one arrives; one that does not know the way is no fault."""
    box = inside.under(network=inside.target.Network.all())
    clients = [client for client, _ in inside.ways("all", scheme)]
    if scheme == "tcp":  # the sandbox's way out may be a proxy, which few raw clients know
        clients = [by_hand(client) for client in clients]
    tried = []
    for client in clients:
        site = place.site(lab)
        ran = inside.attempt(box, client, scheme, place.destination(scheme, site), patient=True)
        if _arrived(lab, site, client, scheme, ran):
            return
        tried.append(str(ran))
    inside.control(site, scheme)
    where = f"{place.host(site)} port {port_at(site, place.port)}"
    raise Violation(
        f"under Network.all() no client got an answer from {where}: {'; '.join(tried)}",
        saw=describe(lab.seen(site)),
        remedy="let everything through where the network is all(), answers too",
    )


@verifies(EGR_06)
@needs(opens=True, network="all")
@half_the_examples()
@given(place=st.builds(Place, families, st.booleans(), https_ports))
@example(place=Place(4, by_name=True))
@example(place=Place(4, by_name=False, port=8443))
def test_https_is_reached_under_all(inside: Inside, lab: Lab, place: Place) -> None:
    """Under all() HTTPS is answered at any name and address, on any port."""
    _is_reached(inside, lab, inside.reachable(place), "https")


@verifies(EGR_06)
@needs(opens=True, network="all")
@half_the_examples()
@given(place=st.builds(Place, families, st.booleans(), http_ports))
@example(place=Place(4, by_name=True, port=80))
@example(place=Place(4, by_name=False, port=8080))
def test_plain_http_is_reached_under_all(inside: Inside, lab: Lab, place: Place) -> None:
    """Under all() plain HTTP is answered at any name and address, on any port."""
    _is_reached(inside, lab, inside.reachable(place), "http")


@verifies(EGR_06)
@needs(opens=True, network="all")
@half_the_examples()
@given(place=st.builds(Place, families, st.booleans(), other_ports))
@example(place=Place(4, by_name=True, port=5432))
def test_another_tcp_port_is_reached_under_all(inside: Inside, lab: Lab, place: Place) -> None:
    """Under all() a TCP port that is none of the web's is reached, where there is a client."""
    try:
        inside.clients("all", "tcp")
    except NotRun as unknown:
        raise NotApplicable(unknown.reason) from None  # the rule asks for it only where one is
    _is_reached(inside, lab, inside.reachable(place), "tcp")


@verifies(EGR_06)
@needs(opens=True, network="all")
@half_the_examples()
@given(port=st.integers(1, 65535))
@example(port=27017)
@example(port=3)
def test_no_port_is_shut_under_all(inside: Inside, lab: Lab, port: int) -> None:
    """Under all() a connection leaves for any port, be it one that people use or not."""
    needs_of_lab(lab, "packets")  # nothing answers there, so the packet is what tells
    box = inside.under(network=inside.target.Network.all())
    tried = []
    for client, scheme in inside.ways("all", "https", "tcp"):
        site = lab.site()
        where = destination(scheme, site, port=port)
        ran = inside.attempt(box, by_hand(client) if scheme == "tcp" else client, scheme, where)
        if any(one.protocol == "tcp" and one.port == port for one in lab.seen(site)):
            return
        tried.append(str(ran))
    inside.control(site, "tcp")
    raise Violation(
        f"under Network.all() no client connected to port {port}: {'; '.join(tried)}",
        saw=describe(lab.seen(site)),
        remedy="open every port where the network is all()",
    )
