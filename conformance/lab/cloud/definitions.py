"""What the control plane accepts, and what a definition lets an instance reach."""

from __future__ import annotations

from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

from conformance.lab import addresses

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]
EVERYTHING = ("0.0.0.0/0", "::/0")
SECRET = "SANDBOX_SECRET"  # noqa: S105 - the name of a variable
MESH_DISABLED = "DEPLOYMENT_MESH_DISABLED"
DENY_ALL = "EGRESS_POLICY_MODE_DENY_ALL"
_MODES = ("EGRESS_POLICY_MODE_DEFAULT", DENY_ALL)
_MESHES = ("DEPLOYMENT_MESH_AUTO", "DEPLOYMENT_MESH_ENABLED", MESH_DISABLED)
# Regions of the older kind know no network policies.
OLD_REGIONS = ("fra", "was", "sin", "par", "tyo", "sfo")
REGIONS = ("na", "eu", "ap", "nl-north-1", *OLD_REGIONS)
INSTANCE_TYPES = ("nano", "micro", "small", "medium", "large", "xlarge", "2xlarge", "3xlarge",
                  "4xlarge", "5xlarge", "eco-nano", "eco-micro", "eco-small", "eco-medium",
                  "eco-large", "eco-xlarge", "eco-2xlarge")  # fmt: skip


def wrong_fields(definition: Json) -> dict[str, str]:
    """Give what is wrong with each field of a definition; nothing where it is accepted."""
    return dict(_wrong(definition))


def _wrong(definition: Json) -> Iterator[tuple[str, str]]:
    if definition.get("type") != "SANDBOX":
        yield "definition.type", "only SANDBOX is served here"
    if not isinstance(definition.get("name"), str) or not definition["name"]:
        yield "definition.name", "required"
    if not (definition.get("docker") or {}).get("image"):
        yield "definition.docker.image", "required"
    if definition.get("mesh", _MESHES[0]) not in _MESHES:
        yield "definition.mesh", "unknown value"
    regions = definition.get("regions") or []
    if not regions or any(region not in REGIONS for region in regions):
        yield "definition.regions", f"must be of {', '.join(REGIONS)}"
    types = [entry.get("type") for entry in definition.get("instance_types") or []]
    if not types or any(
        kind not in INSTANCE_TYPES and not str(kind).startswith("gpu-") for kind in types
    ):
        yield "definition.instance_types", "unknown instance type"
    yield from _wrong_policy(definition, regions)


def _wrong_policy(definition: Json, regions: list[str]) -> Iterator[tuple[str, str]]:
    if "network_policy" not in definition:
        return
    egress = (definition["network_policy"] or {}).get("egress") or {}
    if any(region in OLD_REGIONS for region in regions):
        yield "definition.network_policy", "not supported in this region"
    if egress.get("mode", _MODES[0]) not in _MODES:
        yield "definition.network_policy.egress.mode", "unknown value"
    for entry in egress.get("allow_list") or []:
        try:
            ip_network(str(entry.get("cidr")), strict=False)
        except ValueError:
            yield "definition.network_policy.egress.allow_list", "invalid CIDR"


def made_before(name: str) -> Json:
    """Give the definition of a sandbox that opens nothing, as somebody may have made it."""
    return {
        "name": name,
        "type": "SANDBOX",
        "docker": {"image": "koyeb/sandbox"},
        "env": [{"key": SECRET, "value": f"secret-of-{name}"}],
        "regions": ["nl-north-1"],
        "instance_types": [{"type": "micro"}],
        "mesh": MESH_DISABLED,
        "network_policy": {"egress": {"mode": DENY_ALL}},
    }


def ranges_of(definition: Json) -> tuple[str, ...]:
    """Give what a definition lets an instance reach, its organization's mesh included."""
    mesh = () if definition.get("mesh") == MESH_DISABLED else addresses.MESH
    egress = (definition.get("network_policy") or {}).get("egress") or {}
    if egress.get("mode") != DENY_ALL:
        return (*EVERYTHING, *mesh)
    return (*(str(entry["cidr"]) for entry in egress.get("allow_list") or []), *mesh)


def idle_seconds(definition: Json) -> float | None:
    """Give after how long without a call an instance loses what it holds; None for never."""
    scaling = (definition.get("scalings") or [{}])[0]
    delays = [target.get("sleep_idle_delay") or {} for target in scaling.get("targets") or []]
    found = [float(delay["deep_sleep_value"]) for delay in delays if delay.get("deep_sleep_value")]
    return found[0] if found and not scaling.get("min") else None


def environ_of(definition: Json) -> dict[str, str]:
    """Give the variables that a definition sets by value."""
    rows = definition.get("env") or []
    return {str(row["key"]): str(row["value"]) for row in rows if row.get("value") is not None}
