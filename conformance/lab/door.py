"""A door: where connections to names of a service of the lab's own come in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Door:
    """Names that a service answers for, once it runs.

    Args:
        path: its unix socket, which takes what came over TLS; it is there once the service runs.
        address: the address of all of its names.
        names: host names in lower case.
        suffixes: what further names end with, such as ".koyeb.app".
    """

    path: Path
    address: str
    names: frozenset[str] = frozenset()
    suffixes: tuple[str, ...] = ()

    def is_for(self, name: str) -> bool:
        """Whether a host name is one of these."""
        name = name.lower().rstrip(".")
        return name in self.names or name.endswith(self.suffixes)

    def serves(self, name: str) -> bool:
        """Whether it is one of these, and the service runs."""
        return self.is_for(name) and self.path.exists()
