"""EGR: names that lead to private addresses after all, and names that only look like it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given

from conformance.marks import needs, verifies
from conformance.oracle import is_private
from conformance.probes.inside import connections, describe, needs_of_lab
from conformance.probes.places import destination, entry
from conformance.requirements import EGR_10, EGR_17
from conformance.strategies import resolution
from conformance.strategies.costly import half_the_examples
from conformance.strategies.each import each
from conformance.verdicts import Violation

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.lab.sites import Site
    from conformance.probes.clients import Scheme
    from conformance.probes.inside import Inside
    from conformance.strategies.resolution import Trick

Mode = Literal["allow", "all"]


@verifies(EGR_17)
@needs(opens=True, blocks_private=True)
@pytest.mark.parametrize(
    "mode", [pytest.param(mode, marks=needs(network=mode)) for mode in ("allow", "all")]
)
@pytest.mark.usefixtures("given_addresses")
@half_the_examples()
@given(trick=resolution.tricks)
@each("trick", resolution.TRICKS)
def test_a_name_that_turns_private_stays_refused(
    inside: Inside, lab: Lab, mode: Mode, trick: Trick
) -> None:
    """No answer of a resolver, first or later, mixed or not, leads to a private address."""
    needs_of_lab(lab, "private", "dns")
    there, name = _places(lab, trick)
    hosts = [entry(host, there.https_port) for host in (name, *trick.private.values())]
    schemes: tuple[Scheme, ...] = ("https", "tcp") if mode == "all" else ("https",)
    ways = inside.ways(mode, *schemes)
    client, scheme = ways[trick.client % len(ways)]
    url = there.url("https", host=name)
    where = destination(scheme, there, port=there.https_port, host=name, url=url)
    network = inside.target.Network
    policy = network.allow(hosts=hosts) if mode == "allow" else network.all()
    with inside.opened(network=policy) as box:
        # What was found to be right once may not be taken for right again.
        for _ in range(2 if len(trick.answers) > 1 else 1):
            ran = inside.attempt(box, client, scheme, where)
    inside.judge(
        [one for one in connections(lab.seen(there)) if is_private(one.address)],
        did=f"under Network.{mode}() it let {ran} through to a private address, where the "
        f"resolver answered with {', then '.join(map(' and '.join, trick.answers))}",
        remedy="resolve a name once, refuse it if any answer is private, and dial that answer",
    )
    inside.proven(mode, "https")
    inside.private_reached()


def _places(lab: Lab, trick: Trick) -> tuple[Site, str]:
    """Give the site at the private addresses, and a name that resolves as the trick says."""
    public = lab.site(family=46).addresses
    if trick.loopback:
        there = lab.loopback_site()
        return there, lab.site(dns=trick.schedule(public)).name
    there = lab.site(addresses=list(trick.private.values()), dns=trick.schedule(public))
    return there, there.name


@verifies(EGR_10)
@needs(opens=True, network="allow")
@pytest.mark.parametrize("beginning", ["10", "127.0.0.1", "192.168.1.1", "fd00", "localhost"])
def test_a_name_that_only_looks_private_is_answered(
    inside: Inside, lab: Lab, beginning: str
) -> None:
    """Under allow() a listed name is answered also where it begins like a private address."""
    needs_of_lab(lab, "names")
    site = lab.site(name=f"{beginning}.{lab.site().name}")
    with inside.opened(network=inside.target.Network.allow(hosts=[site.entry])) as box:
        tried = inside.answered(box, site, destination("https", site))
    if tried:
        inside.control(site, "https")
        raise Violation(
            f"with only {site.entry} listed, {'; '.join(tried)}",
            saw=describe(connections(lab.seen(site), site)),
            remedy="judge the addresses that a name leads to, not its text",
        )
