"""Sandbox Proxy as checks see it: who may use it, what goes wrong for whom, and what it saw."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.lab.control_socket import ask
from conformance.lab.sandbox_proxy.identities import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.lab.sandbox_proxy.identities import Kind, Rule


@dataclass(frozen=True)
class User:
    """A user whom a check made; everything of it is for this user alone.

    Args:
        name: unique in the run.
        credential: the user's API key.
        github_token: what the user's GitHub connector has.
    """

    name: str
    credential: str = field(repr=False)
    github_token: str = field(default="", repr=False)
    proxy: SandboxProxyClient = field(repr=False, compare=False, kw_only=True)

    def store(self, *rules: Rule) -> None:
        """Put these rules in the place of those of the user's workspace."""
        self.proxy.ask("rules", identity=self.name, rules=[rule.to_wire() for rule in rules])

    def connect(self, repositories: Sequence[str] | None) -> None:
        """Let the user's GitHub connector reach these repositories; all if None."""
        listed = None if repositories is None else list(repositories)
        self.proxy.ask("connect", identity=self.name, repositories=listed)

    def inject(
        self, kind: Kind, *, status: int = 503, seconds: float = 0.0, times: int | None = None
    ) -> None:
        """Have something go wrong from now on; see `Fault`."""
        fault = Fault(kind=kind, status=status, seconds=seconds, times=times)
        self.proxy.ask("inject", identity=self.name, **fault.to_wire())

    @contextmanager
    def broken(self, kind: Kind, **how: Any) -> Iterator[None]:  # noqa: ANN401 - see `Fault`
        """Have something go wrong within a block; see `Fault`."""
        self.inject(kind, **how)
        try:
            yield
        finally:
            self.mend()

    def mend(self) -> None:
        """Have nothing go wrong any more."""
        self.proxy.ask("mend", identity=self.name)

    def end_sessions(self) -> None:
        """Let the time of all that was handed out to the user be up."""
        self.proxy.ask("end", identity=self.name)

    def bootstraps(self) -> list[dict[str, Any]]:
        """Give the bootstraps of the user: `authorization`, `body`, `status`, `session`."""
        return self._own("bootstraps", "identity")

    def requests(self) -> list[dict[str, Any]]:
        """Give what Mistral's API was asked as the user: `method`, `target`, `headers`."""
        return self._own("requests", "user")

    def connections(self) -> list[dict[str, Any]]:
        """Give what the proxy was asked with the user's sessions: `method`, `target`, `session`."""
        return self._own("connections", "identity")

    def _own(self, what: str, key: str) -> list[dict[str, Any]]:
        return [row for row in self.proxy.rows(what) if row[key] == self.name]


class SandboxProxyClient:
    """The lab's running Sandbox Proxy.

    Args:
        path: its control socket.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def user(
        self,
        *,
        rules: Sequence[Rule] = (),
        repositories: Sequence[str] | None = (),
        github_token: str = "",
    ) -> User:
        """Make a user.

        Args:
            rules: what is stored for the user's workspace.
            repositories: what the user's GitHub connector reaches; all if None.
            github_token: what that connector has.
        """
        name = f"user-{secrets.token_hex(6)}"
        made = self.ask(
            "identity",
            name=name,
            rules=[rule.to_wire() for rule in rules],
            repositories=None if repositories is None else list(repositories),
            github_token=github_token,
        )
        return User(name, made["credential"], github_token, proxy=self)

    def rows(self, what: str) -> list[dict[str, Any]]:
        """Give all of a record: "bootstraps", "requests", "connections" or "sessions"."""
        found: list[dict[str, Any]] = self.ask(what)["rows"]
        return found

    def ask(self, what: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Ask one question.

        Raises:
            LabError: it has ended, or does not know how.
        """
        return ask(self._path, "sandbox proxy", what, **fields)
