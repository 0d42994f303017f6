"""The older spelling of header bindings: a proxy with integrations, each of which is a binding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from sandboxes.contract import messages
from sandboxes.contract.bindings import GitHubBinding, WorkspaceHeaderBindings
from sandboxes.contract.errors import RefusedConfiguration
from sandboxes.contract.values import entry_tuple

if TYPE_CHECKING:
    from sandboxes.contract.bindings import AnyBinding


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHubProxyConfig:
    """What `GitHubBinding` is now.

    Attributes:
        repo_whitelist: `owner/repository` names; an empty tuple grants nothing.
        all_accessible_repos: Whether every repository that the user can reach is granted,
            whatever `repo_whitelist` says.
        ttl_seconds: Lifetime in seconds within which the credential is renewed.
        host: Only `github.com`.

    Raises:
        RefusedConfiguration: An attribute is unusable.
    """

    repo_whitelist: tuple[str, ...] = ()
    all_accessible_repos: bool = False
    ttl_seconds: int = 3600
    host: str = "github.com"

    def __post_init__(self) -> None:
        listed = entry_tuple(
            "GitHubProxyConfig: repo_whitelist", self.repo_whitelist, "('owner/repository',)"
        )
        object.__setattr__(self, "repo_whitelist", listed)
        if not isinstance(self.all_accessible_repos, bool):
            raise RefusedConfiguration(
                messages.no_switch("GitHubProxyConfig: all_accessible_repos")
            )
        # Each name is looked at, also where the switch outranks the list.
        GitHubBinding(repos=listed, ttl_seconds=self.ttl_seconds, host=self.host)

    @property
    def binding(self) -> GitHubBinding:
        """The same in the spelling of now."""
        return GitHubBinding(
            repos="all" if self.all_accessible_repos else self.repo_whitelist,
            ttl_seconds=self.ttl_seconds,
            host=self.host,
        )


@dataclass(frozen=True, slots=True)
class SecretInjectionProxyConfig:
    """What `WorkspaceHeaderBindings` is now; it takes no options."""

    @property
    def binding(self) -> WorkspaceHeaderBindings:
        """The same in the spelling of now."""
        return WorkspaceHeaderBindings()


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxProxy:
    """What `header_bindings` is now.

    Attributes:
        integrations: `GitHubProxyConfig` and `SecretInjectionProxyConfig`, at most one of each.

    Raises:
        RefusedConfiguration: An integration is of another type, or there are two of one.
    """

    integration_types: ClassVar[
        tuple[type[GitHubProxyConfig], type[SecretInjectionProxyConfig]]
    ] = (
        GitHubProxyConfig,
        SecretInjectionProxyConfig,
    )

    integrations: tuple[GitHubProxyConfig | SecretInjectionProxyConfig, ...]

    def __post_init__(self) -> None:
        given = entry_tuple(
            "SandboxProxy: integrations", self.integrations, "(GitHubProxyConfig(...),)"
        )
        object.__setattr__(self, "integrations", given)
        for one in given:
            if not isinstance(one, self.integration_types):
                raise RefusedConfiguration(messages.wrong_integration(one))
        kinds = [type(one).__name__ for one in given]
        if twice := next((kind for kind in kinds if kinds.count(kind) > 1), ""):
            raise RefusedConfiguration(messages.integration_twice(twice))

    @property
    def header_bindings(self) -> tuple[AnyBinding, ...]:
        """The same in the spelling of now."""
        return tuple(one.binding for one in self.integrations)
