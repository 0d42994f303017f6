"""LIF: the script that makes a sandbox ready, before anybody uses it."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

from conformance.bounds import BOUNDS
from conformance.marks import alone, needs, verifies
from conformance.probes import hook_notes
from conformance.probes.hook_notes import happened, new_token, note
from conformance.probes.inside import connections
from conformance.probes.leftovers import counting
from conformance.probes.places import destination
from conformance.probes.waits import ControlWait
from conformance.requirements import EGR_05, LIF_10, LIF_11
from conformance.subject.blame import shown
from conformance.verdicts import NotRun, Violation
from sandboxes.contract import SandboxCallbackContext, SandboxHook

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.probes.inside import Inside
    from conformance.subject.targets import Target

_LIMIT = 1
_LONG_ENOUGH = 1.6


def _failure(target: Target, **options: object) -> Exception | None:
    try:
        with target.session(**options):  # type: ignore[arg-type] # a constructor's own options
            return None
    except Violation:
        raise
    except Exception as error:  # noqa: BLE001 - the caller looks at it
        return error


class Reading(SandboxHook):
    """Note what the setup script has left when the hooks begin."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        """Read its file."""
        result = await ctx.sandbox.execute(f"cat {self.token}.setup")
        note(self.token, result.stdout.strip())


@verifies(LIF_11)
@needs(opens=True, option="setup_script")
def test_the_setup_script_runs_once_before_the_hooks(target: Target) -> None:
    """The setup script runs once, and has ended when the first hook begins."""
    token = new_token()
    script = f"printf x >> {token}.setup; sleep 0.1; printf y >> {token}.setup"
    remedy = "run the script once, before the sandbox is yielded"
    with target.session(setup_script=script, hooks=(Reading(token),)) as box:
        happened(token, ["xy"], "behind the setup script", remedy)
        box.execute("true")
        after = box.execute(f"cat {token}.setup").stdout.strip()
    if after != "xy":
        raise Violation(f"later its file held {after!r} instead of 'xy'", remedy=remedy)


@verifies(LIF_11)
@needs(opens=True, option="setup_script")
@alone
def test_a_failing_setup_script_fails_the_session_with_its_output(target: Target, lab: Lab) -> None:
    """A failing setup script fails the session with its output, and leaves nothing."""
    token = new_token()
    script = f"echo out-{token}; echo err-{token} >&2; exit 3"
    remedy = "end open() by an error that has the script's output, and delete the sandbox"
    with counting(target, lab) as left:
        error = _failure(target, setup_script=script, hooks=(hook_notes.Noting(token),))
    if error is None:
        raise Violation("a session started though its setup script had failed", remedy=remedy)
    if f"out-{token}" not in str(error) or f"err-{token}" not in str(error):
        raise Violation(f"a failing setup script was told as {shown(error)}", remedy=remedy)
    happened(token, [], "behind a setup script that failed", remedy)
    left.judge("after a setup script that failed", remedy)


@verifies(LIF_10)
@needs(opens=True, option="setup_script_timeout_seconds")
def test_the_setup_script_has_a_limit_of_its_own(target: Target) -> None:
    """The setup script is ended at its own limit, and not before."""
    remedy = "end the setup script at setup_script_timeout_seconds, and at no other limit"
    control, began = ControlWait(_LIMIT), time.monotonic()
    error = _failure(target, setup_script="sleep 20", setup_script_timeout_seconds=_LIMIT)
    took = time.monotonic() - began
    if error is None or took > BOUNDS.execute(_LIMIT):
        control.blame_the_sandbox()
        ended = "started" if error is None else "failed"
        raise Violation(
            f"a session whose setup script has a limit of {_LIMIT} s {ended} after {took:.1f} s",
            remedy=remedy,
        )
    script = f"sleep {_LONG_ENOUGH}"
    if (
        early := _failure(target, setup_script=script, setup_script_timeout_seconds=30)
    ) is not None:
        raise Violation(f"{script!r} under a limit of 30 s failed: {shown(early)}", remedy=remedy)


@verifies(LIF_10, EGR_05)
@needs(opens=True, option="setup_script", network="none")
def test_the_setup_script_has_no_network_under_none(inside: Inside, lab: Lab) -> None:
    """Under none() nothing that the setup script does leaves the sandbox."""
    none = inside.known({"network": inside.target.Network.none()})
    ways = inside.ways("none", "https", "http", "tcp")
    # By its address too: where nobody answers for names there may still be a way out.
    for (client, scheme), by_name in itertools.product(ways, (True, False)):
        site = lab.site()
        host = "" if by_name else site.address
        command = client.command(scheme, destination(scheme, site, host=host))
        with inside.target.open(setup_script=f"{command}; true", **none):
            pass
        inside.judge(
            lab.seen(site),
            did=f"under Network.none() its setup script {command!r} left the sandbox",
            remedy="put the policy in force before the setup script runs",
        )
    inside.proven("none", "https", "http", "tcp")


@verifies(LIF_10)
@needs(opens=True, option="setup_script", network="allow")
def test_the_setup_script_has_the_network_of_its_session(inside: Inside, lab: Lab) -> None:
    """Under allow() the setup script reaches what is listed, and nothing else."""
    target, listed, other = inside.target, lab.site(), lab.site()
    client, scheme = inside.ways("allow", "https")[0]
    script = "; ".join(
        client.command(scheme, destination(scheme, site)) for site in (listed, other)
    )
    network = target.Network.allow(hosts=[listed.entry])
    with target.open(setup_script=f"{script}; true", network=network):
        pass
    if not connections(lab.seen(listed), listed):
        raise NotRun("a setup script did not reach what is listed, so a refusal shows nothing")
    inside.judge(
        connections(lab.seen(other), other),
        did="under Network.allow() its setup script reached what is not listed",
        remedy="put the policy in force before the setup script runs",
    )
