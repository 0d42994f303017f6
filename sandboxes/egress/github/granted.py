"""The repositories that a session may use, by name and by id."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sandboxes.egress.denied import Denied

if TYPE_CHECKING:
    from collections.abc import Iterable

# Owners that an enterprise manages have an underscore in their names.
_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,38})")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


def refused() -> Denied:
    """One answer for all that is not granted, so that it tells nobody what exists."""
    return Denied(403, "GitHubBinding grants no such request; add the repository to repos")


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository's name; GitHub takes capital and small letters for the same.

    Attributes:
        owner: In small letters.
        name: In small letters.
    """

    owner: str
    name: str

    @classmethod
    def of(cls, owner: str, name: str) -> Repository:
        """Read a name.

        Raises:
            Denied: No repository can be called so.
        """
        if not _OWNER.fullmatch(owner) or not _NAME.fullmatch(name) or name in (".", ".."):
            raise refused()
        return cls(owner.lower(), name.lower())


class Granted:
    """What a binding's `repos` come to.

    Args:
        repos: `owner/repository` names, or `"all"`.
        ids: The numbers that GitHub gave to them, which stay when they are renamed.
    """

    def __init__(self, repos: Iterable[str] | Literal["all"], ids: Iterable[int] = ()) -> None:
        self.everything = repos == "all"
        names = () if self.everything else repos
        self._names = {Repository.of(*name.split("/", 1)) for name in names}
        self._ids = frozenset(ids)

    def check(self, repository: Repository) -> None:
        """Let a repository through.

        Raises:
            Denied: It is not granted.
        """
        if not self.everything and repository not in self._names:
            raise refused()

    def check_id(self, number: str) -> None:
        """Let a repository through that is named by its number.

        Raises:
            Denied: It is not granted.
        """
        if self.everything:
            return
        # GitHub might read `007` as 7; nobody writes it by chance.
        if not re.fullmatch(r"[1-9][0-9]{0,18}", number) or int(number) not in self._ids:
            raise refused()
