"""EGR: services of the sandbox's own host, on its loopback and at its unix sockets."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given

from conformance.marks import alone, needs, verifies
from conformance.probes import unix_sockets
from conformance.probes.clients import Destination
from conformance.probes.ears import Ear
from conformance.probes.inside import needs_of_lab
from conformance.probes.places import destination
from conformance.probes.unix_sockets import UnixPlace
from conformance.requirements import EGR_03, EGR_04
from conformance.strategies import addresses
from conformance.strategies.each import each
from conformance.verdicts import NotRun, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.lab.client import Lab
    from conformance.lab.sites import Site
    from conformance.probes.clients import Scheme
    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box

Mode = Literal["none", "allow"]
SCHEMES: tuple[Scheme, ...] = ("https", "http", "tcp", "udp")

closing_modes = pytest.mark.parametrize(
    "mode",
    [pytest.param(mode, marks=needs(network=mode)) for mode in ("none", "allow")],
)
unix_places = pytest.mark.parametrize(
    "place",
    [
        pytest.param(UnixPlace("stream", abstract=False), id="path"),
        pytest.param(UnixPlace("stream", abstract=True), id="abstract"),
        pytest.param(UnixPlace("datagram", abstract=False), id="path-datagram"),
        pytest.param(UnixPlace("datagram", abstract=True), id="abstract-datagram"),
    ],
)


@verifies(EGR_03)
@needs(opens=True, network="none")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_a_service_on_the_hosts_loopback_is_not_reached(
    inside: Inside, lab: Lab, host: str
) -> None:
    """Under none() no web, TCP or UDP service on the host's own loopback is reached."""
    box = inside.narrowest()
    for client, scheme in inside.ways("none", *SCHEMES):
        site = lab.loopback_site(6 if host == "::1" else 4)
        ran = inside.attempt(box, client, scheme, destination(scheme, site, host=host))
        inside.judge(
            lab.seen(site),
            did=f"under Network.none() it let {ran} through to a service of its host",
            remedy="give commands a loopback of their own, or none at all",
        )
    inside.proven("none", *SCHEMES)
    inside.control(site, "https")
    inside.control(site, "udp")


@verifies(EGR_03)
@needs(opens=True, network="none")
@given(place=addresses.loopback_places)
@each("place", addresses.LOOPBACK_PLACES)
def test_no_port_of_the_hosts_loopback_is_reached(
    inside: Inside, place: addresses.LoopbackPlace
) -> None:
    """Under none() no port of any of the host's own loopback addresses is reached."""
    box = inside.narrowest()
    # The others go to the lab's own services, above.
    ways = [way for way in inside.ways("none", *SCHEMES) if way[1] == place.scheme][:2]
    kind: Literal["stream", "datagram"] = "datagram" if place.scheme == "udp" else "stream"
    with Ear.at_loopback(place.address, kind, place.port) as ear:
        host = f"[{place.address}]" if ":" in place.address else place.address
        url = f"{place.scheme}://{host}:{ear.port}/"
        where = Destination(url=url, host=place.address, port=ear.port, payload="hello\n")
        for client, scheme in ways:
            ran = inside.attempt(box, client, scheme, where)
            _unheard(ear, f"under Network.none() it let {ran} through to its host")
    inside.proven("none", *SCHEMES)


def _unheard(ear: Ear, did: str) -> None:
    calls = ear.heard()
    if calls:
        raise Violation(
            did,
            saw=f"{', '.join(calls)} at a socket of the harness itself",
            remedy="let commands reach neither the loopback nor the unix sockets of their host",
        )


@contextmanager
def _under(inside: Inside, mode: Mode, site: Site) -> Iterator[Box]:
    """Open a sandbox; under allow() what curl is told to fetch is listed."""
    if mode == "none":
        yield inside.narrowest()
        return
    with inside.opened(network=inside.target.Network.allow(hosts=[site.entry])) as box:
        yield box


@verifies(EGR_04)
@needs(opens=True)
@closing_modes
@unix_places
def test_a_unix_socket_of_the_host_is_not_reached(
    inside: Inside, lab: Lab, mode: Mode, place: UnixPlace
) -> None:
    """Under none() and allow() no unix socket of the host is reached, by path or by name."""
    site = lab.site()
    clients = unix_sockets.clients(inside, mode, place)
    with place.listening() as (ear, host), _under(inside, mode, site) as box:
        for client in clients:
            where = Destination(url=site.url(), host=host, payload="hello\n")
            ran = inside.attempt(box, client, place.scheme, where)
            _unheard(ear, f"under Network.{mode}() it let {ran} through to its host")
    unix_sockets.proven(inside, mode, place, site.url())


@contextmanager
def _docker_sockets() -> Iterator[list[tuple[Ear, str]]]:
    """Listen where Docker does, for the machine and for an account, and nobody else yet."""
    with ExitStack() as stack:
        ears: list[tuple[Ear, str]] = []
        for path in (Path("/run/docker.sock"), Path.home() / ".docker" / "run" / "docker.sock"):
            if not os.path.lexists(path):
                with suppress(OSError):  # the folder is another account's
                    path.parent.mkdir(parents=True, exist_ok=True)
                    ear = stack.enter_context(Ear.at_path(path, "stream"))
                    ears.append((ear, str(path)))
        if not ears:
            raise NotRun("every place where Docker listens is taken; stop it, and run again")
        yield ears


@verifies(EGR_04)
@needs(opens=True)
@closing_modes
@alone
def test_the_docker_socket_is_not_reached(inside: Inside, lab: Lab, mode: Mode) -> None:
    """Under none() and allow() no container engine is reached where it usually listens."""
    site, place = lab.site(), UnixPlace("stream", abstract=False)
    clients = unix_sockets.clients(inside, mode, place)
    if "files" in lab.missing:
        unix_sockets.proven(inside, mode, place, site.url())  # where it has no client at all
        needs_of_lab(lab, "files")
    with _docker_sockets() as ears, _under(inside, mode, site) as box:
        for ear, path in ears:
            for client in clients:
                where = Destination(url=site.url(), host=path, payload="GET /info HTTP/1.0\r\n\r\n")
                ran = inside.attempt(box, client, place.scheme, where)
                _unheard(ear, f"under Network.{mode}() it let {ran} through to its host")
    unix_sockets.proven(inside, mode, place, site.url())
