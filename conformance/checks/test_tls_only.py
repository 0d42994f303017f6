"""EGR: what goes out to a listed host is TLS, says the listed name, and goes to its owner."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.lab.sites import Certificate
from conformance.marks import needs, verifies
from conformance.probes.detours import Aim, having, needs_one
from conformance.probes.fronts import FRONTS, by_hand, unverified
from conformance.probes.inside import needs_of_lab
from conformance.probes.places import Place, destination, port_at
from conformance.probes.plain_text import PAYLOADS, PLAIN
from conformance.requirements import EGR_20, EGR_22, EGR_23
from conformance.strategies.costly import half_the_examples
from conformance.strategies.each import each
from conformance.verdicts import NotApplicable, NotRun

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.lab.journal import Sighting
    from conformance.lab.sites import Site
    from conformance.probes.inside import Inside
    from conformance.probes.plain_text import Plain

ports = st.sampled_from((443, 8443))
places = st.builds(Place, st.sampled_from((4, 6)), st.booleans(), ports)
HTTPS = Place(4, by_name=True)


def _in_the_clear(lab: Lab, site: Site) -> list[Sighting]:
    """Give the bytes that came to a site outside of TLS; a connection without any is none."""
    seen = lab.seen(site)
    return [one for one in seen if one.kind in ("request", "datagram") and not one.tls]


@verifies(EGR_20)
@needs(opens=True, network="allow")
@half_the_examples()
@given(plain=st.sampled_from(PLAIN), place=places)
@each("plain", PLAIN, place=HTTPS)
@each("plain", PLAIN[:1], place=Place(4, by_name=False, port=8443))
def test_no_web_client_sends_a_listed_host_anything_but_tls(
    inside: Inside, lab: Lab, plain: Plain, place: Place
) -> None:
    """Under allow() no text of a web client reaches a listed host and port outside of TLS."""
    place = inside.reachable(place)
    ways = inside.ways("allow", "http")
    sites = [place.site(lab) for _ in ways]
    hosts = [place.entry(site) for site in sites]
    with inside.opened(network=inside.target.Network.allow(hosts=hosts)) as box:
        for (client, scheme), site in zip(ways, sites, strict=True):
            if plain.client not in ("", client.name):
                continue
            url = plain.url_of(site, place.host(site), port_at(site, place.port))
            ran = inside.attempt(
                box, plain.of(client, site), scheme, destination(scheme, site, url=url)
            )
            inside.judge(
                _in_the_clear(lab, site),
                did=f"with hosts={hosts!r} listed it let {ran} out ({plain.kind})",
                remedy="let nothing but TLS through, on listed ports too",
            )
    inside.proven("allow", "http")
    inside.control(site, "https")


@verifies(EGR_20)
@needs(opens=True, network="allow")
@half_the_examples()
@given(kind=st.sampled_from(list(PAYLOADS)), place=places)
@each("kind", PAYLOADS, place=HTTPS)
def test_no_raw_client_sends_a_listed_host_anything_but_tls(
    inside: Inside, lab: Lab, kind: str, place: Place
) -> None:
    """Under allow() no bytes of a raw client reach a listed host and port outside of TLS."""
    place = inside.reachable(place)
    ways = inside.ways_for((kind, place), "allow", "tcp")
    sites = [place.site(lab) for _ in ways]
    hosts = [place.entry(site) for site in sites]
    with inside.opened(network=inside.target.Network.allow(hosts=hosts)) as box:
        for (client, scheme), site in zip(ways, sites, strict=True):
            where = place.destination(scheme, site)
            payload = PAYLOADS[kind].format(nonce=site.nonce, name=site.name)
            ran = inside.attempt(box, by_hand(client), scheme, replace(where, payload=payload))
            inside.judge(
                _in_the_clear(lab, site),
                did=f"with hosts={hosts!r} listed it let {ran} out ({kind})",
                remedy="look into what goes to a listed port, and let only TLS through",
            )
    inside.proven("allow", "tcp")
    inside.control(site, "https")


def _for_another(lab: Lab, site: Site) -> list[Sighting]:
    """Give what came to a site inside TLS with another name than the site's."""
    return [
        one
        for one in lab.seen(site)
        if one.address == site.address
        and one.tls
        and one.kind in ("hello", "request")
        and one.name not in ("", site.name)
    ]


@verifies(EGR_22)
@needs(opens=True, network="allow")
def test_no_listed_host_is_asked_for_another(inside: Inside, lab: Lab) -> None:
    """Under allow() no server name and no Host header but the listed one reach a listed host."""
    needs_of_lab(lab, "names")
    needs_one(inside, "allow", FRONTS)
    inside.proven("allow", "https")
    aims = [Aim.fresh(lab, "honest") for _ in FRONTS]
    hosts = [aim.listed.entry for aim in aims]
    with inside.opened(network=inside.target.Network.allow(hosts=hosts)) as box:
        for front, aim in zip(FRONTS, aims, strict=True):
            for client in having(inside, "allow", front):
                led = front.of(client, aim)
                ran = inside.attempt(box, led, front.scheme, front.where(aim))
                inside.judge(
                    _for_another(lab, aim.listed),
                    did=f"with only the host {aim.listed.name} of this address listed "
                    f"it let {ran} through ({front.kind})",
                    remedy="hold server name and Host of each request against what was allowed",
                )
    inside.control(aims[0].listed, "https")


@verifies(EGR_23)
@needs(opens=True, network="allow")
@pytest.mark.parametrize("flaw", [one for one in get_args(Certificate) if one != "good"])
def test_a_listed_host_without_its_certificate_is_not_reached(
    inside: Inside, lab: Lab, flaw: Certificate
) -> None:
    """Under allow() no request reaches a listed host of a wrong certificate, verified or not."""
    clients = [one for one in map(unverified, inside.clients("allow", "https")) if one is not None]
    if not clients:
        raise NotApplicable("no client inside has a way to skip verification")
    known, flawed = lab.site(), lab.site(certificate=flaw)
    network = inside.target.Network.allow(hosts=[known.entry, flawed.entry])
    arrived = False
    with inside.opened(network=network) as box:
        for client in clients:
            inside.attempt(box, client, "https", destination("https", known))
            arrived = arrived or any(one.kind == "request" for one in lab.seen(known))
            ran = inside.attempt(box, client, "https", destination("https", flawed))
            inside.judge(
                [one for one in lab.seen(flawed) if one.kind == "request"],
                did=f"it let {ran} ask a listed host whose certificate is wrong ({flaw})",
                remedy="verify the certificate of each listed host outside of the sandbox",
            )
    if not arrived:
        raise NotRun("no client that skips verification reached a listed host at all: see EGR-10")
    inside.control(flawed, "https")
