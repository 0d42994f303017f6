"""Header bindings: credentials that join a sandbox's requests after they left it.

A binding says where a credential goes; the value itself is never part of the
configuration and never enters the sandbox.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from sandboxes.contract import messages
from sandboxes.contract.errors import InvalidHostEntry, RefusedConfiguration
from sandboxes.contract.network import HostEntry
from sandboxes.contract.values import entry_tuple

GITHUB_HOSTS = ("github.com", "api.github.com")
MISTRAL_API_HOST = "api.mistral.ai"

# RFC 9110, section 5.6.2: a header name is a token.
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# No name that a path resolves away, and none with the ending that git adds to one.
_REPOSITORY = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}/(?!\.{1,2}\Z)(?!.*\.git\Z)[A-Za-z0-9._-]{1,100}",
    re.IGNORECASE,
)


def _check_ttl(binding: object, seconds: object) -> None:
    if not isinstance(seconds, int) or isinstance(seconds, bool) or seconds <= 0:
        raise RefusedConfiguration(messages.wrong_lifetime(type(binding).__name__))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderBinding:
    """Add a secret to the HTTPS requests that a sandbox sends to one host.

    Attributes:
        host: A `host[:port]` entry.
        header: Name of the header that is added.
        secret_name: Which of the agent's secrets is its value.
        path_prefix: Where on the host it is added; begins with `/`.
        prefix: Text before the secret, such as `"Bearer "`.
        suffix: Text after the secret.

    Raises:
        InvalidHostEntry: `host` is no `host[:port]` entry.
        RefusedConfiguration: Another attribute is unusable.
    """

    host: str
    header: str
    secret_name: str
    path_prefix: str = "/"
    prefix: str = ""
    suffix: str = ""

    def __post_init__(self) -> None:
        try:
            HostEntry.parse(self.host)
        except InvalidHostEntry as error:
            raise InvalidHostEntry(messages.of_a_part("HeaderBinding", str(error))) from None
        if not isinstance(self.header, str) or not _TOKEN.fullmatch(self.header):
            raise RefusedConfiguration(messages.wrong_header_name())
        if not isinstance(self.secret_name, str) or not self.secret_name:
            raise RefusedConfiguration(messages.empty_secret_name())
        if not isinstance(self.path_prefix, str) or not self.path_prefix.startswith("/"):
            raise RefusedConfiguration(messages.wrong_path_prefix())
        for option in ("path_prefix", "prefix", "suffix"):
            text = getattr(self, option)
            if not isinstance(text, str) or any(character in text for character in "\r\n\0"):
                raise RefusedConfiguration(messages.several_lines(option))

    @property
    def hosts(self) -> tuple[str, ...]:
        """The entries that the network must reach."""
        return (self.host,)


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHubBinding:
    """Give a sandbox git and GitHub API access as the session user.

    Attributes:
        repos: `owner/repository` names, or `"all"` that the user can reach; an empty
            tuple grants nothing.
        ttl_seconds: Lifetime in seconds within which the credential is renewed.
        host: Only `github.com`.

    Raises:
        RefusedConfiguration: An attribute is unusable.
    """

    repos: tuple[str, ...] | Literal["all"]
    ttl_seconds: int = 3600
    host: str = "github.com"

    def __post_init__(self) -> None:
        if self.repos != "all":
            repos = entry_tuple("GitHubBinding: repos", self.repos, "('owner/repository',)")
            object.__setattr__(self, "repos", repos)
            for repo in repos:
                if not isinstance(repo, str) or not _REPOSITORY.fullmatch(repo):
                    raise RefusedConfiguration(messages.wrong_repository(repo))
        if self.host != "github.com":
            raise RefusedConfiguration(messages.unsupported_github_host(self.host))
        _check_ttl(self, self.ttl_seconds)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The entries that the network must reach."""
        return GITHUB_HOSTS


@dataclass(frozen=True, slots=True, kw_only=True)
class MistralApiBinding:
    """Give a sandbox Mistral API access as the session user.

    Attributes:
        ttl_seconds: Lifetime in seconds within which the credential is renewed.
        run_as: Whose identity it is; `"auto"` is the only value.

    Raises:
        RefusedConfiguration: An attribute is unusable.
    """

    ttl_seconds: int = 3600
    run_as: Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        _check_ttl(self, self.ttl_seconds)
        if self.run_as != "auto":
            raise RefusedConfiguration(messages.unknown_run_as(self.run_as))

    @property
    def hosts(self) -> tuple[str, ...]:
        """The entries that the network must reach."""
        return (MISTRAL_API_HOST,)


@dataclass(frozen=True, slots=True)
class WorkspaceHeaderBindings:
    """Apply the header rules that a workspace admin stored in Sandbox Proxy."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """None in particular: the rules, and so their hosts, are not in the configuration."""
        return ()


def acts_as_user(binding: AnyBinding) -> bool:
    """Whether what a binding adds is the session user's own, and not one of the agent's secrets."""
    return not isinstance(binding, HeaderBinding)


AnyBinding = HeaderBinding | GitHubBinding | MistralApiBinding | WorkspaceHeaderBindings
BINDING_TYPES: tuple[type[AnyBinding], ...] = (
    HeaderBinding,
    GitHubBinding,
    MistralApiBinding,
    WorkspaceHeaderBindings,
)
