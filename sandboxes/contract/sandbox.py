"""The frozen configuration of a sandbox, and what its constructor refuses.

A sandbox that cannot enforce what it was told must not exist: every refusal
happens here, before anything is created, started, called or sent.
"""

from __future__ import annotations

import importlib
from abc import ABCMeta, abstractmethod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from sandboxes.contract import messages
from sandboxes.contract.bindings import (
    BINDING_TYPES,
    AnyBinding,
    GitHubBinding,
    HeaderBinding,
    MistralApiBinding,
    WorkspaceHeaderBindings,
)
from sandboxes.contract.egress_policy import EgressPolicy
from sandboxes.contract.errors import MissingExtra, RefusedConfiguration
from sandboxes.contract.hooks import SandboxHook
from sandboxes.contract.network import Network, NetworkMode
from sandboxes.contract.values import entry_tuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from typing import NoReturn

    from sandboxes.contract.running import OpenRequest, RunningSandbox

AccessLevel = Literal["none", "files", "full"]
ACCESS_LEVELS: tuple[AccessLevel, ...] = get_args(AccessLevel)
"""From the narrowest to the widest."""


class _Frozen(ABCMeta):
    """Freezes an instance once its whole constructor, subclasses included, has run."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - any constructor passes through
        instance = super().__call__(*args, **kwargs)
        object.__setattr__(instance, "_frozen", True)
        return instance


class Sandbox(metaclass=_Frozen):
    """The options every sandbox takes: network, secrets, hooks, and the tools of the model.

    A type declares what it can enforce in class attributes; its constructor refuses
    the rest. What is declared is what a conformance run checks.

    Attributes:
        supported_access: The widest access level that the type serves.
        supported_network: The network modes that it can enforce.
        supported_header_bindings: The binding types that it can enforce.
        supports_background_processes: Commands may outlive `execute`, and the inside has
            `python3 -I` with socket and subprocess.
        has_processes: Commands are processes of an operating system.
        isolated: Commands do not see the host's files and processes, nor the environment of
            the process that opens the sandbox.
        blocks_private_addresses: Private and loopback addresses stay refused whatever
            the network allows.
        supports_resume: `RunningSandbox.detach` and `OpenRequest.resume` work.
        opens: Whether there is a sandbox to open at all; False only for one that runs
            nothing.
        needs_container_engine: It runs on Docker, at `DOCKER_HOST`: a conformance run has
            an engine of its own ready before the first instance is built.
        needs_cloud: It runs at the provider of `MistralSandbox`: a conformance run has a cloud
            of its own at that provider's names, with its token at `KOYEB_API_KEY`.
        network_type: The value type that `network` takes.
        egress_policy_type: The value type that `egress` takes, in a constructor that has it.
        header_binding_type: The value type that its users write header bindings with.
        github_binding_type: The value type that they write access to GitHub with.
        mistral_api_binding_type: The same for Mistral's API.
        optional_packages: Packages without which the constructor raises `MissingExtra`, by
            import name, each with the extra that brings it.
        network: The outbound connections that the sandbox can open.
        header_bindings: The credentials that join those connections.
        hooks: Code at the two ends of a session.
        access: Which sandbox tools the model gets.

    Args:
        network: `Network.none()` if None.
        header_bindings: Bindings of the supported types.
        hooks: Run in this order when the sandbox is ready, in reverse when it closes.
        access: The widest supported level if None.

    Raises:
        RefusedConfiguration: The type cannot enforce one of these, or a binding's hosts
            lie outside the network.
    """

    supported_access: ClassVar[AccessLevel] = "full"
    supported_network: ClassVar[frozenset[NetworkMode]] = frozenset({"none"})
    supported_header_bindings: ClassVar[frozenset[type[AnyBinding]]] = frozenset()
    # Facts; a backend may also set them per instance, before its constructor ends.
    supports_background_processes: bool = False
    has_processes: bool = True
    isolated: bool = True
    blocks_private_addresses: bool = False
    supports_resume: bool = False
    opens: ClassVar[bool] = True
    needs_container_engine: ClassVar[bool] = False
    needs_cloud: ClassVar[bool] = False
    network_type: ClassVar[type[Network]] = Network
    egress_policy_type: ClassVar[type[EgressPolicy]] = EgressPolicy
    header_binding_type: ClassVar[type[HeaderBinding]] = HeaderBinding
    github_binding_type: ClassVar[type[GitHubBinding]] = GitHubBinding
    mistral_api_binding_type: ClassVar[type[MistralApiBinding]] = MistralApiBinding
    optional_packages: ClassVar[Mapping[str, str]] = MappingProxyType({})

    network: Network
    header_bindings: tuple[AnyBinding, ...]
    hooks: tuple[SandboxHook, ...]
    access: AccessLevel

    def __init__(
        self,
        *,
        network: Network | None = None,
        header_bindings: Sequence[AnyBinding] = (),
        hooks: Sequence[SandboxHook] = (),
        access: AccessLevel | None = None,
    ) -> None:
        self.network = self._accept_network(network)
        self.access = self._accept_access(access)
        self.hooks = self._accept_hooks(hooks)
        self.header_bindings = self._accept_bindings(header_bindings)

    @abstractmethod
    def open(self, request: OpenRequest) -> AbstractAsyncContextManager[RunningSandbox]:
        """Create one sandbox, yield it ready to use, and delete it on every way out.

        Args:
            request: What this session brings: its id, secrets, identity.

        Raises:
            SandboxStartError: It could not be created; nothing of it is left.
        """

    def _accept_network(self, network: Network | None) -> Network:
        name = type(self).__name__
        if network is None:
            network = self.network_type.none()
        if not isinstance(network, self.network_type):
            self._wrong("network", network, "pass Network.none(), Network.all() or Network.allow()")
        if network.mode not in self.supported_network:
            raise RefusedConfiguration(
                messages.unsupported_network(name, network.mode, frozenset(self.supported_network))
            )
        return network

    def _accept_access(self, access: AccessLevel | None) -> AccessLevel:
        name = type(self).__name__
        if access is None:
            return self.supported_access
        if access not in ACCESS_LEVELS:
            self._wrong("access", access, 'pass "none", "files" or "full"')
        if ACCESS_LEVELS.index(access) > ACCESS_LEVELS.index(self.supported_access):
            raise RefusedConfiguration(
                messages.unsupported_access(name, access, self.supported_access)
            )
        return access

    def _accept_hooks(self, hooks: Sequence[SandboxHook]) -> tuple[SandboxHook, ...]:
        accepted = entry_tuple(f"{type(self).__name__}: hooks", hooks, "(MyHook(),)")
        for hook in accepted:
            if not isinstance(hook, SandboxHook):
                self._wrong("an entry of hooks", hook, "pass instances of agents.SandboxHook")
        return accepted

    def _accept_bindings(self, bindings: Sequence[AnyBinding]) -> tuple[AnyBinding, ...]:
        name = type(self).__name__
        accepted = entry_tuple(f"{name}: header_bindings", bindings, "(GitHubBinding(...),)")
        supported = sorted(kind.__name__ for kind in self.supported_header_bindings)
        for binding in accepted:
            if not isinstance(binding, BINDING_TYPES):
                self._wrong("an entry of header_bindings", binding, "pass a header binding")
            if not isinstance(binding, tuple(self.supported_header_bindings)):
                kind = type(binding).__name__
                raise RefusedConfiguration(messages.unsupported_binding(name, kind, supported))
            self._check_reachable(binding)
        return accepted

    def _check_reachable(self, binding: AnyBinding) -> None:
        blocked = [host for host in binding.hosts if not self.network.reaches(host)]
        if isinstance(binding, WorkspaceHeaderBindings) and self.network.mode == "none":
            blocked = ["the hosts of the workspace's rules"]
        if blocked:
            raise RefusedConfiguration(
                messages.unreachable_binding(
                    type(self).__name__, type(binding).__name__, blocked, self.network.mode
                )
            )

    def _check_packages(self) -> None:
        """Raise `MissingExtra` where an optional package is not installed."""
        for package, extra in self.optional_packages.items():
            try:
                importlib.import_module(package)
            except ImportError as error:
                raise MissingExtra(
                    messages.missing_extra(type(self).__name__, package, extra)
                ) from error

    def _wrong(self, option: str, got: object, remedy: str) -> NoReturn:
        raise RefusedConfiguration(messages.wrong_option(type(self).__name__, option, got, remedy))

    def __setattr__(self, name: str, value: object) -> None:
        if getattr(self, "_frozen", False):
            raise AttributeError(messages.frozen(type(self).__name__, name))
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if getattr(self, "_frozen", False):
            raise AttributeError(messages.frozen(type(self).__name__, name))
        super().__delattr__(name)

    def __repr__(self) -> str:
        shown = {"network": self.network, "access": self.access}
        options = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        return f"{type(self).__name__}({options})"
