"""LIF-15: a sandbox that was made before is used as it is, and stays."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from conformance.marks import alone, needs, verifies
from conformance.probes.clouds import judge_clear, raised, soon, watched
from conformance.requirements import LIF_15
from conformance.subject.blame import shown
from conformance.verdicts import Violation
from sandboxes.contract import SandboxCallbackContext, SandboxHook

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.lab.client import Lab
    from conformance.lab.cloud.client import CloudClient
    from conformance.subject.targets import Target

_MODE = "EGRESS_POLICY_MODE_DENY_ALL"
_WRITTEN = ("203.0.113.0/24", "2001:db8::/32")
# The tokens of hooks that ran.
_ran: set[str] = set()


class Noting(SandboxHook):
    """Note that it ran, and then fail."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        """Run a command."""
        _ran.add(self.token)
        await ctx.sandbox.execute("true")
        raise RuntimeError("this hook fails")


def _policy(*ranges: str) -> dict[str, Any]:
    return {"egress": {"mode": _MODE, "allow_list": [{"cidr": one} for one in ranges]}}


@contextmanager
def _made(cloud: CloudClient, **definition: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    """Give the service of a sandbox that somebody made before, while the block runs."""
    service = cloud.provision(f"before-{secrets.token_hex(4)}", **definition)
    try:
        yield service
    finally:
        cloud.remove(service)


def _written(target: Target, ranges: tuple[str, ...]) -> dict[str, Any]:
    return {"egress": target.EgressPolicy.custom(allow_cidrs=ranges)} if ranges else {}


@verifies(LIF_15)
@needs(opens=True, cloud=True, option="pre_provisioned_sandbox_id", network="none")
@alone
@pytest.mark.parametrize(
    ("live", "written"),
    [
        pytest.param((), (), id="shut"),
        pytest.param(_WRITTEN, _WRITTEN, id="as written"),
        pytest.param(("203.0.113.128/25",), _WRITTEN, id="narrower"),
    ],
)
def test_one_that_was_made_before_is_used_and_stays(
    target: Target, lab: Lab, live: tuple[str, ...], written: tuple[str, ...]
) -> None:
    """A sandbox that was made before is used, not made anew, and not deleted."""
    place = f"/tmp/kept-{secrets.token_hex(4)}"  # noqa: S108 - inside
    with watched(lab) as outer, _made(outer.cloud, network_policy=_policy(*live)) as service:
        options = {"pre_provisioned_sandbox_id": service, **_written(target, written)}
        there = outer.cloud.inventory()
        with watched(lab) as watch:
            with target.session(**options) as box:
                box.write_file(place, b"kept")
            lost = raised(lambda: _read(target, options, place))
            raised(lambda: _use(target, options, "fails"))
            made = [row["target"] for row in watch.asked("POST", "/v1/")]
        left = outer.cloud.inventory()
    if made or lost is not None:
        fact = f"raised {shown(lost)}" if lost else "found what the first one wrote"
        raise Violation(
            "with pre_provisioned_sandbox_id it asked the cloud to make "
            f"{len(made) or 'no'} things, and a second session {fact}",
            remedy="run commands in the sandbox that was named",
        )
    if left != there:
        raise Violation(
            f"of the sandbox that was named {len(left)} of {len(there)} parts were left",
            remedy="delete only what the session made itself",
        )


def _read(target: Target, options: dict[str, Any], place: str) -> None:
    with target.session(**options) as box:
        box.read_file(place)


def _use(target: Target, options: dict[str, Any], token: str) -> None:
    with target.session(**options, hooks=(Noting(token),)):
        pass


_OPEN = {"network_policy": {"egress": {"mode": "EGRESS_POLICY_MODE_DEFAULT"}}}


@verifies(LIF_15)
@needs(opens=True, cloud=True, option="pre_provisioned_sandbox_id", network="none")
@alone
@pytest.mark.parametrize(
    ("live", "written"),
    [
        pytest.param(_OPEN, (), id="open"),
        pytest.param({"network_policy": _policy("198.51.100.7")}, (), id="one address"),
        pytest.param({"network_policy": _policy("203.0.112.0/23")}, _WRITTEN, id="wider"),
        pytest.param({"network_policy": _policy("2001:db8::/31")}, _WRITTEN, id="wider IPv6"),
        pytest.param({"mesh": "DEPLOYMENT_MESH_AUTO"}, (), id="mesh"),
    ],
)
def test_one_that_is_open_wider_is_refused(
    target: Target, lab: Lab, live: dict[str, Any], written: tuple[str, ...]
) -> None:
    """A sandbox whose live policy opens more than the one written is refused unused."""
    token = secrets.token_hex(4)
    with watched(lab) as watch, _made(watch.cloud, **live) as service:
        options = {"pre_provisioned_sandbox_id": service, **_written(target, written)}
        options |= soon(target)
        error = raised(lambda: _use(target, options, token))
        stays = any(row["id"] == service for row in watch.made())
    if token in _ran:
        raise Violation(
            f"built with {options} it ran a hook in a sandbox that is open wider: {live}",
            remedy="compare the live policy with the one written, before anything runs",
        )
    judge_clear(error, f"with a sandbox that is open wider ({live})")
    if not stays:
        raise Violation(
            "a sandbox that was named, and refused, was deleted",
            remedy="delete only what the session made itself",
        )
