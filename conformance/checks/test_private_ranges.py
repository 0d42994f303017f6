"""EGR-16: the whole of each private range, where a table of ranges may be cut too short."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pytest

from conformance.marks import needs, verifies
from conformance.probes.clients import Destination
from conformance.probes.inside import connections, describe, needs_of_lab
from conformance.probes.places import entry
from conformance.requirements import EGR_16
from conformance.strategies.private_ranges import CUTS
from conformance.verdicts import Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.lab.client import Lab
    from conformance.lab.sites import Site
    from conformance.probes.clients import Client, Scheme
    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box

Mode = Literal["allow", "all"]

# A word that no shell quotes, for the variable that takes its place.
_PLACE = "PLACE-OF-THE-ADDRESS"
# Where refusals are silent each takes its time: then the first few have to be enough.
_ENOUGH_SECONDS = 1.0
_REMEDY = "hold the address that is dialled against the whole of every private range"


@dataclass(frozen=True, slots=True)
class _Going:
    """One client on its way to a site's private addresses, in a sandbox under a mode."""

    mode: Mode
    client: Client
    scheme: Scheme
    where: Destination
    site: Site


def _stays_inside(lab: Lab, box: Box, going: _Going, to: Sequence[str]) -> None:
    """Let a client go to each of these, with each command to twice as many as before."""
    where = going.where
    line = going.client.command(going.scheme, where).replace(_PLACE, '"$to"')
    began, first, count = time.monotonic(), 0, 1
    while first < len(to) and time.monotonic() - began < _ENOUGH_SECONDS:
        part = to[first : first + count]
        command = f"for to in {shlex.join(part)}; do {line}; done >/dev/null 2>&1"
        box.execute(command, timeout_seconds=count * where.seconds + 5)
        _is_shut(lab, going)
        first, count = first + count, 2 * count


def _is_shut(lab: Lab, going: _Going) -> None:
    if seen := connections(lab.seen(going.site), going.site):
        places = ", ".join(dict.fromkeys(one.address for one in seen))
        raise Violation(
            f"under Network.{going.mode}() it let {going.scheme.upper()} of {going.client.name} "
            f"out to private addresses: {places[:200]}",
            saw=describe(seen),
            remedy=_REMEDY,
        )


@verifies(EGR_16)
@needs(opens=True)
@pytest.mark.parametrize(
    "mode",
    [
        pytest.param("allow", marks=needs(network="allow")),
        pytest.param("all", marks=needs(network="all")),
    ],
)
@pytest.mark.usefixtures("given_addresses")
def test_no_part_of_a_private_range_is_left_out(inside: Inside, lab: Lab, mode: Mode) -> None:
    """Every part of every private range is refused over HTTPS, even listed or under all()."""
    needs_of_lab(lab, "private")
    inside.proven(mode, "https")
    inside.private_reached()
    site, network = lab.site(addresses=CUTS), inside.target.Network
    policy = network.all() if mode == "all" else network.allow(hosts=[entry(a, 443) for a in CUTS])
    client, _ = inside.ways(mode, "https")[0]
    urls = [site.url(host=address) for address in CUTS]
    with inside.opened(network=policy) as box:
        where = Destination(url=_PLACE, seconds=2)
        _stays_inside(lab, box, _Going(mode, client, "https", where, site), urls)


@verifies(EGR_16)
@needs(opens=True, network="all")
@pytest.mark.usefixtures("given_addresses")
def test_no_datagram_reaches_a_private_address(inside: Inside, lab: Lab) -> None:
    """Under all() no UDP datagram reaches any part of any private range."""
    needs_of_lab(lab, "private", "packets")
    inside.proven("all", "udp")
    inside.private_reached()
    site = lab.site(addresses=CUTS)
    client, _ = inside.ways("all", "udp")[0]
    where = Destination(host=_PLACE, port=site.udp_port, payload=f"/{site.nonce}\n", seconds=1)
    box = inside.under(network=inside.target.Network.all())
    _stays_inside(lab, box, _Going("all", client, "udp", where, site), CUTS)
