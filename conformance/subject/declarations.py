"""What a sandbox says of itself: the declarations that a run holds it to."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sandboxes.contract import Sandbox

FACTS = (
    "opens",
    "isolated",
    "has_processes",
    "supports_background_processes",
    "blocks_private_addresses",
    "supports_resume",
)


@dataclass(frozen=True, slots=True)
class Declared:
    """The declarations of one subject, as its class and a built instance tell them.

    Attributes:
        class_name: Name of the class.
        access: The widest access level it serves.
        network: The network modes it enforces.
        bindings: The header binding types it enforces.
        facts: Every fact of `FACTS`.
        parameters: The keywords of its constructor.
    """

    class_name: str
    access: str
    network: frozenset[str]
    bindings: frozenset[type[Any]]
    facts: Mapping[str, bool] = field(hash=False)
    parameters: frozenset[str]

    @classmethod
    def of(cls, sandbox: type[Sandbox], built: Sandbox) -> Declared:
        """Read the class's declarations; facts may also be set per instance.

        Raises:
            TypeError: A fact is no bool.
        """
        return cls(
            class_name=sandbox.__name__,
            access=sandbox.supported_access,
            network=frozenset(sandbox.supported_network),
            bindings=frozenset(sandbox.supported_header_bindings),
            facts=MappingProxyType({name: _fact(built, name) for name in FACTS}),
            parameters=frozenset(parameters(sandbox)),
        )

    def fact(self, name: str) -> bool:
        """Whether the sandbox declares the fact."""
        return self.facts[name]

    def as_json(self) -> dict[str, Any]:
        """The declarations as JSON values, sorted."""
        return {
            "access": self.access,
            "network": sorted(self.network),
            "header_bindings": sorted(kind.__name__ for kind in self.bindings),
            "facts": dict(self.facts),
        }


def _fact(built: Sandbox, name: str) -> bool:
    value = getattr(built, name)
    if not isinstance(value, bool):
        raise TypeError(f"{name} is of type {type(value).__name__}; declare True or False")
    return value


def parameters(sandbox: type[Sandbox]) -> tuple[str, ...]:
    """The keywords of a constructor, through the bases that its `**kwargs` go to."""
    return tuple(constructor(sandbox))


def constructor(sandbox: type[Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a constructor, through the bases that its `**kwargs` go to."""
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken: dict[str, inspect.Parameter] = {}
    for base in sandbox.__mro__:
        if "__init__" not in vars(base):
            continue
        # The class itself would show its metaclass's `*args, **kwargs`.
        found = list(inspect.signature(vars(base)["__init__"]).parameters.values())[1:]
        taken = {entry.name: entry for entry in found if entry.kind in named} | taken
        if not any(entry.kind is inspect.Parameter.VAR_KEYWORD for entry in found):
            break
    return taken
