"""The lab's GitHub as checks see it: repositories of their own, and who asked for what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.lab.control_socket import ask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Repository:
    """One that a check made.

    Args:
        owner: as it was written.
        name: as it was written.
        number: GitHub's own, which stays when the name changes.
        node: its id in GraphQL.
        issue_node: that of its only issue.
        marker: what only its files and descriptions hold.
    """

    owner: str
    name: str
    number: int
    node: str
    issue_node: str
    marker: str

    @property
    def full_name(self) -> str:
        """Owner and name, as they were written."""
        return f"{self.owner}/{self.name}"


@dataclass(frozen=True)
class Seen:
    """A request that came to one of GitHub's names.

    Args:
        host: of the Host header.
        method: as sent.
        target: as sent.
        headers: names in lower case.
        body: its first bytes, as Latin-1.
        credential: whose it bore: `"user"`, `"token N"`, `"unknown"`, or none.
        meant: full names, in small letters, of the repositories that it could show or
            change; `"*"` where that is the account.
        status: of the answer.
    """

    host: str
    method: str
    target: str
    headers: Mapping[str, str] = field(repr=False)
    body: str = field(repr=False)
    credential: str
    meant: Sequence[str]
    status: int

    def __str__(self) -> str:
        bore = f"with the credential {self.credential!r}" if self.credential else "with none"
        return f"{self.method} {self.host}{self.target} {bore}, which means {list(self.meant)}"


class GitHubClient:
    """The lab's running GitHub.

    Args:
        path: its control socket.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def token(self) -> str:
        """Give the user's credential, which reaches every repository."""
        return str(self._ask("user")["token"])

    def issue(self, *repositories: Repository) -> str:
        """Issue a credential that reaches these repositories alone."""
        return str(self._ask("issue", numbers=[one.number for one in repositories])["token"])

    def repository(self, owner: str, name: str, *, private: bool = True) -> Repository:
        """Make a repository with a README.md of its marker."""
        made = self._ask("repository", owner=owner, name=name, private=private)
        return Repository(**made)

    def rename(self, repository: Repository, name: str) -> None:
        """Give a repository another name; the old one leads there from now on."""
        self._ask("rename", number=repository.number, name=name)

    def seen(self, mark: str) -> list[Seen]:
        """Give the requests that have a mark in a name, header or body, in their order.

        Args:
            mark: small letters and digits.
        """
        return [Seen(**row) for row in self._ask("requests", mark=mark)["rows"]]

    def _ask(self, what: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        return ask(self._path, "GitHub", what, **fields)
