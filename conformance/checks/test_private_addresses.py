"""EGR: private and loopback addresses, which no policy opens."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given

from conformance.marks import needs, verifies
from conformance.probes.inside import connections, needs_of_lab
from conformance.probes.places import destination, entry
from conformance.requirements import EGR_16
from conformance.strategies import addresses
from conformance.strategies.each import each

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.lab.client import Lab
    from conformance.lab.sites import Site
    from conformance.probes.clients import Scheme
    from conformance.probes.inside import Attempt, Inside
    from conformance.subject.facade import Box

Mode = Literal["allow", "all"]

both_modes = pytest.mark.parametrize(
    "mode",
    [
        pytest.param("allow", marks=needs(network="allow")),
        pytest.param("all", marks=needs(network="all")),
    ],
)


@contextmanager
def _under(inside: Inside, mode: Mode, hosts: list[str]) -> Iterator[Box]:
    network = inside.target.Network
    if mode == "all":
        yield inside.under(network=network.all())  # the same for every example
        return
    with inside.opened(network=network.allow(hosts=hosts)) as box:
        yield box


def _controls(inside: Inside, lab: Lab, mode: Mode) -> None:
    needs_of_lab(lab, "private")
    inside.proven(mode, "https")
    inside.private_reached()


def _stays_refused(
    inside: Inside, lab: Lab, box: Box, mode: Mode, site: Site, host: str, *, canonical: bool
) -> None:
    """Let every client try one spelling of one place, then ask the witnesses once."""
    # What is not HTTPS is refused under allow() anyway, and knows no odd spellings.
    schemes: tuple[Scheme, ...] = ("https", "http", "tcp") if canonical else ("https",)
    tried: dict[str, Attempt] = {}
    for client, scheme in inside.ways(mode, *(schemes if mode == "all" else ("https",))):
        ports = _https_ports(site) if scheme == "https" and canonical else (None,)
        for port in ports:
            mark = str(len(tried))
            where = destination(scheme, site, host=host.strip("[]"))
            if scheme != "tcp":
                url = site.url(scheme, host=host, port=port, path=mark)
                where = destination(scheme, site, host=host, url=url)
            tried[mark] = inside.attempt(box, client, scheme, where)
    seen = connections(lab.seen(site), site)
    arrived = {sight.path.rpartition("/")[2] for sight in seen}
    known = [one for mark, one in tried.items() if mark in arrived]
    shown = str(known[0]) if known else f"one of {len(tried)} attempts, the first {tried['0']}"
    inside.judge(
        seen,
        did=f"under Network.{mode}() it let this through to a private address: {shown}",
        remedy="check the address that is dialled, after every spelling and name is resolved",
    )


def _https_ports(site: Site) -> tuple[int, ...]:
    # On the host's own loopback other ports belong to others.
    return (443, 8443) if site.https_port == 443 else (site.https_port,)


def _entries(*hosts: str) -> list[str]:
    return [entry(host, port) for host in hosts for port in (443, 8443)]


@verifies(EGR_16)
@needs(opens=True)
@both_modes
@pytest.mark.usefixtures("alone")
@given(literal=addresses.private_literals)
@each("literal", addresses.LITERALS)
def test_a_private_address_stays_refused(
    inside: Inside, lab: Lab, mode: Mode, literal: addresses.Literal
) -> None:
    """A private address is refused in every spelling, even listed or under all()."""
    _controls(inside, lab, mode)
    site = lab.site(addresses=literal.dialled)
    with _under(inside, mode, _entries(*literal.dialled)) as box:
        _stays_refused(inside, lab, box, mode, site, literal.host, canonical=literal.is_canonical)


@verifies(EGR_16)
@needs(opens=True)
@both_modes
@pytest.mark.usefixtures("alone")
@given(literal=addresses.private_literals)
@each("literal", [literal for literal in addresses.LITERALS if literal.is_address])
def test_a_name_of_a_private_address_stays_refused(
    inside: Inside, lab: Lab, mode: Mode, literal: addresses.Literal
) -> None:
    """A name that resolves to a private address is refused, even listed or under all()."""
    _controls(inside, lab, mode)
    site = lab.site(addresses=literal.dialled, dns=[[literal.dialled[-1]]])
    with _under(inside, mode, _entries(site.name)) as box:
        _stays_refused(inside, lab, box, mode, site, site.name, canonical=literal.is_canonical)


@verifies(EGR_16)
@needs(opens=True)
@both_modes
@given(spelling=addresses.loopback_hosts)
@each("spelling", addresses.LOOPBACK_HOSTS)
def test_a_loopback_address_stays_refused(
    inside: Inside, lab: Lab, mode: Mode, spelling: str
) -> None:
    """A service of the host itself is refused in every spelling, even listed or under all()."""
    _controls(inside, lab, mode)
    site = lab.loopback_site(family=6 if spelling in ("[::1]", "[::]") else 4)
    hosts = [f"{host}:{site.https_port}" for host in ("127.0.0.1", "[::1]", "localhost")]
    with _under(inside, mode, hosts) as box:
        canonical = spelling in ("127.0.0.1", "[::1]", "localhost")
        _stays_refused(inside, lab, box, mode, site, spelling, canonical=canonical)
    inside.control(site, "https")
