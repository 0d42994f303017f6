"""Options of a sandbox in the cloud, and texts of the variables that give their defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Defaulted:
    """An option whose value the cloud is asked for.

    Attributes:
        name: Of the option.
        text: What its variable holds.
        value: What that stands for.
        other: Another value.
        beside: What has to be passed with it.
    """

    name: str
    text: str
    value: Any
    other: Any
    beside: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


_DAEMON: Mapping[str, Any] = MappingProxyType({"docker_daemon_enabled": True})

ASKED_FOR = (
    Defaulted("image", "acme/one", "acme/one", "acme/two"),
    Defaulted("instance_type", "small", "small", "large"),
    Defaulted("region", "na", "na", "eu"),
    Defaulted("name_prefix", "acme", "acme", "other"),
    Defaulted("ttl_seconds", "7200", 7200, 5400),
    Defaulted("idle_timeout_seconds", "900", 900, 1200),
    Defaulted("privileged", "true", True, False),
    Defaulted("docker_daemon_enabled", "true", True, False),
    Defaulted("docker_daemon_network_mode", "host", "host", "none", _DAEMON),
    Defaulted("enable_light_sleep", "true", True, False),
    Defaulted("enable_mesh", "true", True, False),
)

NEVER = MappingProxyType(
    {
        "supports_background_processes": "false",
        "network": "all",
        "egress": "10.0.0.0/8",
        "header_bindings": "github",
        "hooks": "git",
        "access": "none",
    }
)
"""The six options that have no variable, with a text that would change each."""

NUMBERS = (
    *("ttl_seconds", "idle_timeout_seconds", "default_exec_timeout_seconds"),
    *("setup_script_timeout_seconds", "readiness_max_retries", "readiness_interval_seconds"),
    *("readiness_probe_timeout_seconds", "wait_ready_timeout_seconds"),
)
_SWITCHES = ("privileged", "docker_daemon_enabled", "enable_light_sleep", "enable_mesh")

UNREADABLE = (
    *((name, "soon") for name in NUMBERS),
    *((name, "perhaps") for name in _SWITCHES),
    *(("ttl_seconds", text) for text in ("-1", "0", "nan", "1 hour", "")),
)
"""An option, and a text that cannot be its default."""

# No number in any notation, and none of the words for one that a parser may know.
unreadable = st.tuples(
    st.sampled_from(NUMBERS), st.text("bghjklmpqrsvwz-: ", min_size=1, max_size=8)
)
