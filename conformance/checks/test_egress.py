"""EGR: what really leaves the sandbox, as the laboratory's own witnesses saw it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conformance.marks import alone, needs, verifies
from conformance.probes.inside import connections, describe, needs_of_lab
from conformance.probes.places import DISCARD_PORT, Family, Place, destination, entry, port_at
from conformance.requirements import EGR_01, EGR_02, EGR_10, EGR_11, EGR_14
from conformance.strategies import hosts, policies
from conformance.strategies.costly import half_the_examples
from conformance.verdicts import NotApplicable, NotRun, Violation

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.lab.sites import Certificate, Site
    from conformance.probes.clients import Scheme
    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box

families: st.SearchStrategy[Family] = st.sampled_from((4, 6))


def places(*ports: int) -> st.SearchStrategy[Place]:
    """Places at these ports."""
    return st.builds(Place, families, st.booleans(), st.sampled_from(ports))


# A rule may be one of forbidden ports, so any port may be the one that is left open.
any_places = st.builds(
    Place,
    families,
    st.booleans(),
    st.one_of(st.sampled_from((443, 80, 22, 53, 25, 8443, DISCARD_PORT)), st.integers(1, 65535)),
)

Asked = Literal["written out", "left out", "None", "after a command that timed out"]
# A time limit costs its time, so one example has it.
ways_to_ask: st.SearchStrategy[Asked] = st.sampled_from(get_args(Asked)[:-1])


@verifies(EGR_01)
@needs(opens=True, network="none")
@given(place=any_places, asked=ways_to_ask)
@example(place=Place(4, by_name=False), asked="written out")
@example(place=Place(6, by_name=False), asked="left out")
@example(place=Place(4, by_name=True, port=DISCARD_PORT), asked="None")
@example(place=Place(4, by_name=False, port=25), asked="left out")
@example(place=Place(4, by_name=False, port=53), asked="written out")
@example(place=Place(4, by_name=False, port=853), asked="written out")
@example(place=Place(4, by_name=True), asked="after a command that timed out")
def test_no_tcp_connection_leaves_without_a_network(
    inside: Inside, lab: Lab, place: Place, asked: Asked
) -> None:
    """Under none() no TCP connection leaves, over IPv4 or IPv6, to an address or a name."""
    box = inside.narrowest()
    if asked in ("left out", "None"):
        options: dict[str, None] = {} if asked == "left out" else {"network": None}
        if inside.target.refusal(**options) is not None:
            return  # what is not built opens nothing; CFG-01 speaks of it
        box = inside.under(**options)
    elif asked != "written out":
        inside.times_out(box)
    for client, scheme in inside.ways_for((place, asked), "none", "https", "http", "tcp"):
        site = place.site(lab)
        ran = inside.attempt(box, client, scheme, place.destination(scheme, site))
        inside.judge(
            [one for one in lab.seen(site) if one.protocol == "tcp"],
            did=f"under Network.none(), {asked}, it let {ran} out",
            remedy="open no connection at all where the network is none()",
        )
    inside.proven("none", "https", "http", "tcp")
    inside.control(site, "tcp")


@verifies(EGR_02)
@needs(opens=True, network="none")
@given(place=places(53, 443, 123, 5005), label=hosts.plain_labels)
@example(place=Place(4, by_name=True, port=53), label="data")
def test_no_datagram_and_no_question_leaves_without_a_network(
    inside: Inside, lab: Lab, place: Place, label: str
) -> None:
    """Under none() no UDP datagram and no DNS question leaves."""
    needs_of_lab(lab, "dns", "packets")
    box = inside.narrowest()
    for client, scheme in inside.ways_for((place, label), "none", "udp", "dns"):
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
    inside.proven("none", "udp", "dns")
    inside.control(site, "udp")
    inside.control(site, "dns")


def _nothing_leaves(inside: Inside, lab: Lab, protocol: str) -> None:
    needs_of_lab(lab, "packets")
    schemes: tuple[Scheme, ...] = ("https", "http", "tcp", "udp", "dns")
    ways, box, site = inside.ways("none", *schemes), inside.narrowest(), lab.site()
    began = lab.mark()
    for client, scheme in ways:
        for by_name in (True, False):
            ran = inside.attempt(box, client, scheme, Place(4, by_name).destination(scheme, site))
    inside.judge(
        [one for one in lab.traffic(began) if one.protocol == protocol],
        did=f"under Network.none() something left while commands tried, the last one {ran}",
        remedy="refuse without a word to anyone, resolvers and log services included",
    )
    inside.proven("none", *schemes)
    inside.control(site, "tcp")


@verifies(EGR_01)
@needs(opens=True, network="none")
@alone
def test_a_refused_attempt_opens_no_connection_elsewhere(inside: Inside, lab: Lab) -> None:
    """Under none() a refused attempt opens no TCP connection to any other place either."""
    _nothing_leaves(inside, lab, "tcp")


@verifies(EGR_02)
@needs(opens=True, network="none")
@alone
def test_a_refused_attempt_sends_no_datagram_elsewhere(inside: Inside, lab: Lab) -> None:
    """Under none() a refused attempt sends no UDP datagram to any other place either."""
    _nothing_leaves(inside, lab, "udp")


@verifies(EGR_01)
@needs(opens=True, network="none")
@pytest.mark.parametrize("wider", [pytest.param(mode, id=mode) for mode in ("allow", "all")])
def test_another_session_with_a_network_opens_nothing(
    inside: Inside, lab: Lab, wider: Literal["allow", "all"]
) -> None:
    """Under none() nothing is reached that a session beside or before it was allowed."""
    if wider not in inside.target.declared.network:
        raise NotApplicable(f"{wider}() is not declared")
    ways = inside.ways("none", "https", "http", "tcp")
    inside.ways(wider, "https")  # looked up before, so that no other sandbox comes in between
    network, site = inside.target.Network, lab.site()
    policy = network.allow(hosts=[site.entry]) if wider == "allow" else network.all()

    def stays_shut(box: Box) -> None:
        for client, scheme in ways:
            ran = inside.attempt(box, client, scheme, destination(scheme, site))
            inside.judge(
                [
                    one
                    for one in lab.seen(site)
                    if one.number not in known and one.protocol == "tcp"
                ],
                did=f"under none(), beside or after a session under {wider}(), it let {ran} out",
                remedy="keep each session's policy apart",
            )

    with inside.opened(network=network.none()) as first, inside.opened(network=policy) as open_box:
        inside.use(open_box, wider, site)
        known = {one.number for one in lab.seen(site)}
        stays_shut(first)
    with inside.opened(network=network.none()) as later:
        stays_shut(later)
    inside.proven("none", "https", "http", "tcp")
    inside.control(site, "https")


Spelling = Literal["plain", "port", "bare"]


@dataclass(frozen=True, slots=True)
class Listing:
    """An allow list to be: the place that is wanted, its spelling, and others beside it."""

    place: Place
    others: int = 0
    first: bool = True
    spelling: Spelling = "plain"

    def entry(self, site: Site) -> str:
        """Write an entry for a site: the port left out, written out, or IPv6 without brackets."""
        text = self.place.entry(site)
        if self.spelling == "port" and not text.endswith(f":{port_at(site, self.place.port)}"):
            return f"{text}:{port_at(site, self.place.port)}"
        bare = self.spelling == "bare" and text.endswith("]")
        return text.strip("[]") if bare else text


listings = st.builds(
    Listing,
    places(443, 8443),
    st.integers(0, 2),
    st.booleans(),
    st.sampled_from(get_args(Spelling)),
)
flaws: st.SearchStrategy[Certificate] = st.sampled_from(("unknown-ca", "wrong-host", "expired"))


@verifies(EGR_10)
@needs(opens=True, network="allow")
@half_the_examples()
@given(listing=listings, flaw=flaws)
@example(listing=Listing(Place(4, by_name=True)), flaw="unknown-ca")
@example(listing=Listing(Place(6, by_name=False, port=8443), 1, first=False), flaw="wrong-host")
@example(listing=Listing(Place(4, by_name=True), spelling="port"), flaw="expired")
@example(listing=Listing(Place(6, by_name=False), spelling="bare"), flaw="unknown-ca")
def test_https_to_a_listed_host_succeeds_with_verification_on(
    inside: Inside, lab: Lab, listing: Listing, flaw: Certificate
) -> None:
    """Under allow() an HTTPS request to a listed host is answered, with verification on."""
    listing = replace(listing, place=inside.reachable(listing.place))
    place = listing.place
    site, flawed = place.site(lab), lab.site(family=place.family, certificate=flaw)
    hosts = [listing.entry(site), listing.entry(flawed)]
    hosts += [lab.site().entry for _ in range(listing.others)]
    if not listing.first:
        hosts.reverse()
    with inside.opened(network=inside.target.Network.allow(hosts=hosts)) as box:
        where = place.destination("https", site)
        wrong = (flawed, place.destination("https", flawed))
        tried = inside.answered(box, site, where, where, flawed=wrong)
        if tried:
            seen = connections([*lab.seen(site), *lab.seen(flawed)], site, flawed)
            inside.control(site, "https")
            raise Violation(
                f"with hosts={hosts!r} listed, {'; '.join(tried)}",
                saw=describe(seen),
                remedy="let HTTPS through to each listed host and port, verification on",
            )


@verifies(EGR_10)
@needs(opens=True, network="allow")
def test_every_entry_of_a_long_list_opens_what_it_names(inside: Inside, lab: Lab) -> None:
    """Under allow() each of many entries is kept, and each of two ports of one host."""
    sites = [lab.site() for _ in range(20)]
    both = sites[10]
    again = entry(both.name, port_at(both, 8443))
    hosts = list(dict.fromkeys([*(site.entry for site in sites), again]))
    hosts[1:1] = policies.unused(policies.MOST_ENTRIES)
    with inside.opened(network=inside.target.Network.allow(hosts=hosts)) as box:
        for site in (sites[0], both, sites[-1]):
            for port in (443, 8443) if site is both else (443,):
                where = destination("https", site, port=port_at(site, port))
                tried = inside.answered(box, site, where)
                if tried:
                    inside.control(site, "https")
                    raise Violation(
                        f"with {len(hosts)} hosts listed, {'; '.join(tried)}",
                        saw=describe(connections(lab.seen(site), site)),
                        remedy="keep every entry of the list, several ports of a host too",
                    )


@verifies(EGR_10)
@needs(opens=True, network="allow")
@pytest.mark.usefixtures("given_addresses")
def test_an_ipv6_address_is_listed_without_brackets(inside: Inside, lab: Lab) -> None:
    """Under allow() an entry that is an IPv6 address and nothing else opens its port 443."""
    needs_of_lab(lab, "packets")
    if inside.reachable(Place(6, by_name=False)).family == 4:
        raise NotApplicable("no policy lets IPv6 out of the sandbox")
    # Its last group could be read as a port.
    site = lab.site(addresses=["2a11:90::8443"])
    with inside.opened(network=inside.target.Network.allow(hosts=[site.address])) as box:
        where = destination("https", site, url=site.url(host=site.address))
        tried = inside.answered(box, site, where)
    if tried:
        inside.control(site, "https")
        raise Violation(
            f"with only {site.address} listed, {'; '.join(tried)}",
            saw=describe(connections(lab.seen(site), site)),
            remedy="read an IPv6 address without brackets as an address",
        )


@verifies(EGR_11)
@needs(opens=True, network="allow")
@half_the_examples()
@given(
    place=places(80, 443, 8080, 8443),
    listed=st.sampled_from([443, 80, 8443, 8080]),
    written=st.sampled_from(["http", "HTTP", "Http"]),
)
@example(place=Place(4, by_name=True, port=80), listed=443, written="http")
@example(place=Place(4, by_name=True, port=80), listed=80, written="http")
@example(place=Place(4, by_name=True, port=80), listed=80, written="HTTP")
@example(place=Place(4, by_name=True, port=8443), listed=8443, written="http")
@example(place=Place(4, by_name=False, port=8080), listed=8080, written="http")
def test_plain_http_to_a_listed_host_is_refused(
    inside: Inside, lab: Lab, place: Place, listed: int, written: str
) -> None:
    """Under allow() a plain HTTP request to a listed host is refused."""
    place = inside.reachable(place)
    ways = inside.ways_for((place, listed, written), "allow", "http")
    sites = [place.site(lab) for _ in ways]
    hosts = [entry(place.host(site), port_at(site, listed)) for site in sites]
    with inside.opened(network=inside.target.Network.allow(hosts=hosts)) as box:
        for (client, scheme), site in zip(ways, sites, strict=True):
            where = place.destination(scheme, site)
            where = replace(where, url=where.url.replace("http", written, 1))
            ran = inside.attempt(box, client, scheme, where)
            inside.judge(
                [
                    one
                    for one in connections(lab.seen(site), site)
                    if one.port != port_at(site, listed) or (one.kind == "request" and not one.tls)
                ],
                did=f"with hosts={hosts!r} listed it let {ran} through",
                remedy="let nothing but TLS through under Network.allow()",
            )
    inside.proven("allow", "http")
    inside.control(site, "http")


@verifies(EGR_14)
@needs(opens=True, network="allow")
@half_the_examples()
@given(
    place=st.one_of(places(8443, 443, 80, 8080, 22, 5432, DISCARD_PORT, 44, 4430), any_places),
    listed=st.sampled_from([443, 8443, 4443]),
)
@example(place=Place(4, by_name=True, port=8443), listed=443)
@example(place=Place(4, by_name=True), listed=8443)
@example(place=Place(4, by_name=False, port=80), listed=443)
@example(place=Place(4, by_name=True, port=4430), listed=443)
@example(place=Place(4, by_name=True), listed=4443)
@example(place=Place(4, by_name=False, port=25), listed=443)
@example(place=Place(4, by_name=False, port=53), listed=443)
@example(place=Place(4, by_name=False, port=853), listed=443)
def test_another_port_of_a_listed_host_is_refused(
    inside: Inside, lab: Lab, place: Place, listed: int
) -> None:
    """Under allow() only the listed port of a host is reached, 443 where none is written."""
    place = inside.reachable(place)
    ways = inside.ways_for((place, listed), "allow", "https", "http", "tcp")
    sites = [place.site(lab) for _ in ways]
    hosts = [entry(place.host(site), port_at(site, listed)) for site in sites]
    hosts.append(place.entry(place.site(lab)))  # the port that is dialled, of another host
    with inside.opened(network=inside.target.Network.allow(hosts=hosts)) as box:
        for (client, scheme), site in zip(ways, sites, strict=True):
            ran = inside.attempt(box, client, scheme, place.destination(scheme, site))
            inside.judge(
                [
                    one
                    for one in connections(lab.seen(site), site)
                    if one.port != port_at(site, listed)
                ],
                did=f"with hosts={hosts!r} listed it let {ran} through",
                remedy="compare host and port with the same entry, 443 where it has none",
            )
    inside.proven("allow", "https", "http", "tcp")
    inside.control(site, "tcp")


@verifies(EGR_14)
@needs(opens=True, network="allow")
def test_a_host_that_was_reached_is_open_at_no_other_port(inside: Inside, lab: Lab) -> None:
    """Under allow() a permitted request to a host opens no other port of it in that session."""
    site = lab.site()
    listed = port_at(site, 443)
    places = [Place(4, by_name=True, port=port) for port in (8443, 80)]
    with inside.opened(network=inside.target.Network.allow(hosts=[site.entry])) as box:
        inside.use(box, "allow", site)
        if not connections(lab.seen(site), site):
            raise NotRun("no client reached the listed host, so nothing was opened: see EGR-10")
        for client, scheme in inside.ways("allow", "https", "http", "tcp"):
            for place in places:
                ran = inside.attempt(box, client, scheme, place.destination(scheme, site))
                inside.judge(
                    [one for one in connections(lab.seen(site), site) if one.port != listed],
                    did=f"with {site.entry} listed, once it was reached, it let {ran} through",
                    remedy="compare host and port with the same entry for each connection",
                )
    inside.proven("allow", "https", "http", "tcp")
    inside.control(site, "tcp")
