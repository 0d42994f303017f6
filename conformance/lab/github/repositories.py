"""The repositories of the lab's GitHub, each a real one on disk, and who may reach them."""

from __future__ import annotations

import base64
import binascii
import os
import secrets
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.lab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

BRANCH = "main"
_GIT_SECONDS = 30.0
_FIRST_NUMBER = 700_000
_AUTHOR = b"Lab <lab@users.noreply.github.com> 1700000000 +0000"


def environment(folder: Path) -> dict[str, str]:
    """Give git nothing of the account's: no configuration, no home."""
    return {
        "HOME": str(folder),
        "PATH": os.environ.get("PATH", os.defpath),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }


@dataclass
class Repository:
    """One repository.

    Args:
        number: GitHub's own, which stays when the name changes.
        owner: as it is written.
        name: as it is written.
        marker: what only its files and descriptions hold.
        private: whether it takes a credential to see it.
        path: where it is on disk.
    """

    number: int
    owner: str
    name: str
    marker: str
    private: bool
    path: Path

    @property
    def full_name(self) -> str:
        """Owner and name, as they are written."""
        return f"{self.owner}/{self.name}"

    @property
    def node(self) -> str:
        """Its id in GraphQL."""
        return f"R_lab{self.number}"

    @property
    def issue_node(self) -> str:
        """The id of its only issue in GraphQL."""
        return f"I_lab{self.number}"

    def to_wire(self) -> dict[str, Any]:
        """Give what a check is told of it."""
        return {
            "number": self.number,
            "owner": self.owner,
            "name": self.name,
            "marker": self.marker,
            "node": self.node,
            "issue_node": self.issue_node,
        }


@dataclass(frozen=True)
class Token:
    """A credential.

    Args:
        value: what is sent.
        name: what the record calls it.
        numbers: the repositories that it is limited to; all of them if None.
    """

    value: str = field(repr=False)
    name: str
    numbers: frozenset[int] | None

    def reaches(self, repository: Repository) -> bool:
        """Whether a repository is none that is hidden from it."""
        return self.numbers is None or repository.number in self.numbers


class Repositories:
    """All of them, with the names that they had, and all credentials.

    Args:
        folder: where they are put.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._by_name: dict[str, Repository] = {}
        self._former: dict[str, Repository] = {}
        self._by_number: dict[int, Repository] = {}
        self._tokens: dict[str, Token] = {}
        self.user = self.issue(None)

    def make(self, owner: str, name: str, *, private: bool) -> Repository:
        """Make one with a file and a commit.

        Raises:
            LabError: there is one of that name, or git failed.
        """
        if f"{owner}/{name}".lower() in self._by_name:
            raise LabError(f"the lab's GitHub has {owner}/{name} already; choose another name")
        number = _FIRST_NUMBER + len(self._by_number)
        path = self._folder / f"{number}.git"
        marker = f"mark{secrets.token_hex(12)}"
        repository = Repository(number, owner, name, marker, private, path)
        self._git("init", "-q", "--bare", f"--initial-branch={BRANCH}", str(path))
        self._git("-C", str(path), "fast-import", "--quiet", stdin=_first_commit(marker))
        # Pushes are taken from whoever has the credential.
        self._git("-C", str(path), "config", "http.receivepack", "true")
        self._by_number[number] = self._by_name[repository.full_name.lower()] = repository
        return repository

    def _git(self, *words: str, stdin: bytes = b"") -> None:
        done = subprocess.run(
            ["git", *words],
            input=stdin,
            env=environment(self._folder),
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
        if done.returncode:
            raise LabError(f"the lab's git failed: {done.stderr.decode(errors='replace')}")

    def rename(self, number: int, name: str) -> None:
        """Give one another name; the old one leads there from now on.

        Raises:
            LabError: there is no such number.
        """
        repository = self._by_number.get(number)
        if repository is None:
            raise LabError(f"the lab's GitHub has no repository {number}")
        former = self._by_name.pop(repository.full_name.lower())
        self._former[repository.full_name.lower()] = former
        repository.name = name
        self._by_name[repository.full_name.lower()] = repository

    def issue(self, numbers: Collection[int] | None) -> Token:
        """Issue a credential for some repositories, or for all that there are and will be."""
        limited = None if numbers is None else frozenset(numbers)
        name = "user" if not self._tokens else f"token {len(self._tokens)}"
        token = Token(f"ghs_{secrets.token_hex(18)}", name, limited)
        self._tokens[token.value] = token
        return token

    def named(self, owner: str, name: str) -> Repository | None:
        """Give the one of a name; letter case counts for nothing."""
        return self._by_name.get(f"{owner}/{name}".lower())

    def formerly(self, owner: str, name: str) -> Repository | None:
        """Give the one that had a name once, and has another now."""
        return self._former.get(f"{owner}/{name}".lower())

    def numbered(self, number: int) -> Repository | None:
        """Give the one of a number."""
        return self._by_number.get(number)

    def of_node(self, node: str) -> Repository | None:
        """Give the one that a GraphQL id is of, or of whose issue it is."""
        digits = node.partition("_lab")[2]
        return self.numbered(int(digits)) if digits.isdecimal() else None

    def all(self) -> list[Repository]:
        """Give every one."""
        return list(self._by_number.values())

    def bearer(self, headers: Mapping[str, str]) -> tuple[str, Token | None]:
        """Say who asks: the name of a credential, `"unknown"` for a wrong one, or nothing."""
        shown = headers.get("authorization", "")
        if not shown:
            return "", None
        scheme, _, value = shown.partition(" ")
        if scheme.lower() == "basic":
            try:
                value = base64.b64decode(value, validate=True).decode().partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                value = ""
        token = self._tokens.get(value)
        return (token.name, token) if token else ("unknown", None)


def _first_commit(marker: str) -> bytes:
    message, content = b"Begin", marker.encode() + b"\n"
    return (
        b"commit refs/heads/%b\ncommitter %b\ndata %d\n%b\nM 100644 inline README.md\ndata %d\n%b\n"
    ) % (BRANCH.encode(), _AUTHOR, len(message), message, len(content), content)
