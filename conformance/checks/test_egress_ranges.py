"""EGR-30: the addresses that `egress` opens in a live sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from conformance.marks import needs, verifies
from conformance.probes import values
from conformance.probes.inside import connections, describe, needs_of_lab
from conformance.probes.places import Place, destination
from conformance.requirements import EGR_30
from conformance.strategies import cidr_neighbours
from conformance.strategies.costly import half_the_examples
from conformance.strategies.each import each
from conformance.verdicts import Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.lab.client import Lab
    from conformance.probes.clients import Client, Scheme
    from conformance.probes.inside import Inside
    from conformance.strategies.cidr_neighbours import Opening
    from conformance.subject.facade import Box
    from sandboxes.contract import EgressPolicy


@verifies(EGR_30)
@needs(opens=True, option="egress", network="none")
@pytest.mark.usefixtures("given_addresses")
@half_the_examples()
@given(opening=cidr_neighbours.openings)
@each("opening", cidr_neighbours.OPENINGS)
def test_a_custom_policy_opens_what_it_lists_alone(
    inside: Inside, lab: Lab, opening: Opening
) -> None:
    """`custom` opens both ends of each range that it lists, and neither neighbour of one."""
    needs_of_lab(lab, "packets")
    ipv6 = inside.target.declared.network != {"none"} and ":" in opening.entry
    if ipv6 and inside.reachable(Place(6, by_name=False)).family == 4:
        return  # no policy lets IPv6 out of the sandbox
    entries = [opening.entry, *opening.others]
    if values.refusal(inside.target.EgressPolicy.custom, allow_cidrs=entries) is not None:
        return  # NET-09 speaks of right entries that are refused
    policy = inside.target.EgressPolicy.custom(allow_cidrs=entries)
    if inside.target.refusal(egress=policy) is not None:
        return  # and NET-11 of constructors that refuse them
    with inside.opened(egress=policy) as box:
        for address in opening.inner:
            _is(inside, lab, box, address, policy, inside.ways("none", "https"), is_open=True)
        few = inside.ways_for(opening, "none", "https")
        for address in opening.outer:
            _is(inside, lab, box, address, policy, few, is_open=False)
    inside.proven("none", "https")


def _is(
    inside: Inside,
    lab: Lab,
    box: Box,
    address: str,
    policy: EgressPolicy,
    ways: Sequence[tuple[Client, Scheme]],
    *,
    is_open: bool,
) -> None:
    site = lab.site(addresses=[address])
    url, tried = site.url(host=site.address), []
    for client, scheme in ways:
        where = destination(scheme, site, host=site.address, url=url)
        tried.append(str(inside.attempt(box, client, scheme, where)))
        seen = connections(lab.seen(site), site)
        if is_open and any(one.kind == "request" for one in seen):
            return
    if is_open or seen:
        inside.control(site, "https")
        raise Violation(
            f"with egress={policy!r} it let {'; '.join(tried)} {'not ' * is_open}through",
            saw=describe(seen),
            remedy="open exactly the addresses of each range, and no other",
        )
