"""What the public documents say of named classes: parameters, declarations, packages, sentences.

A sandbox is held to the row of the nearest class among its bases that bears a name of the
reference; every sandbox has one, since every sandbox is a `Sandbox`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    Parameters = Mapping[str, Any]


class _Required:
    def __repr__(self) -> str:
        return "no default"


REQUIRED: Final = _Required()
"""Stands for the default of a parameter that has none."""

SHARED: Parameters = MappingProxyType(
    {"network": None, "header_bindings": (), "hooks": (), "access": None}
)
"""The options that every sandbox takes, with their defaults."""


def _options(*none: str, without: tuple[str, ...] = (), **others: object) -> Parameters:
    shared = {name: default for name, default in SHARED.items() if name not in without}
    return MappingProxyType({**dict.fromkeys(none), **others, **shared})


def _needed(*names: str, **others: object) -> Parameters:
    return MappingProxyType({**dict.fromkeys(names, REQUIRED), **others})


_NO_BINDINGS = ("header_bindings",)

SANDBOXES: Mapping[str, Parameters] = MappingProxyType(
    {
        "Sandbox": SHARED,
        "NoSandbox": _needed(hooks=()),
        "BashkitSandbox": _options("instance_id", without=_NO_BINDINGS, block_private_ips=True),
        "DangerousLocalSandbox": _options(
            *("shell", "default_exec_timeout_seconds", "workspace", "delete_on_cleanup"),
            without=("network", "header_bindings"),
        ),
        "LocalDockerSandbox": _options(
            *("image", "supports_background_processes", "shell", "default_exec_timeout_seconds"),
            *("setup_script", "setup_script_timeout_seconds"),
            without=_NO_BINDINGS,
        ),
        "MistralSandbox": _options(
            *("image", "supports_background_processes", "instance_type", "region", "name_prefix"),
            *("ttl_seconds", "idle_timeout_seconds", "default_exec_timeout_seconds"),
            *("privileged", "docker_daemon_enabled", "docker_daemon_network_mode"),
            *("enable_light_sleep", "setup_script", "setup_script_timeout_seconds"),
            *("readiness_max_retries", "readiness_interval_seconds"),
            *("readiness_probe_timeout_seconds", "wait_ready_timeout_seconds", "enable_mesh"),
            *("egress", "pre_provisioned_sandbox_id"),
        ),
    }
)
"""The parameters of each sandbox class, all keyword-only, with their defaults."""

VALUES: Mapping[str, Parameters] = MappingProxyType(
    {
        "Network": _needed(mode="none", hosts=()),
        "Network.none": _needed(),
        "Network.all": _needed(),
        "Network.allow": _needed("hosts"),
        "Network.reaches": _needed("host"),
        "EgressPolicy": _needed(mode="block_all", allow_cidrs=()),
        "EgressPolicy.block_all": _needed(),
        "EgressPolicy.allow_all": _needed(),
        "EgressPolicy.custom": _needed("allow_cidrs"),
        "HeaderBinding": _needed(
            *("host", "header", "secret_name"), path_prefix="/", prefix="", suffix=""
        ),
        "GitHubBinding": _needed("repos", ttl_seconds=3600, host="github.com"),
        "MistralApiBinding": _needed(ttl_seconds=3600),
        "WorkspaceHeaderBindings": _needed(),
        "SandboxProxy": _needed("integrations"),
        "GitHubProxyConfig": _needed(
            repo_whitelist=(), all_accessible_repos=False, ttl_seconds=3600, host="github.com"
        ),
        "SecretInjectionProxyConfig": _needed(),
        "SandboxExecutionResult": _needed("exit_code", "stdout", "stderr"),
        "SandboxHook.to_unified_state": _needed(),
        "SandboxHook.from_unified_state": _needed("state"),
        "SandboxHook.on_create": _needed("ctx"),
        "SandboxHook.on_destroy": _needed("ctx"),
        "GitIdentity": _needed("name", "email"),
    }
)
"""The same for the values that sandboxes take and give, and for their methods."""

BY_PLACE = frozenset(
    {
        "Network.reaches",
        "SandboxExecutionResult",
        *("SandboxHook.from_unified_state", "SandboxHook.on_create", "SandboxHook.on_destroy"),
    }
)
"""Those whose parameters may be given by place as well, in this order."""

FURTHER: Mapping[str, Parameters] = MappingProxyType(
    {
        "MistralApiBinding": _needed(run_as="auto"),
        "MistralSandbox": _needed(sandbox_proxy=None),
    }
)
"""Keywords beside these that the documents name in other places, with their defaults."""

ENFORCED: Mapping[str, tuple[frozenset[str], frozenset[str]]] = MappingProxyType(
    {
        "NoSandbox": (frozenset({"none"}), frozenset()),
        "BashkitSandbox": (frozenset({"none", "all", "allow"}), frozenset()),
        "MistralSandbox": (
            frozenset({"none", "all"}),
            frozenset({"GitHubBinding", "MistralApiBinding", "WorkspaceHeaderBindings"}),
        ),
        "LocalDockerSandbox": (frozenset({"none", "all"}), frozenset()),
        "DangerousLocalSandbox": (frozenset({"all"}), frozenset()),
    }
)
"""The table of the network guide: the network modes and header bindings of each built-in."""

DEFAULT_LIMITS: Mapping[str, float] = MappingProxyType(
    {"BashkitSandbox": 300.0, "LocalDockerSandbox": 600.0, "DangerousLocalSandbox": 600.0}
)
"""The limit of a command that brings none, in seconds, where the documents name it."""

EXTRAS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "BashkitSandbox": {"bashkit": "bashkit"},
        "LocalDockerSandbox": {"docker": "docker"},
        "MistralSandbox": {"httpx": "mistral"},
    }
)
"""The optional packages of a built-in, by import name, with the extra that brings each."""

NETWORK_ISSUE = (
    "{sandbox} does not support Network.allow(); "
    "pass network=Network.none() or network=Network.all()"
)
BINDING_ISSUE = (
    "{sandbox}: agents.GitHubBinding needs network access to github.com, api.github.com, "
    "which Network.none() blocks; pass network=Network.all()"
)
"""The sentences under "Common issues" of the network guide, said there of `MistralSandbox`."""


def public_class(sandbox: type[Any]) -> type[Any]:
    """The nearest class among a sandbox and its bases that bears a name of the reference.

    Raises:
        LookupError: It is no sandbox at all.
    """
    for base in sandbox.__mro__:
        if base.__name__ in SANDBOXES:
            return base
    raise LookupError(f"{sandbox.__name__} derives from no class of the reference")


def is_a(sandbox: type[Any], name: str) -> bool:
    """Whether a sandbox or one of its bases bears a name."""
    return any(base.__name__ == name for base in sandbox.__mro__)
