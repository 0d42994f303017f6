"""EGR: what a refused request does to its command, to its session, and to the resolver outside."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import pytest

from conformance.bounds import BOUNDS
from conformance.marks import needs, verifies
from conformance.probes.inside import connections, needs_of_lab
from conformance.probes.places import destination, port_at
from conformance.probes.waits import ControlWait
from conformance.requirements import EGR_21, EGR_24, EGR_26
from conformance.verdicts import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.lab.client import Lab
    from conformance.lab.sites import Site
    from conformance.probes.clients import Client, Destination, Scheme
    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box
    from sandboxes.contract import Network

TIMED_OUT = 124
LIMIT = 1.0
# Longer than a command may be late: who waits for the client has ignored the limit.
PATIENCE = 6

Mode = Literal["none", "allow"]

both_modes = pytest.mark.parametrize(
    "mode",
    [
        pytest.param("none", marks=needs(network="none")),
        pytest.param("allow", marks=needs(network="allow")),
    ],
)


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that the policy refuses; `leading` is the first client of its scheme."""

    kind: Literal["unlisted name", "unlisted address", "other port"]
    site: Site
    client: Client
    scheme: Scheme
    where: Destination
    leading: bool


def _policy(inside: Inside, lab: Lab, mode: Mode) -> tuple[Network, Site]:
    """Give a policy of this mode, and the host that it lists if it lists one."""
    listed = lab.site()
    network = inside.target.Network
    return network.none() if mode == "none" else network.allow(hosts=[listed.entry]), listed


def _refused(
    inside: Inside, lab: Lab, mode: Mode, listed: Site, *schemes: Scheme
) -> Iterator[Refused]:
    """Give requests of every kind that is refused, by each client."""
    met: set[Scheme] = set()
    for client, scheme in inside.ways(mode, *schemes):
        other, leading = lab.site(), scheme not in met
        met.add(scheme)
        by_name, by_address = (
            destination(scheme, other, host=host) for host in (other.name, other.address)
        )
        port = {"https": port_at(listed, 8443), "http": port_at(listed, 80)}.get(scheme)
        elsewhere = destination(scheme, listed, port=port)
        yield Refused("unlisted name", other, client, scheme, by_name, leading)
        yield Refused("unlisted address", other, client, scheme, by_address, leading)
        yield Refused("other port", listed, client, scheme, elsewhere, leading)


@verifies(EGR_24)
@needs(opens=True)
@both_modes
def test_a_refused_request_ends_and_its_session_goes_on(
    inside: Inside, lab: Lab, mode: Mode
) -> None:
    """A refused request ends by itself, or at its limit with 124; the next command runs in time."""
    network, listed = _policy(inside, lab, mode)
    # Where refusals are silent each takes its limit, so there are few, and side by side.
    few = [
        one
        for one in _refused(inside, lab, mode, listed, "https", "tcp")
        if one.leading and (one.scheme == "https" or one.kind == "unlisted address")
    ]
    with ExitStack() as stack, ThreadPoolExecutor(len(few)) as pool:
        boxes = [stack.enter_context(inside.opened(network=network)) for _ in few]
        list(pool.map(_ends, boxes, few))
    inside.proven(mode, "https", "tcp")
    inside.control(listed, "https")


def _ends(box: Box, refused: Refused) -> None:
    patient = replace(refused.where, seconds=PATIENCE)
    command = refused.client.command(refused.scheme, patient)
    # One that ended about its limit by itself is not ended so by a longer one.
    for limit in (LIMIT, LIMIT + 1):
        control = ControlWait(limit)
        began = time.monotonic()
        result = box.execute(command, timeout_seconds=limit)
        took = time.monotonic() - began
        if result.exit_code == TIMED_OUT or took < limit * 0.95:
            break
        if took > limit + BOUNDS.slack:
            control.blame_the_sandbox()
            break
    if result.exit_code != TIMED_OUT and took >= limit * 0.95:
        raise Violation(
            f"the refused request {command!r} under timeout_seconds={limit} came back after "
            f"{took:.2f} s with exit code {result.exit_code}",
            remedy="refuse at once, or end the command at its limit with exit code 124",
        )
    control = ControlWait(LIMIT)
    began = time.monotonic()
    after = box.execute("echo still=$((40 + 2))", timeout_seconds=LIMIT + BOUNDS.slack)
    took = time.monotonic() - began
    if "still=42" not in after.stdout or took > LIMIT + BOUNDS.slack:
        control.blame_the_sandbox()
        raise Violation(
            f"after the refused request {command!r} the next command came back after {took:.2f} s "
            f"with exit code {after.exit_code} and stdout={after.stdout[:80]!r}",
            remedy="let a refusal end its own command, and nothing else of the session",
        )


# Of a policy speaks what says that something was not permitted, in whatever words.
_NAMES_THE_POLICY = re.compile(
    r"polic|allow|permit|denied|deny|forbid|block|prohibit|refus|reject|restrict|"
    r"network (access|is) (not|un|dis)|unreachable",
    re.IGNORECASE,
)


@verifies(EGR_26)
@needs(opens=True)
@both_modes
def test_a_refusal_is_visible_to_its_command(inside: Inside, lab: Lab, mode: Mode) -> None:
    """A refused request gives its command an exit code other than 0, or words on the policy."""
    network, listed = _policy(inside, lab, mode)
    with inside.opened(network=network) as box:
        # What only sends does not learn what became of it, so raw TCP is left out.
        for one in _refused(inside, lab, mode, listed, "https", "http"):
            if not one.leading and (one.scheme, one.kind) != ("https", "unlisted name"):
                continue  # it would show the same again
            known = len(lab.seen(one.site))
            ran = inside.attempt(box, one.client, one.scheme, one.where)
            arrived = connections(lab.seen(one.site)[known:], one.site)
            told = _NAMES_THE_POLICY.search(f"{ran.stdout}\n{ran.stderr}")
            if ran.exit_code == 0 and not told and not arrived:
                raise Violation(
                    f"under {mode}() it refused {ran.command!r} with exit code 0, "
                    f"stdout={ran.stdout[:80]!r} and stderr={ran.stderr[:80]!r}",
                    remedy="let a refused request fail, or say that the policy refuses it",
                )
    inside.proven(mode, "https", "http")
    inside.control(listed, "https")


@verifies(EGR_21)
@needs(opens=True, network="allow")
@pytest.mark.parametrize("used", [False, True], ids=["at first", "after a permitted request"])
@pytest.mark.parametrize(
    "name",
    ["{other}", "data.{other}", "data.{listed}", f"{'4d' * 31}.{{listed}}"],
    ids=["unlisted", "below an unlisted one", "below a listed one", "long, below a listed one"],
)
def test_no_name_that_is_not_listed_is_asked_outside(
    inside: Inside, lab: Lab, name: str, used: bool
) -> None:
    """Under allow() no name that is not listed is asked outside, be it one below a listed one."""
    needs_of_lab(lab, "dns", "names")
    listed = lab.site()
    with inside.opened(network=inside.target.Network.allow(hosts=[listed.entry])) as box:
        if used:
            inside.use(box, "allow", listed)
        for client, scheme in inside.ways("allow", "https", "http", "tcp", "udp", "dns"):
            other = lab.site()
            host = name.format(other=other.name, listed=listed.name)
            ran = inside.attempt(box, client, scheme, destination(scheme, other, host=host))
            asked = [*lab.seen(other), *lab.seen(listed)]
            inside.judge(
                [one for one in asked if one.kind == "dns" and one.name != listed.name],
                did=f"with only {listed.entry} listed it asked for the name that {ran} holds",
                remedy="compare names with the list before any of them is resolved",
            )
    inside.proven("allow", "https", "http", "dns")
    inside.control(other, "dns")
