"""Sandboxes for AI agents: the contract, and reference backends that keep it.

    import sandboxes as agents

Backends load when they are first named, each with its own optional package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sandboxes.contract import (
    EgressPolicy,
    GitHubBinding,
    HeaderBinding,
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
    SandboxStartError,
    WorkspaceHeaderBindings,
)

if TYPE_CHECKING:
    from sandboxes import experimental, pattern
    from sandboxes.agent import Agent
    from sandboxes.bashkit_sandbox import BashkitSandbox
    from sandboxes.no_sandbox import NoSandbox
    from sandboxes.session import Session

_LAZY = {
    "Agent": "sandboxes.agent",
    "BashkitSandbox": "sandboxes.bashkit_sandbox",
    "NoSandbox": "sandboxes.no_sandbox",
    "Session": "sandboxes.session",
}
_LAZY_MODULES = ("experimental", "pattern")

__all__ = [
    "Agent",
    "BashkitSandbox",
    "EgressPolicy",
    "GitHubBinding",
    "HeaderBinding",
    "MissingExtra",
    "MistralApiBinding",
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
    "SandboxStartError",
    "Session",
    "WorkspaceHeaderBindings",
    "experimental",
    "pattern",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class or a module, by its name
    """Load a backend or a public submodule when it is first named."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name in _LAZY_MODULES:
        return import_module(f"sandboxes.{name}")
    raise AttributeError(f"module 'sandboxes' has no attribute {name!r}")
