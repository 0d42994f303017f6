"""EGR: what really leaves the sandbox, as the laboratory's own witnesses saw it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st

from conformance import strategies
from conformance.marks import needs, verifies
from conformance.probes.inside import connections, describe, needs_of_lab
from conformance.probes.places import DISCARD_PORT, Family, Place, destination, entry, port_at
from conformance.requirements import EGR_01, EGR_02, EGR_10, EGR_11, EGR_12, EGR_14
from conformance.strategies import each
from conformance.verdicts import Violation

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.lab.sites import Certificate
    from conformance.probes.inside import Inside
    from conformance.strategies import LookAlike, Split

families: st.SearchStrategy[Family] = st.sampled_from((4, 6))


def places(*ports: int) -> st.SearchStrategy[Place]:
    """Places at these ports."""
    return st.builds(Place, families, st.booleans(), st.sampled_from(ports))


@verifies(EGR_01)
@needs(opens=True, network="none")
@given(place=places(443, 80, 22, 8443, DISCARD_PORT), left_out=st.booleans())
@example(place=Place(4, by_name=False), left_out=False)
@example(place=Place(6, by_name=False), left_out=True)
@example(place=Place(4, by_name=True, port=DISCARD_PORT), left_out=True)
def test_no_tcp_connection_leaves_without_a_network(
    inside: Inside, lab: Lab, place: Place, left_out: bool
) -> None:
    """Under none() no TCP connection leaves, over IPv4 or IPv6, to an address or a name."""
    inside.proven("https", "http", "tcp")
    box = inside.under() if left_out else inside.narrowest()
    for client, scheme in inside.ways("https", "http", "tcp"):
        site = place.site(lab)
        ran = inside.attempt(box, client, scheme, place.destination(scheme, site))
        inside.judge(
            [one for one in connections(lab.seen(site)) if one.protocol == "tcp"],
            did=f"under Network.none() it let {ran} out",
            remedy="open no connection at all where the network is none()",
        )
    inside.control(site, "tcp")


@verifies(EGR_02)
@needs(opens=True, network="none")
@given(place=places(53, 443, 123, 5005), label=strategies.plain_labels)
@example(place=Place(4, by_name=True, port=53), label="data")
def test_no_datagram_and_no_question_leaves_without_a_network(
    inside: Inside, lab: Lab, place: Place, label: str
) -> None:
    """Under none() no UDP datagram and no DNS question leaves."""
    needs_of_lab(lab, "dns", "packets")
    inside.proven("udp", "dns")
    box = inside.narrowest()
    for client, scheme in inside.ways("udp", "dns"):
        site = place.site(lab)
        where = place.destination(scheme, site)
        if scheme == "dns":
            where = destination(scheme, site, host=f"{label}.{site.name}")
        ran = inside.attempt(box, client, scheme, where)
        inside.judge(
            [one for one in lab.seen(site) if one.protocol == "udp" or one.kind == "dns"],
            did=f"under Network.none() it let {ran} out",
            remedy="send no datagram, and resolve no name outside, where the network is none()",
        )
    inside.control(site, "udp")
    inside.control(site, "dns")


@dataclass(frozen=True, slots=True)
class Listing:
    """An allow list to be: the place that is wanted, and how many others stand beside it."""

    place: Place
    others: int
    first: bool


listings = st.builds(Listing, places(443, 8443), st.integers(0, 2), st.booleans())
flaws: st.SearchStrategy[Certificate] = st.sampled_from(("unknown-ca", "wrong-host", "expired"))


@verifies(EGR_10)
@needs(opens=True, network="allow")
@given(listing=listings, flaw=flaws)
@example(listing=Listing(Place(4, by_name=True), 0, first=True), flaw="unknown-ca")
@example(listing=Listing(Place(6, by_name=False, port=8443), 1, first=False), flaw="wrong-host")
def test_https_to_a_listed_host_succeeds_with_verification_on(
    inside: Inside, lab: Lab, listing: Listing, flaw: Certificate
) -> None:
    """Under allow() an HTTPS request to a listed host is answered, with verification on."""
    place = listing.place
    site, flawed = place.site(lab), lab.site(family=place.family, certificate=flaw)
    hosts = [place.entry(site), place.entry(flawed)]
    hosts += [lab.site().entry for _ in range(listing.others)]
    if not listing.first:
        hosts.reverse()
    tried = []
    inside.clients("https")
    with inside.target.open(network=inside.target.Network.allow(hosts=hosts)) as box:
        for client, scheme in inside.ways("https"):
            ran = inside.attempt(box, client, scheme, place.destination(scheme, site))
            tried.append(f"{ran} got no answer")
            if site.token in ran.stdout:
                ran = inside.attempt(box, client, scheme, place.destination(scheme, flawed))
                if not any(one.kind == "request" for one in lab.seen(flawed)):
                    break  # one client that is answered and verifies is enough
                tried[-1] = f"{ran} sent a request though the certificate is wrong ({flaw})"
        else:
            seen = connections([*lab.seen(site), *lab.seen(flawed)])
            inside.control(site, "https")
            raise Violation(
                f"with hosts={hosts!r} listed, {'; '.join(tried)}",
                saw=describe(seen),
                remedy="let HTTPS through to each listed host and port, verification on",
            )


@verifies(EGR_11)
@needs(opens=True, network="allow")
@given(place=places(80, 443, 8080), listed=st.sampled_from([443, 80, 8443]))
@example(place=Place(4, by_name=True, port=80), listed=443)
@example(place=Place(4, by_name=True, port=80), listed=80)
def test_plain_http_to_a_listed_host_is_refused(
    inside: Inside, lab: Lab, place: Place, listed: int
) -> None:
    """Under allow() a plain HTTP request to a listed host is refused."""
    inside.proven("http", family=place.family)
    ways = inside.ways("http")
    sites = [place.site(lab) for _ in ways]
    hosts = [entry(place.host(site), port_at(site, listed)) for site in sites]
    with inside.target.open(network=inside.target.Network.allow(hosts=hosts)) as box:
        for (client, scheme), site in zip(ways, sites, strict=True):
            ran = inside.attempt(box, client, scheme, place.destination(scheme, site))
            inside.judge(
                [
                    one
                    for one in connections(lab.seen(site))
                    if one.port != port_at(site, listed) or (one.kind == "request" and not one.tls)
                ],
                did=f"with hosts={hosts!r} listed it let {ran} through",
                remedy="let nothing but TLS through under Network.allow()",
            )
    inside.control(site, "http")


@verifies(EGR_12)
@needs(opens=True, network="allow")
@given(place=places(443, 8443, 80, 22), listed_port=st.sampled_from([443, 8443]))
@example(place=Place(4, by_name=True), listed_port=443)
@example(place=Place(4, by_name=False), listed_port=443)
@example(place=Place(6, by_name=False, port=80), listed_port=443)
def test_a_host_that_is_not_listed_is_refused(
    inside: Inside, lab: Lab, place: Place, listed_port: int
) -> None:
    """Under allow() no connection reaches a host that is not listed, by name or address."""
    needs_of_lab(lab, "names")
    inside.proven("https", "http", "tcp", family=place.family)
    listed = place.site(lab)
    hosts = [entry(listed.name, listed_port), entry(listed.address, listed_port)]
    with inside.target.open(network=inside.target.Network.allow(hosts=hosts)) as box:
        for client, scheme in inside.ways("https", "http", "tcp"):
            other = place.site(lab)
            ran = inside.attempt(box, client, scheme, place.destination(scheme, other))
            inside.judge(
                connections(lab.seen(other)),
                did=f"with hosts={hosts!r} listed it let {ran} through",
                remedy="refuse every host that is not listed",
            )
    inside.control(other, "tcp")


@verifies(EGR_12)
@needs(opens=True, network="allow")
@given(look_alike=strategies.look_alikes)
@each("look_alike", strategies.LOOK_ALIKES)
def test_a_look_alike_of_a_listed_host_is_refused(
    inside: Inside, lab: Lab, look_alike: LookAlike
) -> None:
    """Under allow() no name is reached that only resembles a listed one."""
    needs_of_lab(lab, "names")
    inside.proven("https")
    listed = lab.site(name=f"shop.{lab.site().name}")
    network = inside.target.Network.allow(hosts=[listed.entry])
    with inside.target.open(network=network) as box:
        for client, scheme in inside.ways("https"):
            other = lab.site(name=look_alike.of(listed.name))
            ran = inside.attempt(box, client, scheme, destination(scheme, other))
            inside.judge(
                [one for one in connections(lab.seen(other)) if one.address == other.address],
                did=f"with only {listed.entry} listed it let a {look_alike.kind} through: {ran}",
                remedy="compare whole host names with each entry",
            )
    inside.control(other, "tcp")


@verifies(EGR_12)
@needs(opens=True, network="allow")
@given(split=strategies.splits)
@each("split", strategies.SPLITS)
def test_a_url_that_parsers_read_differently_reaches_no_other_host(
    inside: Inside, lab: Lab, split: Split
) -> None:
    """Under allow() no spelling of a URL reaches another host than the listed one."""
    needs_of_lab(lab, "names")
    inside.proven("https")
    listed = lab.site()
    network = inside.target.Network.allow(hosts=[listed.entry])
    with inside.target.open(network=network) as box:
        for client, scheme in inside.ways("https"):
            other = lab.site()
            url = split.url(listed=listed.name, other=other.name, path=f"/{other.nonce}")
            ran = inside.attempt(box, client, scheme, destination(scheme, other, url=url))
            inside.judge(
                [
                    one
                    for one in connections([*lab.seen(other), *lab.seen(listed)])
                    if (one.address, one.port) != (listed.address, 443)
                    or (one.kind == "request" and not one.tls)
                ],
                did=f"with only {listed.entry} listed it let {ran} through ({split.kind})",
                remedy="decide on the host that is dialled, parsed once",
            )
    inside.control(other, "tcp")


@verifies(EGR_14)
@needs(opens=True, network="allow")
@given(
    place=places(8443, 443, 80, 8080, 22, 5432, DISCARD_PORT),
    listed=st.sampled_from([443, 8443, 4443]),
)
@example(place=Place(4, by_name=True, port=8443), listed=443)
@example(place=Place(4, by_name=True), listed=8443)
@example(place=Place(4, by_name=False, port=80), listed=443)
def test_another_port_of_a_listed_host_is_refused(
    inside: Inside, lab: Lab, place: Place, listed: int
) -> None:
    """Under allow() only the listed port of a host is reached, 443 where none is written."""
    inside.proven("https", "http", "tcp", family=place.family)
    ways = inside.ways("https", "http", "tcp")
    sites = [place.site(lab) for _ in ways]
    hosts = [entry(place.host(site), port_at(site, listed)) for site in sites]
    with inside.target.open(network=inside.target.Network.allow(hosts=hosts)) as box:
        for (client, scheme), site in zip(ways, sites, strict=True):
            ran = inside.attempt(box, client, scheme, place.destination(scheme, site))
            inside.judge(
                [one for one in connections(lab.seen(site)) if one.port != port_at(site, listed)],
                did=f"with hosts={hosts!r} listed it let {ran} through",
                remedy="compare the port with the entry's, 443 where it has none",
            )
    inside.control(site, "tcp")
