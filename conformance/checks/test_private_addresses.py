"""EGR: private and loopback addresses, which no policy opens, and the option that does."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given

from conformance.marks import needs, verifies
from conformance.probes.batches import Try, in_turn
from conformance.probes.inside import connections, describe, needs_of_lab
from conformance.probes.places import destination, entry
from conformance.requirements import EGR_16, EGR_18
from conformance.strategies import addresses
from conformance.strategies.costly import half_the_examples
from conformance.strategies.each import each
from conformance.verdicts import NotRun, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.lab.client import Lab
    from conformance.lab.sites import Site
    from conformance.probes.attempts import Attempt
    from conformance.probes.clients import Destination, Scheme
    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box

Mode = Literal["allow", "all"]
# No other check lists it, so that nothing is credited to another session's list.
UNLISTED = "10.77.0.1"

both_modes = pytest.mark.parametrize(
    "mode",
    [
        pytest.param("allow", marks=needs(network="allow")),
        pytest.param("all", marks=needs(network="all")),
    ],
)


@contextmanager
def _under(inside: Inside, mode: Mode, hosts: list[str], **options: bool) -> Iterator[Box]:
    network = inside.target.Network
    if mode == "all":
        yield inside.under(network=network.all(), **options)  # the same for every example
        return
    with inside.opened(network=network.allow(hosts=hosts), **options) as box:
        yield box


def _controls(inside: Inside, lab: Lab, mode: Mode) -> None:
    needs_of_lab(lab, "private")
    inside.proven(mode, "https")
    inside.private_reached()


@dataclass(frozen=True, slots=True)
class _Spelled:
    """One spelling of one place.

    Attributes:
        site: The place.
        host: How it is written.
        canonical: Whether every client takes that for the place.
        example: What was drawn.
        clients: How many try it; each reads odd spellings in a way of its own.
    """

    site: Site
    host: str
    canonical: bool
    example: object
    clients: int = 2


def _stays_refused(inside: Inside, lab: Lab, box: Box, mode: Mode, spelled: _Spelled) -> None:
    """Let clients try one spelling of one place, then ask the witnesses once."""
    site, host, canonical = spelled.site, spelled.host, spelled.canonical
    # What is not HTTPS is refused under allow() anyway, and knows no odd spellings.
    schemes: tuple[Scheme, ...] = ("https", "http", "tcp") if canonical else ("https",)
    tries: list[Try] = []
    if mode == "allow":
        schemes = ("https",)
    for client, scheme in inside.ways_for(spelled.example, mode, *schemes, each=spelled.clients):
        ports = _https_ports(site) if scheme == "https" and canonical else (None,)
        for port in ports:
            where = destination(scheme, site, host=host.strip("[]"))
            if scheme != "tcp":
                url = site.url(scheme, host=host, port=port, path=str(len(tries)))
                where = destination(scheme, site, host=host, url=url)
            tries.append(Try(client, scheme, where))
    tried = in_turn(inside, box, tries)
    seen = connections(lab.seen(site), site)
    arrived = {sight.path.rpartition("/")[2] for sight in seen}
    known = [one for number, one in enumerate(tried) if str(number) in arrived]
    shown = str(known[0]) if known else f"one of {len(tried)} attempts, the first {tried[0]}"
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
@pytest.mark.usefixtures("given_addresses")
@half_the_examples()
@given(literal=addresses.private_literals)
@each("literal", addresses.LITERALS)
def test_a_private_address_stays_refused(
    inside: Inside, lab: Lab, mode: Mode, literal: addresses.Literal
) -> None:
    """A private address is refused in every spelling, even listed or under all()."""
    _controls(inside, lab, mode)
    site = lab.site(addresses=literal.dialled)
    with _under(inside, mode, _entries(*literal.dialled)) as box:
        spelled = _Spelled(site, literal.host, literal.is_canonical, literal)
        _stays_refused(inside, lab, box, mode, spelled)


@verifies(EGR_16)
@needs(opens=True)
@both_modes
@pytest.mark.usefixtures("given_addresses")
@half_the_examples()
@given(literal=addresses.private_literals)
@each("literal", [literal for literal in addresses.LITERALS if literal.is_address])
def test_a_name_of_a_private_address_stays_refused(
    inside: Inside, lab: Lab, mode: Mode, literal: addresses.Literal
) -> None:
    """A name that resolves to a private address is refused, even listed or under all()."""
    _controls(inside, lab, mode)
    site = lab.site(addresses=literal.dialled, dns=[[literal.dialled[-1]]])
    with _under(inside, mode, _entries(site.name)) as box:
        spelled = _Spelled(site, site.name, literal.is_canonical, literal, clients=1)
        _stays_refused(inside, lab, box, mode, spelled)


@verifies(EGR_16)
@needs(opens=True)
@both_modes
@half_the_examples()
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
        _stays_refused(inside, lab, box, mode, _Spelled(site, spelling, canonical, spelling))
    inside.control(site, "https")


def _unanswered(
    inside: Inside, box: Box, mode: Mode, site: Site, where: Destination
) -> list[Attempt]:
    """Let clients fetch from a site until one gets its answer: none if one does.

    Raises:
        NotRun: There is no client that shows what it fetched.
    """
    tried = []
    for client, scheme in inside.ways(mode, "https"):
        if client.prints:
            tried.append(inside.attempt(box, client, scheme, where, patient=True))
            if site.token in tried[-1].stdout:
                return []
    if not tried:
        raise NotRun("no HTTPS client inside shows what it fetched; put curl inside")
    return tried


@verifies(EGR_18)
@needs(opens=True, option="block_private_ips")
@both_modes
@pytest.mark.usefixtures("given_addresses")
@pytest.mark.parametrize("host", addresses.OPENED)
def test_a_private_address_is_opened_where_it_is_not_blocked(
    inside: Inside, lab: Lab, mode: Mode, host: str
) -> None:
    """With block_private_ips=False a private address that the network allows is answered."""
    site = _private_site(lab, host)
    written = site.name if host in ("localhost", "a name") else site.address
    with _under(inside, mode, [entry(written, site.https_port)], block_private_ips=False) as box:
        where = destination("https", site, url=site.url(host=written))
        tried = _unanswered(inside, box, mode, site, where)
    inside.control(site, "https")
    if tried:
        raise Violation(
            f"under Network.{mode}() with {written} allowed and block_private_ips=False, "
            f"{tried[0]} got no answer",
            saw=describe(connections(lab.seen(site), site)),
            remedy="open private addresses like others where block_private_ips is False",
        )


def _private_site(lab: Lab, host: str) -> Site:
    if host in ("127.0.0.1", "::1", "localhost"):
        return lab.loopback_site(6 if host == "::1" else 4)
    return lab.site(addresses=["10.0.0.1" if host == "a name" else host])


@verifies(EGR_18)
@needs(opens=True, network="allow", option="block_private_ips")
@pytest.mark.usefixtures("given_addresses")
@pytest.mark.parametrize("kind", ["private", "public"])
def test_no_host_that_is_not_listed_is_opened_with_private_addresses(
    inside: Inside, lab: Lab, kind: str
) -> None:
    """With block_private_ips=False an allow list opens no address but those it names."""
    needs_of_lab(lab, "private")
    listed = _entries("10.77.0.2", "fd00::2")
    site = lab.site(addresses=[UNLISTED] if kind == "private" else None)
    with _under(inside, "allow", listed, block_private_ips=False) as box:
        for client, scheme in inside.ways("allow", "https", "http", "tcp"):
            ran = inside.attempt(box, client, scheme, _at(site, scheme))
            inside.judge(
                connections(lab.seen(site), site),
                did=f"with only {listed} listed and block_private_ips=False it let {ran} through",
                remedy="let block_private_ips=False widen no list",
            )
    inside.proven("allow", "https", "http", "tcp")
    inside.control(site, "https")


@verifies(EGR_18)
@needs(opens=True, network="allow", option="block_private_ips")
@pytest.mark.usefixtures("given_addresses")
@pytest.mark.parametrize("port", [80, 443, 8443])
def test_a_listed_private_address_is_opened_for_https_at_its_port_alone(
    inside: Inside, lab: Lab, port: int
) -> None:
    """With block_private_ips=False a listed private address stays shut but for its HTTPS."""
    needs_of_lab(lab, "private")
    site = lab.site(addresses=["10.0.0.1"])
    listed = [entry(site.address, 443)]
    with _under(inside, "allow", listed, block_private_ips=False) as box:
        for client, scheme in inside.ways("allow", "https", "http", "tcp"):
            if (scheme, port) != ("https", 443):
                ran = inside.attempt(box, client, scheme, _at(site, scheme, port))
                inside.judge(
                    [
                        one
                        for one in connections(lab.seen(site), site)
                        if one.port != 443 or (one.kind == "request" and not one.tls)
                    ],
                    did=f"with only {listed} listed and block_private_ips=False it let {ran} "
                    "through",
                    remedy="open listed private addresses for HTTPS at their port, as others are",
                )
    inside.proven("allow", "https", "http", "tcp")
    inside.control(site, "http")


@verifies(EGR_18)
@needs(opens=True, network="none", option="block_private_ips")
@pytest.mark.usefixtures("given_addresses")
def test_no_private_address_is_opened_without_a_network(inside: Inside, lab: Lab) -> None:
    """With block_private_ips=False nothing private is opened under none()."""
    site = lab.site(addresses=[UNLISTED])
    with inside.opened(network=inside.target.Network.none(), block_private_ips=False) as box:
        for client, scheme in inside.ways("none", "https", "http", "tcp"):
            ran = inside.attempt(box, client, scheme, _at(site, scheme))
            inside.judge(
                connections(lab.seen(site), site),
                did=f"under Network.none() with block_private_ips=False it let {ran} through",
                remedy="open nothing under Network.none(), whatever other options say",
            )
    inside.proven("none", "https", "http", "tcp")
    inside.control(site, "https")


def _at(site: Site, scheme: Scheme, port: int | None = None) -> Destination:
    """Say where a client goes that goes by the site's address."""
    url = site.url(scheme, host=site.address, port=port)
    return destination(scheme, site, port=port, host=site.address, url=url)
