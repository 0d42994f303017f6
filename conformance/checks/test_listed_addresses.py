"""EGR-13: the addresses behind listed names, which the list does not name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given

from conformance.marks import needs, verifies
from conformance.probes.headers import with_host
from conformance.probes.inside import connections, needs_of_lab
from conformance.probes.places import Place, destination, port_at
from conformance.requirements import EGR_13
from conformance.strategies import addresses
from conformance.strategies.costly import half_the_examples
from conformance.strategies.each import each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.lab.client import Lab
    from conformance.lab.journal import Sighting
    from conformance.lab.sites import Site
    from conformance.probes.attempts import Attempt
    from conformance.probes.clients import Client, Destination, Scheme
    from conformance.probes.inside import Inside
    from conformance.strategies.addresses import Detour


@verifies(EGR_13)
@needs(opens=True, network="allow")
@half_the_examples()
@given(detour=addresses.detours)
@each("detour", addresses.DETOURS)
def test_the_address_behind_a_listed_name_stays_shut(
    inside: Inside, lab: Lab, detour: Detour
) -> None:
    """Under allow() the address of a listed name is opened by that name alone."""
    if detour.by_name:
        needs_of_lab(lab, "dns")
    place = inside.reachable(Place(detour.family, by_name=True))
    site = place.site(lab)
    with inside.opened(network=inside.target.Network.allow(hosts=[site.entry])) as box:
        if detour.after_use:
            client, scheme = inside.ways("allow", "https")[0]
            inside.attempt(box, client, scheme, destination(scheme, site), patient=True)
        known = {one.number for one in lab.seen(site)}
        host = _another_name(lab, site) if detour.by_name else detour.host(site.address)
        tried = [inside.attempt(box, *way) for way in _ways(inside, detour, site, host)]
        new = [one for one in connections(lab.seen(site), site) if one.number not in known]
    inside.judge(
        new,
        did=f"with only {site.entry} listed it let {_culprit(tried, new)} through to its address",
        remedy="open a connection for the name that was asked for, not for its address",
    )
    inside.proven("allow", "https", "http", "tcp")
    inside.control(site, "tcp")


def _culprit(tried: Sequence[Attempt], seen: Sequence[Sighting]) -> str:
    paths = [one.path for one in seen if one.path]
    known = [str(ran) for ran in tried if any(path in ran.command for path in paths)]
    return known[0] if known else f"one of {len(tried)} attempts, the first {tried[0]},"


def _another_name(lab: Lab, site: Site) -> str:
    return lab.site(dns=[[site.address]]).name


def _ways(
    inside: Inside, detour: Detour, site: Site, host: str
) -> list[tuple[Client, Scheme, Destination]]:
    """Every client inside with the schemes that take such a host, and where each goes."""
    schemes: tuple[Scheme, ...] = ("https", "http", "tcp") if detour.is_canonical else ("https",)
    found: list[tuple[Client, Scheme, Destination]] = []
    for client, scheme in inside.ways_for(detour, "allow", *schemes):
        where = destination(scheme, site, host=host.strip("[]"), port=port_at(site, 443))
        named = None
        if scheme != "tcp":
            url = site.url(scheme, host=host, path=str(len(found)))
            where = destination(scheme, site, url=url)
            named = with_host(client, site.name) if detour.is_canonical else None
        found += [(one, scheme, where) for one in (client, named) if one is not None]
    return found
