"""EGR: what arrives, against what `Network.reaches` says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conformance.marks import needs, verifies
from conformance.oracle import is_private
from conformance.probes.differential import Rehearsal
from conformance.probes.inside import connections, describe, needs_of_lab
from conformance.probes.places import Place, destination, entry
from conformance.requirements import EGR_25
from conformance.strategies import policies
from conformance.strategies.costly import half_the_examples
from conformance.strategies.each import each
from conformance.verdicts import Violation

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.lab.sites import Site
    from conformance.probes.clients import Destination
    from conformance.probes.inside import Inside
    from conformance.strategies.policies import Case
    from conformance.subject.facade import Box


@verifies(EGR_25)
@needs(opens=True, network="allow")
@half_the_examples()
@given(case=policies.cases)
@each("case", policies.CASES)
def test_a_request_arrives_exactly_where_reaches_says_so(
    inside: Inside, lab: Lab, case: Case
) -> None:
    """Under any allow list a request arrives exactly where `reaches` opens its host and port."""
    needs_of_lab(lab, "names", "packets")
    ipv6 = inside.reachable(Place(6, by_name=False)).family == 6
    with Rehearsal(inside, lab, case, ipv6=ipv6) as rehearsal:
        site = rehearsal.play()
    inside.proven("allow", "https")
    inside.control(site, "tcp")


@verifies(EGR_25)
@needs(opens=True, network="allow")
@pytest.mark.usefixtures("given_addresses")
@half_the_examples()
@given(
    listed=st.lists(policies.addresses, min_size=1, max_size=3, unique=True), by_name=st.booleans()
)
@example(listed=[*policies.PUBLIC, *policies.PRIVATE], by_name=False)
@example(listed=["172.32.0.2", "10.0.0.1", "169.254.169.254"], by_name=True)
def test_a_listed_address_is_opened_exactly_where_it_is_not_private(
    inside: Inside, lab: Lab, listed: list[str], by_name: bool
) -> None:
    """A listed address or a name of it is reached, private ones apart where those are blocked."""
    needs_of_lab(lab, "names", "packets", "private")
    blocks = inside.target.declared.fact("blocks_private_addresses")
    ipv6 = inside.reachable(Place(6, by_name=False)).family == 6
    # Where nothing is said of private ones, those that are listed may be reached or not.
    wanted = [one for one in listed if blocks or not is_private(one)]
    sites = [lab.site(addresses=[one]) for one in wanted if ipv6 or ":" not in one]
    hosts = [entry(site.name if by_name else site.address, 443) for site in sites]
    if not hosts:
        return
    with inside.opened(network=inside.target.Network.allow(hosts=hosts)) as box:
        for site in sites:
            host = site.name if by_name else site.address
            where = destination("https", site, host=host)
            if is_private(site.address):
                _is_refused(inside, lab, box, site, where)
            else:
                _is_reached(inside, lab, box, site, where)
    inside.proven("allow", "https")
    inside.private_reached()


def _is_refused(inside: Inside, lab: Lab, box: Box, site: Site, where: Destination) -> None:
    for client, scheme in inside.ways("allow", "https")[:2]:
        ran = inside.attempt(box, client, scheme, where)
    inside.judge(
        connections(lab.seen(site), site),
        did=f"with {site.address} listed, which is private, it let this through: {ran}",
        remedy="refuse private addresses whatever is listed",
    )


def _is_reached(inside: Inside, lab: Lab, box: Box, site: Site, where: Destination) -> None:
    tried = []
    for client, scheme in inside.ways("allow", "https"):
        tried.append(str(inside.attempt(box, client, scheme, where, patient=True)))
        seen = connections(lab.seen(site), site)
        if any(one.kind == "request" for one in seen):
            return
    inside.control(site, "https")
    raise Violation(
        f"with {where.url} listed, which leads to the public {site.address}, it refused this: "
        f"{'; '.join(tried)}",
        saw=describe(seen),
        remedy="refuse the addresses that are private, and no others",
    )


# What vendors open beside the list, as essential to development or to themselves.
_WELL_KNOWN = (
    *("pypi.org", "files.pythonhosted.org", "registry.npmjs.org", "github.com", "api.github.com"),
    *("raw.githubusercontent.com", "deb.debian.org", "archive.ubuntu.com", "proxy.golang.org"),
    *("index.crates.io", "registry-1.docker.io", "huggingface.co", "www.google.com"),
    *("api.mistral.ai", "api.openai.com", "api.anthropic.com", "1.1.1.1", "8.8.8.8", "9.9.9.9"),
)


@verifies(EGR_25)
@needs(opens=True, network="allow")
@pytest.mark.usefixtures("given_addresses")
def test_no_host_is_open_because_everybody_needs_it(inside: Inside, lab: Lab) -> None:
    """Under an allow list well-known hosts that it does not name are refused like any other."""
    needs_of_lab(lab, "names", "packets")
    listed = lab.site()
    with inside.opened(network=inside.target.Network.allow(hosts=[listed.entry])) as box:
        for host in _WELL_KNOWN:
            named = not host[0].isdigit()
            site = lab.site(name=host) if named else lab.site(addresses=[host])
            for client, scheme in inside.ways("allow", "https")[:2]:
                where = destination(scheme, site, host=host)
                ran = inside.attempt(box, client, scheme, where)
            inside.judge(
                connections(lab.seen(site), site),
                did=f"with only {listed.entry} listed it let this through: {ran}",
                remedy="open what the list names, and nothing of your own choice",
            )
    inside.proven("allow", "https")
    inside.control(site, "tcp")
