"""Our client and the provider's own on one cloud, and our client on one that goes wrong."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from sandboxes import EgressPolicy, Network, OpenRequest, SandboxError
from sandboxes.mistral.sandbox import MistralSandbox
from tests.lab.clouds import forget_connections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.lab.client import Lab
    from tests.lab.clouds import RunningCloud

koyeb = pytest.importorskip("koyeb", reason="koyeb-sdk is needed: pip install koyeb-sdk")

_RANGES = ["203.0.113.10", "10.0.0.0/8", "2001:db8::/32"]
_SAME = {"instance_type": "small", "region": "nl-north-1", "image": "koyeb/sandbox"}


@pytest.fixture(autouse=True)
def _token(cloud: RunningCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("KOYEB_API_KEY", cloud.token)
    yield
    forget_connections(koyeb)


def run(sandbox: MistralSandbox, command: str) -> str:
    """Open a sandbox, run a command in it, and give what it printed."""

    async def session() -> str:
        async with sandbox.open(OpenRequest(session_id="s")) as running:
            return (await running.execute(command)).stdout

    return asyncio.run(session())


def bodies(cloud: RunningCloud) -> list[dict[str, Any]]:
    """Give what was sent to make an app and a service, without what differs each time."""
    posts = [row for row in cloud.client.requests() if row["method"] == "POST"]
    app, service = (row["body"] for row in posts[:2])
    definition = service["definition"]
    names = {service.pop("name"), definition.pop("name")}
    assert len(names) == 1
    for entry in definition["env"]:
        assert len(entry.pop("value")) >= 32
    # What the API takes for what is left out.
    definition["docker"].setdefault("privileged", False)
    service["life_cycle"].setdefault("delete_after_sleep", 0)
    del app["name"], service["app_id"]
    cloud.client.reset()
    return [app, service]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({}, {"block_network": True}),
        ({"network": Network.all()}, {}),
        (
            {"egress": EgressPolicy.custom(allow_cidrs=_RANGES)},
            {"outbound_allowlist": _RANGES},
        ),
        (
            {"idle_timeout_seconds": 600, "enable_light_sleep": True, "privileged": True},
            {"block_network": True, "idle_timeout": 600, "privileged": True,
             "_experimental_enable_light_sleep": True},
        ),
    ],
)  # fmt: skip
def test_our_client_sends_what_the_providers_own_does(
    cloud: RunningCloud, ours: dict[str, Any], theirs: dict[str, Any]
) -> None:
    limits = {"ttl_seconds": 3600, "idle_timeout_seconds": 300}
    assert run(MistralSandbox(**{**_SAME, **limits, **ours}), "echo hi") == "hi\n"
    sent = bodies(cloud)
    theirs = {"idle_timeout": 300, "delete_after_delay": 3600, "enable_mesh": False, **theirs}
    koyeb.Sandbox.create(api_token=cloud.token, name="one", timeout=30, **_SAME, **theirs)
    assert sent == bodies(cloud)


_FAULTS: list[tuple[str, str, dict[str, Any]]] = [
    *(("status", "POST /v1/apps", {"status": status}) for status in (401, 429)),
    *(("status", "POST /v1/services", {"status": status}) for status in (403, 503)),
    ("status", "GET /v1/deployments", {"status": 403}),
    ("status", "/koyeb-sandbox/health", {"status": 503}),
    ("status", "/koyeb-sandbox/run", {"status": 401}),
    ("reset", "POST /v1/services", {}),
    ("lose_reply", "/koyeb-sandbox/run", {}),
    ("slow", "POST /v1/services", {"seconds": 3}),
    ("dies", "/koyeb-sandbox/run", {}),
    ("never_ready", "", {}),
    ("broken", "", {}),
    ("no_policy", "", {}),
]


@pytest.mark.parametrize(("kind", "where", "how"), _FAULTS)
def test_whatever_goes_wrong_is_told_and_nothing_is_left(
    cloud: RunningCloud, kind: Any, where: str, how: dict[str, Any]
) -> None:
    cloud.client.inject(kind, where, **how)
    with pytest.raises(SandboxError) as failure:
        run(MistralSandbox(wait_ready_timeout_seconds=2), "echo hi")
    assert cloud.kinds() == []
    assert cloud.token not in repr(failure.value)


@pytest.mark.parametrize(
    ("kind", "where", "how"),
    [
        ("status", "GET", {"every": 2}),
        ("status", "GET", {"status": 429, "times": 1}),
        ("lose_reply", "POST /v1/apps", {"times": 1}),
        ("lose_reply", "POST /v1/services", {}),
        ("lose_reply", "DELETE", {"times": 1}),
        ("status", "DELETE", {"status": 503, "times": 2}),
        ("reset", "GET", {"times": 1}),
    ],
)
def test_what_goes_wrong_for_a_moment_is_got_over(
    cloud: RunningCloud, kind: Any, where: str, how: dict[str, Any]
) -> None:
    cloud.client.inject(kind, where, **how)
    assert run(MistralSandbox(), "echo hi") == "hi\n"
    assert cloud.kinds() == []


def test_no_command_runs_before_a_late_policy_holds(lab: Lab, cloud: RunningCloud) -> None:
    site = lab.site()
    cloud.client.inject("late_policy", seconds=2)
    dial = f"python3 -c 'import socket; socket.create_connection((\"{site.address}\", 5432), 5)'"
    assert run(MistralSandbox(), f"{dial} 2>&-; echo $?") == "1\n"
    assert lab.seen(site) == []
