"""The contract between an agent and its sandbox: what a third party implements."""

from sandboxes.contract.bindings import (
    BINDING_TYPES,
    AnyBinding,
    GitHubBinding,
    HeaderBinding,
    MistralApiBinding,
    WorkspaceHeaderBindings,
    acts_as_user,
)
from sandboxes.contract.egress_policy import EgressPolicy
from sandboxes.contract.errors import (
    BackgroundProcessError,
    InvalidHostEntry,
    InvalidSessionInput,
    MissingExtra,
    RefusedConfiguration,
    SandboxClosed,
    SandboxError,
    SandboxStartError,
    SessionFailed,
    SessionLimitReached,
)
from sandboxes.contract.hooks import SandboxCallbackContext, SandboxHook
from sandboxes.contract.inputs import Depends, SessionInput
from sandboxes.contract.network import HostEntry, Network, NetworkMode
from sandboxes.contract.proxy_configs import (
    GitHubProxyConfig,
    SandboxProxy,
    SecretInjectionProxyConfig,
)
from sandboxes.contract.running import OpenRequest, RunningSandbox, SandboxExecutionResult
from sandboxes.contract.sandbox import ACCESS_LEVELS, AccessLevel, Sandbox

__all__ = [
    "ACCESS_LEVELS",
    "BINDING_TYPES",
    "AccessLevel",
    "AnyBinding",
    "BackgroundProcessError",
    "Depends",
    "EgressPolicy",
    "GitHubBinding",
    "GitHubProxyConfig",
    "HeaderBinding",
    "HostEntry",
    "InvalidHostEntry",
    "InvalidSessionInput",
    "MissingExtra",
    "MistralApiBinding",
    "Network",
    "NetworkMode",
    "OpenRequest",
    "RefusedConfiguration",
    "RunningSandbox",
    "Sandbox",
    "SandboxCallbackContext",
    "SandboxClosed",
    "SandboxError",
    "SandboxExecutionResult",
    "SandboxHook",
    "SandboxProxy",
    "SandboxStartError",
    "SecretInjectionProxyConfig",
    "SessionFailed",
    "SessionInput",
    "SessionLimitReached",
    "WorkspaceHeaderBindings",
    "acts_as_user",
]
