"""EGR-19: variables, switches and settings files by which a command leads its client elsewhere."""

from __future__ import annotations

import contextlib
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from conformance.marks import needs, verifies
from conformance.probes.detours import DETOURS, Aim, having, needs_one
from conformance.probes.inside import connections, describe
from conformance.probes.places import Place, destination
from conformance.probes.words import with_words
from conformance.requirements import EGR_19
from conformance.verdicts import NotApplicable, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.lab.client import Lab
    from conformance.lab.journal import Sighting
    from conformance.probes.clients import Client, Scheme
    from conformance.probes.detours import Detour
    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box

Mode = Literal["none", "allow"]

both_modes = pytest.mark.parametrize(
    "mode",
    [
        pytest.param("none", marks=needs(network="none")),
        pytest.param("allow", marks=needs(network="allow")),
    ],
)


@contextlib.contextmanager
def _under(inside: Inside, mode: Mode, *listed: str) -> Iterator[Box]:
    if mode == "none":
        yield inside.narrowest()
        return
    with inside.opened(network=inside.target.Network.allow(hosts=listed)) as box:
        yield box


def _is_open_anyway(inside: Inside, lab: Lab, box: Box, client: Client, scheme: Scheme) -> bool:
    """Whether the client gets to an unlisted place in the plain way: then nothing is widened."""
    for by_name in (True, False):
        place = Place(4, by_name)
        site = place.site(lab)
        inside.attempt(box, client, scheme, place.destination(scheme, site))
        if connections(lab.seen(site), site):
            return True
    return False


def _elsewhere(lab: Lab, mode: Mode, aim: Aim) -> list[Sighting]:
    """Give what came to any place but the listed one."""
    sites = (aim.listed, aim.other, aim.proxy)
    open_place = (aim.listed.address, aim.listed.https_port)
    return [
        one
        for site in sites
        for one in connections(lab.seen(site), *sites)
        if mode == "none" or (one.address, one.port) != open_place
    ]


def _leads_nowhere(
    inside: Inside, lab: Lab, box: Box, mode: Mode, detour: Detour, aim: Aim
) -> None:
    known: set[int] = set()
    for client in having(inside, mode, detour):
        ran = inside.attempt(box, detour.of(client, aim), detour.scheme, detour.where(aim))
        seen = [one for one in _elsewhere(lab, mode, aim) if one.number not in known]
        known.update(one.number for one in seen)
        if seen and not _is_open_anyway(inside, lab, box, client, detour.scheme):
            raise Violation(
                f"under Network.{mode}() it let {ran} out by {detour.kind}",
                saw=describe(seen),
                remedy="judge what is dialled, whoever says so: URL, switch, variable or file",
            )


@verifies(EGR_19)
@needs(opens=True)
@both_modes
def test_no_switch_variable_or_file_leads_out(inside: Inside, lab: Lab, mode: Mode) -> None:
    """Under none() and allow() no switch, variable or settings file widens what is reached."""
    needs_one(inside, mode, DETOURS)
    inside.proven(mode, "https", "http", "tcp")
    # A listed host is handed to the proxy that says yes: there is nothing more to say to it.
    aims = [Aim.fresh(lab, "honest" if one.to == "other" else "yes") for one in DETOURS]
    with _under(inside, mode, *(aim.listed.entry for aim in aims)) as box:
        for detour, aim in zip(DETOURS, aims, strict=True):
            _leads_nowhere(inside, lab, box, mode, detour, aim)
    inside.control(aims[0].other, "https")


@verifies(EGR_19)
@needs(opens=True, isolated=True)
@both_modes
def test_no_switch_leads_to_a_unix_socket(inside: Inside, lab: Lab, mode: Mode) -> None:
    """Under none() and allow() no switch leads to a unix socket of the host."""
    inside.proven(mode, "https")
    curl = next((one for one in inside.clients(mode, "https") if one.name == "curl"), None)
    if curl is None:
        raise NotApplicable("no curl found inside, and no other client has such a switch")
    site = lab.site()
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control,
        _under(inside, mode, site.entry) as box,
    ):
        path = str(Path(folder, "host.socket"))
        server.bind(path)
        server.listen()
        server.setblocking(False)
        led = with_words(curl, "--unix-socket", path)
        ran = inside.attempt(box, led, "https", destination("https", site))
        with contextlib.suppress(BlockingIOError):
            server.accept()[0].close()
            raise Violation(
                f"under Network.{mode}() it let {ran} connect to a unix socket of the host",
                remedy="keep the host's sockets out of reach of every client",
            )
        control.connect(path)
        server.accept()[0].close()
