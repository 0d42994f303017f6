"""Sandboxes for AI agents: the contract, and reference backends that keep it.

    import sandboxes as agents

Backends load when they are first named, each with its own optional package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sandboxes.contract import (
    BackgroundProcessError,
    Depends,
    EgressPolicy,
    GitHubBinding,
    GitHubProxyConfig,
    HeaderBinding,
    InvalidSessionInput,
    MissingExtra,
    MistralApiBinding,
    Network,
    OpenRequest,
    RefusedConfiguration,
    RunningSandbox,
    Sandbox,
    SandboxCallbackContext,
    SandboxClosed,
    SandboxError,
    SandboxExecutionResult,
    SandboxHook,
    SandboxProxy,
    SandboxStartError,
    SecretInjectionProxyConfig,
    SessionFailed,
    SessionInput,
    SessionLimitReached,
    WorkspaceHeaderBindings,
)

if TYPE_CHECKING:
    from sandboxes import experimental, pattern
    from sandboxes.agent import Agent
    from sandboxes.bashkit_sandbox import BashkitSandbox
    from sandboxes.docker_sandbox import LocalDockerSandbox
    from sandboxes.local_sandbox import DangerousLocalHostWarning, DangerousLocalSandbox
    from sandboxes.mistral.sandbox import MistralSandbox
    from sandboxes.no_sandbox import NoSandbox
    from sandboxes.replay import now, sleep
    from sandboxes.runtime import local_runtime
    from sandboxes.session import Session
    from sandboxes.session_options import Limits

_LAZY = {
    "Agent": "sandboxes.agent",
    "BashkitSandbox": "sandboxes.bashkit_sandbox",
    "DangerousLocalHostWarning": "sandboxes.local_sandbox",
    "DangerousLocalSandbox": "sandboxes.local_sandbox",
    "Limits": "sandboxes.session_options",
    "LocalDockerSandbox": "sandboxes.docker_sandbox",
    "MistralSandbox": "sandboxes.mistral.sandbox",
    "NoSandbox": "sandboxes.no_sandbox",
    "Session": "sandboxes.session",
    "local_runtime": "sandboxes.runtime",
    "now": "sandboxes.replay",
    "sleep": "sandboxes.replay",
}
_LAZY_MODULES = ("experimental", "pattern")

__all__ = [
    "Agent",
    "BackgroundProcessError",
    "BashkitSandbox",
    "DangerousLocalHostWarning",
    "DangerousLocalSandbox",
    "Depends",
    "EgressPolicy",
    "GitHubBinding",
    "GitHubProxyConfig",
    "HeaderBinding",
    "InvalidSessionInput",
    "Limits",
    "LocalDockerSandbox",
    "MissingExtra",
    "MistralApiBinding",
    "MistralSandbox",
    "Network",
    "NoSandbox",
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
    "Session",
    "SessionFailed",
    "SessionInput",
    "SessionLimitReached",
    "WorkspaceHeaderBindings",
    "experimental",
    "local_runtime",
    "now",
    "pattern",
    "sleep",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class or a module, by its name
    """Load a backend or a public submodule when it is first named."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name in _LAZY_MODULES:
        return import_module(f"sandboxes.{name}")
    raise AttributeError(f"module 'sandboxes' has no attribute {name!r}")
