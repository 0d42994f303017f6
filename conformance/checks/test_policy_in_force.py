"""EGR: the policy is there before anything runs."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import pytest

from conformance.marks import alone, needs, verifies
from conformance.probes.clients import CLIENT_SECONDS
from conformance.probes.clouds import READY_SECONDS, judge_clear, raised, soon, watched
from conformance.probes.inside import connections, describe
from conformance.probes.places import destination
from conformance.requirements import EGR_31
from conformance.verdicts import NotApplicable, NotRun, Violation
from sandboxes.contract import SandboxCallbackContext, SandboxHook

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.lab.client import Lab
    from conformance.lab.cloud.faults import Kind
    from conformance.lab.sites import Site
    from conformance.probes.clients import Scheme
    from conformance.probes.inside import Inside
    from conformance.subject.targets import Target
    from sandboxes.contract import Network

Mode = Literal["none", "allow"]

both_modes = pytest.mark.parametrize(
    "mode",
    [
        pytest.param("none", marks=needs(network="none")),
        pytest.param("allow", marks=needs(network="allow")),
    ],
)

_SCHEMES: tuple[Scheme, ...] = ("https", "http", "tcp")
_LIMIT = CLIENT_SECONDS + 2.0

# How many commands a hook got through, by the token that it was constructed with.
_ran: dict[str, int] = {}


class Commander(SandboxHook):
    """Run commands as soon as the sandbox is ready."""

    def __init__(self, token: str, commands: list[str]) -> None:
        self.token = token
        self.commands = commands

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        """Run them in turn."""
        for command in self.commands:
            await ctx.sandbox.execute(command, timeout_seconds=_LIMIT)
            _ran[self.token] = _ran.get(self.token, 0) + 1


def _network(inside: Inside, mode: Mode, listed: Site) -> Network:
    network = inside.target.Network
    return network.none() if mode == "none" else network.allow(hosts=[listed.entry])


def _commands(
    inside: Inside, mode: Mode, site: Site, turn: int = 0, *, flip: bool = False
) -> list[str]:
    """Give a command for each protocol that goes to a site, another one in front each time.

    Every other one goes to its address, the others in the next turn or flipped: a filter of
    addresses and a resolver that is shut come into force at times of their own.
    """
    ways = {scheme: client for client, scheme in reversed(inside.ways(mode, *_SCHEMES))}
    lines = []
    for place, (scheme, client) in enumerate(ways.items()):
        host = site.address if (place + turn + flip) % 2 else ""
        lines.append(client.command(scheme, destination(scheme, site, host=host)))
    first = turn % len(lines)
    return lines[first:] + lines[:first]


@contextmanager
def _stays_shut(inside: Inside, lab: Lab, mode: Mode, when: str) -> Iterator[tuple[Site, Network]]:
    """Give a site to try in vain, and a policy under which a listed host is to be reached."""
    unlisted, listed = lab.site(), lab.site()
    network = _network(inside, mode, listed)
    yield unlisted, network
    inside.judge(
        connections(lab.seen(unlisted), unlisted),
        did=f"under {network.mode}(), {when}, it let a request out to {unlisted.name}, "
        f"which is {unlisted.address}",
        remedy="put the policy in force before the sandbox is handed out and runs anything",
    )


@verifies(EGR_31)
@needs(opens=True)
@both_modes
def test_the_policy_is_in_force_before_the_first_hook(inside: Inside, lab: Lab, mode: Mode) -> None:
    """What a hook runs in `on_create` is under the policy, from its first command on."""
    for turn in range(3):
        token = f"hook{secrets.token_hex(4)}"
        with _stays_shut(inside, lab, mode, "from a hook's on_create") as (site, network):
            commands = _commands(inside, mode, site, turn)
            hooks = (Commander(token, commands),)
            with inside.target.session(**inside.known({"network": network}), hooks=hooks):
                pass
        if _ran.get(token) != len(commands):
            raise NotRun("a hook's commands did not all run, so nothing can be told: see HOK-01")
    inside.proven(mode, *_SCHEMES)
    inside.control(site, "tcp")


@verifies(EGR_31)
@needs(opens=True)
@both_modes
def test_the_policy_is_in_force_before_the_first_command(
    inside: Inside, lab: Lab, mode: Mode
) -> None:
    """The first command of a session is under the policy, also in a second one like it."""
    for turn in range(3):
        with _stays_shut(inside, lab, mode, "from its first command") as (site, network):
            sandbox = inside.target.build(**inside.known({"network": network}))
            for by_address in (False, True):  # whatever protocol is in front
                first = _commands(inside, mode, site, turn, flip=by_address)[0]
                with inside.target.enter(sandbox) as box:
                    box.execute(first, timeout_seconds=_LIMIT)
    inside.proven(mode, *_SCHEMES)
    inside.control(site, "tcp")


@verifies(EGR_31)
@needs(opens=True, option="setup_script")
@both_modes
def test_the_policy_is_in_force_before_the_setup_script(
    inside: Inside, lab: Lab, mode: Mode
) -> None:
    """What the setup script runs is under the policy, from its first command on."""
    if inside.target.refusal(setup_script="true") is not None:
        raise NotApplicable("its setup_script is no text, but something of its own")
    for turn in range(2):
        with _stays_shut(inside, lab, mode, "from its setup script") as (site, network):
            script = "\n".join([*_commands(inside, mode, site, turn), "echo over > over.txt"])
            with inside.opened(network=network, setup_script=script) as box:
                over = box.execute("cat over.txt").stdout.strip()
        if over != "over":
            raise NotRun("the setup script did not run to its end: see LIF-11")
    inside.proven(mode, *_SCHEMES)
    inside.control(site, "tcp")


@verifies(EGR_31)
@needs(opens=True, network="allow")
def test_a_listed_host_is_open_to_the_first_hook(inside: Inside, lab: Lab) -> None:
    """What is in force in `on_create` is the policy itself, which opens what it lists."""
    site = lab.site()
    ways = inside.ways("allow", "https")
    commands = [client.command(one, destination(one, site)) for client, one in ways]
    hooks = (Commander(f"hook{secrets.token_hex(4)}", commands),)
    network = _network(inside, "allow", site)
    with inside.target.session(**inside.known({"network": network}), hooks=hooks):
        seen = connections(lab.seen(site), site)
    if not any(one.kind == "request" for one in seen):
        inside.control(site, "https")
        raise Violation(
            f"under {network!r} it refused a hook's on_create what is listed: "
            f"{'; '.join(map(repr, commands))}",
            saw=describe(seen),
            remedy="put the whole policy in force before hooks run, with what it opens",
        )


@verifies(EGR_31)
@needs(opens=True, cloud=True, network="none")
@alone
@pytest.mark.parametrize("custom", [False, True], ids=["shut", "custom"])
@pytest.mark.parametrize(("kind", "seconds"), [("late_policy", 1.5), ("no_policy", 0)])
def test_a_cloud_that_enforces_its_policy_late_is_waited_for(
    inside: Inside, lab: Lab, kind: Kind, seconds: float, custom: bool
) -> None:
    """Nothing runs in the time until a cloud enforces its policy, or where it never does."""
    target, site = inside.target, lab.site()
    options: dict[str, Any] = soon(target, 5 if seconds else READY_SECONDS)
    if custom and target.has_option("egress"):
        options["egress"] = target.EgressPolicy.custom(allow_cidrs=("203.0.113.0/24",))
    commands = _commands(inside, "none", site)
    if target.has_option("setup_script"):
        options["setup_script"] = "\n".join([*commands, "true"])
    hooks = (Commander(f"hook{secrets.token_hex(4)}", commands),)
    with watched(lab) as watch:
        watch.cloud.inject(kind, seconds=seconds)
        error = raised(lambda: _session(target, **options, hooks=hooks))
        found = connections(lab.seen(site), site)
    judge_clear(error, "under a policy that the cloud did not enforce")
    inside.judge(
        found,
        did=f"while the cloud did not enforce its policy yet ({kind}), it let a request out to "
        f"{site.name}, which is {site.address}",
        remedy="try from inside whether the policy is in force, before anything else runs there",
    )
    inside.proven("none", *_SCHEMES)
    inside.control(site, "tcp")


def _session(target: Target, **options: Any) -> None:  # noqa: ANN401 - a subject's own options
    with target.session(**options):
        pass
