"""MistralSandbox on a cloud that does not keep to its policies; the lab's witnesses tell."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from sandboxes import EgressPolicy, MistralSandbox, OpenRequest, SandboxStartError

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from tests.lab.clouds import RunningCloud


def session(cloud: RunningCloud, lab: Lab, monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    """Dial what is shut in a setup script, before everything else that is the user's."""
    site = lab.site()
    monkeypatch.setenv("KOYEB_API_KEY", cloud.token)
    script = f"(exec 3<>/dev/tcp/{site.address}/443) 2>/dev/null || true"
    box = MistralSandbox(
        egress=EgressPolicy.custom(allow_cidrs=("203.0.113.10",)),
        setup_script=script,
        wait_ready_timeout_seconds=seconds,
    )

    async def opened() -> None:
        async with box.open(OpenRequest(session_id="s")) as running:
            assert (await running.execute("echo on")).stdout == "on\n"

    try:
        asyncio.run(asyncio.wait_for(opened(), 90))
    finally:
        assert lab.seen(site) == []
        assert cloud.kinds() == []


def test_it_waits_for_a_policy_that_comes_late(
    lab: Lab, cloud: RunningCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.client.inject("late_policy", seconds=3.0)
    session(cloud, lab, monkeypatch, seconds=60)


def test_it_runs_nothing_under_a_policy_that_never_comes(
    lab: Lab, cloud: RunningCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.client.inject("no_policy")
    with pytest.raises(SandboxStartError, match="could be reached from inside"):
        session(cloud, lab, monkeypatch, seconds=8)
