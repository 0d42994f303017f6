"""What a report says of a subject."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from typing import TYPE_CHECKING, Any

from conformance.secrecy import names_a_secret

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.subject.targets import Target

HIDDEN = "(hidden)"
"""Stands for the value of an option whose name speaks of a credential."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The declarations of a subject as a record tells them; what levels depend on."""

    class_name: str
    facts: Mapping[str, bool]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Facts:
        """Read a subject's record."""
        return cls(record["class_name"], record["declared"]["facts"])

    def fact(self, name: str) -> bool:
        """Whether the subject declares the fact."""
        return self.facts[name]


def describe(target: Target) -> dict[str, Any]:
    """The record of a subject, as JSON values."""
    return {
        "name": target.name,
        "class": f"{target.cls.__module__}:{target.cls.__qualname__}",
        "class_name": target.cls.__name__,
        "version": _version(target.cls.__module__.partition(".")[0]),
        "options": {
            name: HIDDEN if names_a_secret(name) else value
            for name, value in target.options.items()
        },
        "declared": target.declared.as_json(),
    }


def posture(record: Mapping[str, Any]) -> str:
    """In a few words, what the subject can and does not do."""
    declared = record["declared"]
    facts = declared["facts"]
    if not facts["opens"]:
        return "opens nothing"
    modes = [mode for mode in ("none", "all", "allow") if mode in declared["network"]]
    words = [f"network {'/'.join(modes)}" + (" only" if len(modes) == 1 else "")]
    words.append("isolated" if facts["isolated"] else "no isolation")
    words.append("processes" if facts["has_processes"] else "no processes")
    return ", ".join(words)


def _version(package: str) -> str:
    """The version of the distribution that brought the package; empty for a loose module."""
    for distribution in packages_distributions().get(package, ()):
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return ""
