"""What a constructor refuses, watched from its very first call: in a process of its own.

What a constructor asks once and keeps, it asks before its first refusal; so whoever
built something before, in the same process, would see nothing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from conformance.lab.census import Census
from conformance.probes.watch import Watch
from conformance.subject import fresh
from conformance.subject.examples import one_of_each
from conformance.subject.loading import load
from sandboxes.contract import ACCESS_LEVELS

if TYPE_CHECKING:
    from conformance.subject.targets import Target
    from sandboxes.contract import Sandbox

# Threads and open files of what is imported for the first time are no trace.
_FIRST_KINDS = ("process", "file entry", "mount")


@dataclass(frozen=True, slots=True)
class Refusal:
    """One call of the constructor, and what it did before it refused.

    Attributes:
        options: The options, as a person writes them.
        refused: Whether it raised.
        deeds: What it did and left; a line each.
    """

    options: str
    refused: bool
    deeds: list[str]


def owed(cls: type[Sandbox]) -> list[dict[str, Any]]:
    """What the constructor of a class refuses: what it does not declare, and nonsense."""
    network = cls.network_type
    networks = {
        "none": network.none(),
        "all": network.all(),
        "allow": network.allow(hosts=["packages.example.org"]),
    }
    bindings = one_of_each("packages.example.org")
    widest = ACCESS_LEVELS.index(cls.supported_access)
    kinds = tuple(cls.supported_header_bindings)
    return [
        *({"network": networks[mode]} for mode in networks if mode not in cls.supported_network),
        *({"access": level} for level in ACCESS_LEVELS[widest + 1 :]),
        *({"header_bindings": (one,)} for one in bindings if not isinstance(one, kinds)),
        {"network": "none"},
        {"access": "everything"},
        {"hooks": ("no hook",)},
    ]


def watched(target: Target) -> list[Refusal]:
    """Let the constructor refuse each of these in a fresh process, and watch it.

    Raises:
        Violation: It ended the process, or did not come back.
    """
    return [Refusal(**entry) for entry in fresh.ask(__name__, target, "refusing")]


def _refuse(cls: type[Sandbox], options: dict[str, Any], given: dict[str, Any]) -> Refusal:
    """Call twice: the first time is watched for what it does, the second for all it leaves."""
    deeds: list[str] = []
    for kinds in (_FIRST_KINDS, None):
        before = Census.take()
        refused = False
        with Watch() as watch:
            try:
                cls(**options, **given)
            except Exception:  # noqa: BLE001 - any error is a refusal
                refused = True
        deeds += [*watch.deeds, *Census.take().left_since(before, kinds)]
    return Refusal(repr(given), refused, list(dict.fromkeys(deeds)))


def _watched(spec: str, options: dict[str, Any]) -> list[dict[str, Any]]:
    cls = load(spec)
    return [asdict(_refuse(cls, options, refused)) for refused in owed(cls)]


if __name__ == "__main__":
    fresh.answer(_watched)
