"""EGR-05: the network policy binds all that runs in a session, not its commands alone."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

from conformance.marks import needs, verifies
from conformance.probes.at_work import at_work
from conformance.probes.clients import CLIENT_SECONDS
from conformance.probes.hook_notes import new_token, note, noted
from conformance.probes.inside import connections
from conformance.probes.places import Place, destination
from conformance.requirements import EGR_05
from conformance.verdicts import NotRun, Violation
from sandboxes.contract import SandboxCallbackContext, SandboxHook

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.lab.client import Lab
    from conformance.lab.sites import Site
    from conformance.probes.clients import Client, Scheme
    from conformance.probes.inside import Inside

_SECONDS = CLIENT_SECONDS + 2.0
_PLACES = (Place(4, by_name=True), Place(4, by_name=False))


def _ways(inside: Inside) -> list[tuple[Client, Scheme]]:
    """One client for each protocol: which of them is used is the other rules' to vary."""
    found = inside.ways("none", "https", "http", "tcp", "udp")
    return list({scheme: (client, scheme) for client, scheme in reversed(found)}.values())


class Fetching(SandboxHook):
    """Run some commands at each point."""

    def __init__(self, token: str, first: list[str], last: list[str]) -> None:
        self.token = token
        self.first = first
        self.last = last

    async def fetch(self, ctx: SandboxCallbackContext, commands: list[str]) -> None:
        """Run these, and note that they ran."""
        for command in commands:
            await ctx.sandbox.execute(command, timeout_seconds=_SECONDS)
            note(self.token, command)

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        """Run the first ones."""
        await self.fetch(ctx, self.first)

    async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
        """Run the last ones."""
        await self.fetch(ctx, self.last)


_REMEDY = "put the policy in force before on_create, and keep it until the sandbox is deleted"


def _through_hooks(
    inside: Inside, first: Sequence[str], last: Sequence[str], **options: object
) -> None:
    """Let a hook run commands at both points of a session."""
    token = new_token()
    hook = Fetching(token, list(first), list(last))
    with inside.target.session(hooks=(hook,), **options):  # type: ignore[arg-type] # the constructor's own
        pass
    if noted(token) != [*first, *last]:
        raise Violation(
            f"of the commands of a hook {len(noted(token))} ran", remedy="run every hook once"
        )


@verifies(EGR_05)
@needs(opens=True, network="none")
def test_commands_of_hooks_have_no_network_under_none(inside: Inside, lab: Lab) -> None:
    """Under none() no command of `on_create` or `on_destroy` leaves the sandbox."""
    none = inside.known({"network": inside.target.Network.none()})
    ways = _ways(inside)
    points: list[list[tuple[str, Site]]] = []
    for _ in ("on_create", "on_destroy"):
        tries = [(way, place, lab.site()) for way in ways for place in _PLACES]
        points.append(
            [
                (client.command(scheme, place.destination(scheme, site)), site)
                for (client, scheme), place, site in tries
            ]
        )
    first, last = ([command for command, _ in point] for point in points)
    _through_hooks(inside, first, last, **none)
    for name, point in zip(("on_create", "on_destroy"), points, strict=True):
        for command, site in point:
            did = f"under Network.none() {command[:120]!r} of {name} left the sandbox"
            inside.judge(lab.seen(site), did=did, remedy=_REMEDY)
    inside.proven("none", "https", "http", "tcp", "udp")


@verifies(EGR_05)
@needs(opens=True, network="allow")
def test_commands_of_hooks_reach_what_is_listed_alone(inside: Inside, lab: Lab) -> None:
    """Under allow() commands of hooks reach what is listed, and nothing else, at both points."""
    target = inside.target
    client, scheme = inside.ways("allow", "https")[0]
    listed, others = lab.site(), [(lab.site(), place) for place in (*_PLACES, *_PLACES)]
    allowed = client.command(scheme, destination(scheme, listed))
    tries = [client.command(scheme, place.destination(scheme, site)) for site, place in others]
    commands = [[allowed, *tries[:2]], [allowed, *tries[2:]]]
    network = target.Network.allow(hosts=[listed.entry])
    _through_hooks(inside, *commands, network=network)
    for other, _ in others:
        inside.judge(
            connections(lab.seen(other), other),
            did="under Network.allow() a command of a hook reached what is not listed",
            remedy=_REMEDY,
        )
    if not connections(lab.seen(listed), listed):
        raise NotRun("no command of a hook reached what is listed, so a refusal shows nothing")


_JOB_SECONDS = 0.6


@verifies(EGR_05)
@needs(opens=True, network="none")
def test_jobs_of_a_command_have_no_network_under_none(inside: Inside, lab: Lab) -> None:
    """Under none() nothing that a command left in the background leaves the sandbox."""
    none = inside.known({"network": inside.target.Network.none()})
    ways = _ways(inside)
    with inside.opened(**none) as box:
        sites = [lab.site() for _ in ways]
        jobs = [
            client.command(scheme, destination(scheme, site))
            for (client, scheme), site in zip(ways, sites, strict=True)
        ]
        late = "; ".join(f"(sleep 0.2; {job}) >/dev/null 2>&1 &" for job in jobs)
        box.execute(late.replace("&;", "&") + " true", timeout_seconds=_SECONDS)
        time.sleep(_JOB_SECONDS)
        for job, site in zip(jobs, sites, strict=True):
            did = f"under Network.none() a job left the sandbox by {job[:120]!r}"
            inside.judge(lab.seen(site), did=did, remedy="bind all processes of a sandbox")
    inside.proven("none", "https", "http", "tcp", "udp")


@verifies(EGR_05)
@needs(opens=True, network="none", background=True)
def test_background_processes_have_no_network_under_none(inside: Inside, lab: Lab) -> None:
    """Under none() no background process leaves the sandbox."""
    none = inside.known({"network": inside.target.Network.none()})
    site = lab.site()
    with at_work(inside.target, **none) as work:
        for client, scheme in _ways(inside):
            command = client.command(scheme, destination(scheme, site))
            process = work.start("sh", "-c", f"{command}; echo ended").id
            if work.until(process, lambda output: "ended" in output.text, _SECONDS) is None:
                raise NotRun(f"{shlex.quote(command)} did not end: see PRC-02")
    inside.judge(
        lab.seen(site),
        did="under Network.none() a background process left the sandbox",
        remedy="bind background processes as well",
    )
    inside.proven("none", "https", "http", "tcp", "udp")
