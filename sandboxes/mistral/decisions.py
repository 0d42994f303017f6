"""What the options of `MistralSandbox` mean together, decided here and not by the cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from sandboxes.contract import RefusedConfiguration, messages
from sandboxes.mistral.options import only_for_new_ones

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from sandboxes.contract import Network

    Chosen = dict[str, Any]

IMAGE = "koyeb/sandbox"
IMAGE_WITH_DOCKER = "koyeb/sandbox:dind"


class _HasNetwork(Protocol):
    network: Network


def decide(
    sandbox: str, chosen: Chosen, given: Mapping[str, object], configured: _HasNetwork
) -> None:
    """Settle what was left open, and refuse what contradicts itself.

    Args:
        sandbox: Name of the sandbox's class.
        chosen: The value of each option, which is changed.
        given: What the constructor got.
        configured: Has the network that was written.

    Raises:
        RefusedConfiguration: Two options cannot both be had.
    """
    for switch in ("docker_daemon_enabled", "enable_light_sleep", "enable_mesh"):
        chosen[switch] = bool(chosen[switch])
    _image(chosen)
    _docker(sandbox, chosen, given)
    if chosen["enable_mesh"] and configured.network.mode == "none":
        # A network of its own, which the filter of addresses does not see.
        _refuse(
            sandbox,
            "enable_mesh",
            "opens connections to the services of the mesh, which Network.none() blocks",
            "pass network=Network.all(), or leave it out",
        )
    if given["pre_provisioned_sandbox_id"] is not None and (names := only_for_new_ones(given)):
        _refuse(
            sandbox,
            "pre_provisioned_sandbox_id",
            f"names a sandbox that is made already, without {', '.join(names)}",
            "leave out one or the other",
        )


def _image(chosen: Chosen) -> None:
    if chosen["supports_background_processes"] is None:
        # Of an image that somebody else made nothing is known.
        chosen["supports_background_processes"] = chosen["image"] is None
    default = IMAGE_WITH_DOCKER if chosen["docker_daemon_enabled"] else IMAGE
    chosen["image"] = chosen["image"] or default


def _docker(sandbox: str, chosen: Chosen, given: Mapping[str, object]) -> None:
    """A daemon needs privileges; its containers leave through the instance, as all does."""
    if chosen["privileged"] is None:
        chosen["privileged"] = chosen["docker_daemon_enabled"]
    if chosen["docker_daemon_enabled"]:
        if not chosen["privileged"]:
            _refuse(
                sandbox,
                "docker_daemon_enabled",
                "needs privileges, and privileged is False",
                "pass privileged=True, or leave it out",
            )
        return
    if given["docker_daemon_network_mode"] is not None:
        _refuse(
            sandbox,
            "docker_daemon_network_mode",
            "is that of a Docker daemon, and there is none",
            "pass docker_daemon_enabled=True, or leave it out",
        )
    chosen["docker_daemon_network_mode"] = None


def _refuse(sandbox: str, option: str, fact: str, remedy: str) -> NoReturn:
    raise RefusedConfiguration(messages.unusable_option(sandbox, option, fact, remedy))
