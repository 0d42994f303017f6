"""What we ask of the cloud is what the provider's own client asks for, field by field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sandboxes import EgressPolicy
from sandboxes.mistral.definition import Plan, service_body

spec = pytest.importorskip(
    "koyeb.sandbox.spec", reason="koyeb-sdk is needed: pip install koyeb-sdk"
)

ONE: dict[str, Any] = {
    "name": "one",
    "image": "acme/one",
    "instance_type": "medium",
    "region": "nl-north-1",
    "ttl_seconds": 3600.0,
    "idle_timeout_seconds": 600.0,
    "light_sleep": False,
    "privileged": False,
    "docker_network": None,
    "mesh": False,
    "policy": EgressPolicy.block_all(),
}
RANGES = ("203.0.113.10", "10.0.0.0/8", "2001:db8::/32")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({}, {"block_network": True}),
        ({"policy": EgressPolicy.allow_all(), "mesh": True}, {"enable_mesh": True}),
        (
            {"policy": EgressPolicy.custom(allow_cidrs=RANGES), "privileged": True},
            {"outbound_allowlist": [*RANGES], "privileged": True},
        ),
        ({"light_sleep": True}, {"block_network": True, "enable_light_sleep": True}),
    ],
    ids=["none", "all and the mesh", "ranges and privileges", "light sleep"],
)
def test_it_is_the_same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    options = {"enable_mesh": False, **theirs}
    wanted = spec.SandboxSpec(
        name="one",
        image="acme/one",
        instance_type="medium",
        region="nl-north-1",
        delete_after_delay=3600,
        idle_timeout=600,
        **options,
    )
    wanted.apply_sandbox_secret("secret")
    sent = json.loads(json.dumps(wanted.create_service_payload("app"), default=str))
    assert service_body(Plan(**(ONE | ours)), "app", "secret") == sent
