"""EGR-15: redirects that lead out of an allow list."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.marks import needs, verifies
from conformance.probes.following import followers
from conformance.probes.inside import connections, needs_of_lab
from conformance.probes.places import destination, entry, port_at
from conformance.requirements import EGR_15
from conformance.strategies import addresses, redirects
from conformance.strategies.costly import half_the_examples
from conformance.strategies.each import each
from conformance.verdicts import NotRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.lab.client import Lab
    from conformance.lab.sites import Site
    from conformance.probes.inside import Inside
    from conformance.strategies.redirects import Redirect
    from conformance.subject.facade import Box

_REMEDY = "judge each hop like a request of its own, or follow none"


def _leads_nowhere(
    inside: Inside,
    lab: Lab,
    box: Box,
    hops: Sequence[Site],
    *ends: Site,
    did: str,
    example: object = None,
) -> None:
    """Let clients follow the hops, all of them listed, and judge that nothing else is reached.

    Raises:
        NotRun: No client asked the first hop, so that nobody was sent on.
    """
    open_places = {(site.address, site.https_port) for site in hops}
    asked = False
    for client in followers(inside, lab, example):
        ran = inside.attempt(box, client, "https", destination("https", hops[0]))
        seen = [one for site in (*hops, *ends) for one in lab.seen(site)]
        inside.judge(
            [
                one
                for one in connections(seen, *hops, *ends)
                if (one.address, one.port) not in open_places
                or (one.kind == "request" and not one.tls)
            ],
            did=f"{did}, it let {ran} go there",
            remedy=_REMEDY,
        )
        asked = asked or any(one.kind == "request" for one in seen)
    if not asked:
        raise NotRun(
            "no client asked the listed host that redirects, so none was redirected: see EGR-10"
        )


@verifies(EGR_15)
@needs(opens=True, network="allow")
@half_the_examples()
@given(redirect=redirects.redirects)
@each("redirect", redirects.REDIRECTS)
def test_a_redirect_out_of_the_list_is_not_followed(
    inside: Inside, lab: Lab, redirect: Redirect
) -> None:
    """Under allow() no redirect leads to a host, a port or a scheme that is not listed."""
    listed, other = lab.site(), lab.site()
    location = redirect.location(listed=listed, other=other, port=port_at(listed, 8443))
    first = lab.site(redirect=(redirect.status, location))
    hosts = [first.entry, listed.entry]
    with inside.opened(network=inside.target.Network.allow(hosts=hosts)) as box:
        did = f"with hosts={hosts!r} listed and a {redirect.status} to {location}"
        _leads_nowhere(inside, lab, box, [first, listed], other, did=did, example=redirect)
    inside.control(other, "https")


@verifies(EGR_15)
@needs(opens=True, network="allow")
@pytest.mark.parametrize("length", [2, 3, 9])
def test_a_later_redirect_out_of_the_list_is_not_followed(
    inside: Inside, lab: Lab, length: int
) -> None:
    """Under allow() a redirect out of the list is not followed behind others that may be."""
    other = lab.site()
    hops = [lab.site(redirect=other.url())]
    while len(hops) < length:
        hops.insert(0, lab.site(redirect=hops[0].url()))
    hosts = [site.entry for site in hops]
    with inside.opened(network=inside.target.Network.allow(hosts=hosts)) as box:
        did = f"with {length} redirects, the last one from a listed host to {other.url()}"
        _leads_nowhere(inside, lab, box, hops, other, did=did)
    inside.control(other, "https")


@verifies(EGR_15)
@needs(opens=True, network="allow")
def test_a_relative_redirect_stays_at_its_port(inside: Inside, lab: Lab) -> None:
    """Under allow() a redirect without a host does not lead to another port than the listed one."""
    needs_of_lab(lab, "names")
    site = lab.site(behaviour="loop")
    hosts = [entry(site.name, 8443)]
    with inside.opened(network=inside.target.Network.allow(hosts=hosts)) as box:
        for client in followers(inside, lab):
            where = destination("https", site, port=8443)
            ran = inside.attempt(box, client, "https", where)
            inside.judge(
                [one for one in connections(lab.seen(site), site) if one.port != 8443],
                did=f"with hosts={hosts!r} listed and a redirect to a path, it let {ran} go there",
                remedy="keep host and port where a Location has none",
            )
    inside.control(site, "https")


@verifies(EGR_15)
@needs(opens=True, network="allow")
@pytest.mark.usefixtures("given_addresses")
@half_the_examples()
@given(address=st.one_of(addresses.private_ipv4, addresses.private_ipv6), named=st.booleans())
@each("address", ["10.0.0.1", "169.254.169.254", "fd00::1"], named=False)
@each("address", ["192.168.1.1"], named=True)
def test_a_redirect_to_a_private_address_is_not_followed(
    inside: Inside, lab: Lab, address: str, named: bool
) -> None:
    """Under allow() no redirect leads to a private address, by itself or by a name."""
    needs_of_lab(lab, "private")
    end = lab.site(addresses=[address])
    host = end.name if named else end.address
    first = lab.site(redirect=end.url(host=host))
    # Listed too, where that does not open it: then only its being private keeps it shut.
    blocked = inside.target.declared.fact("blocks_private_addresses")
    if blocked:
        inside.private_reached()
    hosts = [first.entry, *([entry(host, 443)] if blocked else [])]
    with inside.opened(network=inside.target.Network.allow(hosts=hosts)) as box:
        did = f"with hosts={hosts!r} listed and a redirect to {end.url(host=host)}"
        _leads_nowhere(inside, lab, box, [first], end, did=did, example=(address, named))
    inside.control(end, "https")
