"""EGR-12: hosts that an allow list does not name, whatever they are like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conformance.marks import needs, verifies
from conformance.probes.batches import Try, in_turn
from conformance.probes.inside import connections, needs_of_lab
from conformance.probes.places import Family, Place, destination, entry, port_at
from conformance.requirements import EGR_12
from conformance.strategies import look_alikes, policies, urls
from conformance.strategies.costly import half_the_examples
from conformance.strategies.each import each

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.probes.inside import Inside
    from conformance.strategies.look_alikes import LookAlike, NearAddress
    from conformance.strategies.urls import Split
    from conformance.subject.facade import Box

families: st.SearchStrategy[Family] = st.sampled_from((4, 6))
places = st.builds(
    Place,
    families,
    st.booleans(),
    st.one_of(st.sampled_from((443, 8443, 80, 22, 25, 53, 853)), st.integers(1, 65535)),
)

MANY = policies.MOST_ENTRIES
Before = Literal["no other command", "a permitted request", "a command that timed out"]
# A time limit costs its time, so one example has it.
befores: st.SearchStrategy[Before] = st.sampled_from(get_args(Before)[:-1])


@verifies(EGR_12)
@needs(opens=True, network="allow")
@half_the_examples()
@given(place=places, listed_port=st.sampled_from([443, 8443]), before=befores, others=st.just(0))
@example(place=Place(4, by_name=True), listed_port=443, before="no other command", others=0)
@example(place=Place(4, by_name=False), listed_port=443, before="a permitted request", others=0)
@example(
    place=Place(6, by_name=False, port=80), listed_port=443, before="no other command", others=0
)
@example(
    place=Place(4, by_name=True),
    listed_port=443,
    before="no other command",
    others=policies.MOST_ENTRIES,
)
@example(place=Place(4, by_name=True), listed_port=443, before="a command that timed out", others=0)
@example(
    place=Place(4, by_name=False, port=25), listed_port=443, before="no other command", others=0
)
@example(
    place=Place(4, by_name=False, port=53), listed_port=443, before="no other command", others=0
)
@example(
    place=Place(4, by_name=False, port=853), listed_port=443, before="no other command", others=0
)
def test_a_host_that_is_not_listed_is_refused(
    inside: Inside, lab: Lab, place: Place, listed_port: int, before: Before, others: int
) -> None:
    """Under allow() no connection reaches a host that is not listed, by name or address."""
    needs_of_lab(lab, "names")
    place = inside.reachable(place)
    listed = place.site(lab)
    hosts = [entry(listed.name, listed_port), entry(listed.address, listed_port)]
    hosts += policies.unused(others)
    with inside.opened(network=inside.target.Network.allow(hosts=hosts)) as box:
        if before == "a command that timed out":
            inside.times_out(box)
        elif before != "no other command":
            inside.use(box, "allow", listed, listed_port)
        example = (place, listed_port, before, others)
        for client, scheme in inside.ways_for(example, "allow", "https", "http", "tcp"):
            other = place.site(lab)
            ran = inside.attempt(box, client, scheme, place.destination(scheme, other))
            inside.judge(
                connections(lab.seen(other), other),
                did=f"with {hosts[:2]} and {others} others listed, after {before}, it let {ran} "
                "through",
                remedy="refuse every host that is not listed",
            )
    inside.proven("allow", "https", "http", "tcp")
    inside.control(other, "tcp")


@verifies(EGR_12)
@needs(opens=True, network="allow")
@pytest.mark.parametrize("port", [5005, 443, 53, 123])
def test_no_datagram_leaves_but_to_resolve_names(inside: Inside, lab: Lab, port: int) -> None:
    """Under allow() no UDP datagram reaches a host, be it listed or not."""
    needs_of_lab(lab, "packets")
    listed = lab.site()
    network = inside.target.Network.allow(
        hosts=[listed.entry, listed.address, f"{listed.name}:5005"]
    )
    with inside.opened(network=network) as box:
        for client, scheme in inside.ways("allow", "udp"):
            for site in (lab.site(), listed):
                where = destination(scheme, site, port=port_at(site, port), host=site.address)
                ran = inside.attempt(box, client, scheme, where)
                inside.judge(
                    [one for one in connections(lab.seen(site), site) if one.protocol == "udp"],
                    did=f"with hosts={network.hosts!r} listed it let {ran} out",
                    remedy="let nothing but TLS through under Network.allow()",
                )
    inside.proven("allow", "udp")
    inside.control(listed, "udp")


@verifies(EGR_12)
@needs(opens=True, network="allow")
def test_another_session_adds_no_host(inside: Inside, lab: Lab) -> None:
    """Under allow() no host is reached that only a session beside or before it lists."""
    network, sites = inside.target.Network, [lab.site() for _ in range(3)]
    policies = [network.allow(hosts=[site.entry]) for site in sites]

    def stays_shut(box: Box, own: int, other: int) -> None:
        site = sites[other]
        inside.use(box, "allow", sites[own])
        for client, scheme in inside.ways_for((own, other), "allow", "https", "http", "tcp"):
            known = {one.number for one in lab.seen(site)}
            ran = inside.attempt(box, client, scheme, destination(scheme, site))
            inside.judge(
                [one for one in connections(lab.seen(site), site) if one.number not in known],
                did=f"with {sites[own].entry} listed, and {site.entry} by another session, "
                f"it let {ran} through",
                remedy="keep each session's list apart, and forget it when the session closes",
            )

    with inside.opened(network=policies[0]) as first, inside.opened(network=policies[1]) as second:
        stays_shut(first, 0, 1)
        stays_shut(second, 1, 0)
    with inside.opened(network=policies[2]) as later:
        stays_shut(later, 2, 0)
        stays_shut(later, 2, 1)
    inside.proven("allow", "https", "http", "tcp")
    inside.control(sites[2], "https")


@verifies(EGR_12)
@needs(opens=True, network="allow")
@half_the_examples()
@given(look_alike=look_alikes.look_alikes)
@each("look_alike", look_alikes.LOOK_ALIKES)
def test_a_look_alike_of_a_listed_host_is_refused(
    inside: Inside, lab: Lab, look_alike: LookAlike
) -> None:
    """Under allow() no name is reached that only resembles a listed one."""
    needs_of_lab(lab, "names")
    sites = [lab.site(name=f"shop.{lab.site().name}") for _ in range(3)]
    hosts, listed = [site.entry for site in sites], sites[look_alike.position]
    with inside.opened(network=inside.target.Network.allow(hosts=hosts)) as box:
        ways = inside.ways_for(look_alike, "allow", "https", each=2)
        others = [lab.site(name=look_alike.of(listed.name)) for _ in ways]
        tries = [
            Try(*way, destination("https", site)) for way, site in zip(ways, others, strict=True)
        ]
        for other, ran in zip(others, in_turn(inside, box, tries), strict=True):
            inside.judge(
                [one for one in connections(lab.seen(other)) if one.address == other.address],
                did=f"with hosts={hosts!r} listed it let a {look_alike.kind} through: {ran}",
                remedy="compare whole host names with each entry",
            )
    inside.proven("allow", "https")
    inside.control(other, "tcp")


@verifies(EGR_12)
@needs(opens=True, network="allow")
@pytest.mark.usefixtures("given_addresses")
@half_the_examples()
@given(near=look_alikes.near_addresses)
@each("near", look_alikes.NEAR_ADDRESSES)
def test_a_neighbour_of_a_listed_address_is_refused(
    inside: Inside, lab: Lab, near: NearAddress
) -> None:
    """Under allow() no address is reached that only resembles a listed one."""
    needs_of_lab(lab, "packets")
    other = lab.site(addresses=[near.other])
    with inside.opened(network=inside.target.Network.allow(hosts=[near.listed])) as box:
        for client, scheme in inside.ways_for(near, "allow", "https"):
            ran = inside.attempt(
                box,
                client,
                scheme,
                destination(scheme, other, host=near.other, url=other.url(host=near.other)),
            )
            inside.judge(
                connections(lab.seen(other), other),
                did=f"with only {near.listed} listed it let {ran} through",
                remedy="compare whole addresses with each entry",
            )
    inside.proven("allow", "https")
    inside.control(other, "tcp")


@verifies(EGR_12)
@needs(opens=True, network="allow")
@half_the_examples()
@given(split=urls.splits)
@each("split", urls.SPLITS)
def test_a_url_that_parsers_read_differently_reaches_no_other_host(
    inside: Inside, lab: Lab, split: Split
) -> None:
    """Under allow() no spelling of a URL reaches another host than the listed one."""
    needs_of_lab(lab, "names")
    listed = lab.site()
    with inside.opened(network=inside.target.Network.allow(hosts=[listed.entry])) as box:
        other = lab.site()
        url = split.url(listed=listed.name, other=other.name, path=f"/{other.nonce}")
        where = destination("https", other, url=url)
        tries = [Try(*way, where) for way in inside.ways_for(split, "allow", "https", each=2)]
        ran = in_turn(inside, box, tries)
        inside.judge(
            [
                one
                for one in connections([*lab.seen(other), *lab.seen(listed)], other, listed)
                if (one.address, one.port) != (listed.address, 443)
                or (one.kind == "request" and not one.tls)
            ],
            did=f"with only {listed.entry} listed it let one of {len(ran)} clients through, "
            f"such as {ran[0]} ({split.kind})",
            remedy="decide on the host that is dialled, parsed once",
        )
    inside.proven("allow", "https")
    inside.control(other, "tcp")
