"""What is asked of the cloud, and what it answers: the bodies of its calls, as plain values."""

from __future__ import annotations

import ipaddress
import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandboxes.contract import EgressPolicy

Json = dict[str, Any]

SECRET_VARIABLE = "SANDBOX_SECRET"  # noqa: S105 - the name of a variable
"""Where the executor inside finds the secret that its callers have to know."""

_EXECUTOR_PORT, _PUBLIC_PORT = 3030, 3031
# When one that sleeps lightly loses its memory as well.
_DEEP_SLEEP_SECONDS, _LEAST_LIGHT_SECONDS = 3900, 300
_DENY_ALL = "EGRESS_POLICY_MODE_DENY_ALL"
_MESH = {True: "DEPLOYMENT_MESH_ENABLED", False: "DEPLOYMENT_MESH_DISABLED"}

READY = frozenset({"HEALTHY", "DEGRADED"})
"""Statuses of a deployment that answers."""

IN_PROGRESS = frozenset({"PENDING", "PROVISIONING", "SCHEDULED", "ALLOCATING", "STARTING"})
"""Statuses on the way there; every other one is the end of it."""

ASLEEP = frozenset({"SLEEPING"})
"""Statuses of one that wakes when somebody calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a sandbox in the cloud is to be.

    Attributes:
        name: Of the app and the service; no other one has it.
        image: What it is made of.
        instance_type: Size of the machine.
        region: Where it is.
        ttl_seconds: When the cloud deletes it, if nobody else did.
        idle_timeout_seconds: How long nobody calls until it sleeps.
        light_sleep: Whether it keeps its memory when it sleeps.
        privileged: Whether it may run a Docker daemon.
        docker_network: The network of containers inside.
        mesh: Whether it is in the private network of the organization's services.
        policy: Which addresses it opens.
    """

    name: str
    image: str
    instance_type: str
    region: str
    ttl_seconds: float
    idle_timeout_seconds: float
    light_sleep: bool
    privileged: bool
    docker_network: str | None
    mesh: bool
    policy: EgressPolicy


def app_body(plan: Plan) -> Json:
    """The body that makes the app, which goes with its only service."""
    return {"name": plan.name, "life_cycle": {"delete_when_empty": True}}


def service_body(plan: Plan, app_id: str, secret: str) -> Json:
    """The body that makes the service, and so the sandbox."""
    definition: Json = {
        "name": plan.name,
        "type": "SANDBOX",
        "docker": {"image": plan.image, "privileged": plan.privileged},
        "env": [{"key": SECRET_VARIABLE, "value": secret}],
        "ports": [
            {"port": _EXECUTOR_PORT, "protocol": "http"},
            {"port": _PUBLIC_PORT, "protocol": "http"},
        ],
        "routes": [
            {"port": _EXECUTOR_PORT, "path": "/koyeb-sandbox/"},
            {"port": _PUBLIC_PORT, "path": "/"},
        ],
        "regions": [plan.region],
        "instance_types": [{"type": plan.instance_type}],
        # Always said: what the cloud chooses by itself is a second way out.
        "mesh": _MESH[plan.mesh],
        "scalings": [_scaling(plan)],
    }
    network_policy = _network_policy(plan.policy)
    if network_policy is not None:
        definition["network_policy"] = network_policy
    if plan.docker_network in ("host", "none"):
        definition["config_files"] = [_daemon_without_bridge()]
    return {
        "app_id": app_id,
        "name": plan.name,
        "life_cycle": {
            "delete_after_create": math.ceil(plan.ttl_seconds),
            "delete_after_sleep": 0,  # never for that
        },
        "definition": definition,
    }


def _scaling(plan: Plan) -> Json:
    idle = math.ceil(plan.idle_timeout_seconds)
    delay = {"deep_sleep_value": idle}
    if plan.light_sleep:
        deep = max(_DEEP_SLEEP_SECONDS, idle + _LEAST_LIGHT_SECONDS)
        delay = {"deep_sleep_value": deep, "light_sleep_value": idle}
    return {"min": 0, "max": 1, "targets": [{"sleep_idle_delay": delay}]}


def _network_policy(policy: EgressPolicy) -> Json | None:
    if policy.mode == "allow_all":
        return None
    egress: Json = {"mode": _DENY_ALL}
    if policy.ranges:
        egress["allow_list"] = [{"cidr": str(range_)} for range_ in policy.ranges]
    return {"egress": egress}


def _daemon_without_bridge() -> Json:
    # Containers then have the instance's network or none: there is no third one.
    content = json.dumps({"bridge": "none", "iptables": False})
    return {"path": "/etc/docker/daemon.json", "permissions": "0644", "content": content}


@dataclass(frozen=True, slots=True)
class Deployment:
    """What the cloud says of a deployment.

    Attributes:
        status: One word of it.
        said: The texts that go with it.
        definition: What it was made from.
        public_url: Where it is called; empty while nobody knows.
        routing_key: The header that calls carry.
    """

    status: str
    said: str = ""
    definition: Json = field(default_factory=dict, repr=False)
    public_url: str = ""
    routing_key: str = field(default="", repr=False)

    @classmethod
    def read(cls, body: Json) -> Deployment:
        """Take it from an answer; what is missing is empty."""
        one = _object(body, "deployment")
        place = _object(_object(one, "metadata"), "sandbox")
        said = one.get("messages")
        texts = [str(text) for text in said] if isinstance(said, list) else []
        return cls(
            status=str(one.get("status") or ""),
            said="; ".join(texts)[:300],
            definition=_object(one, "definition"),
            public_url=str(place.get("public_url") or ""),
            routing_key=str(place.get("routing_key") or ""),
        )

    @property
    def secret(self) -> str:
        """The secret of its executor; empty where there is none."""
        entries = self.definition.get("env")
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and entry.get("key") == SECRET_VARIABLE:
                return str(entry.get("value") or "")
        return ""


def _object(body: Json, key: str) -> Json:
    found = body.get(key) if isinstance(body, dict) else None
    return found if isinstance(found, dict) else {}


def weaker(live: Json, policy: EgressPolicy) -> str:
    """In which way a live definition opens more than a policy; empty where it does not.

    Args:
        live: The definition of a deployment.
        policy: What was written.
    """
    if policy.mode == "allow_all":
        return ""
    if live.get("mesh") != _MESH[False]:
        return "its mesh is not disabled"
    egress = _object(_object(live, "network_policy"), "egress")
    if egress.get("mode") != _DENY_ALL:
        return "its outbound traffic is not denied by default"
    listed = egress.get("allow_list") or []
    for entry in listed if isinstance(listed, list) else [listed]:
        text = entry.get("cidr") if isinstance(entry, dict) else entry
        try:
            opened = ipaddress.ip_network(str(text), strict=False)
        except ValueError:
            return f"it opens {text!r}, which is no range of addresses"
        if not _covered(opened, policy):
            return f"it opens {opened}"
    return ""


def _covered(opened: ipaddress.IPv4Network | ipaddress.IPv6Network, policy: EgressPolicy) -> bool:
    """Whether the ranges of a policy hold all of a range, be it in several of them."""
    same = [range_ for range_ in policy.ranges if range_.version == opened.version]
    merged = ipaddress.collapse_addresses(same)  # type: ignore[type-var] # one family
    return any(opened.subnet_of(range_) for range_ in merged)  # type: ignore[arg-type] # one family
