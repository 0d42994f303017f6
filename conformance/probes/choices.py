"""What a constructor may be given beside the option under test: all that is declared.

A constructor that looks at an option only in some company is found by trying each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.oracle import MODES, Mode, Origin
from conformance.verdicts import Violation
from sandboxes.contract import ACCESS_LEVELS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.subject.targets import Target

Options = dict[str, Any]
SOME_HOSTS = ("packages.example.org",)


def network(target: Target, mode: Mode, hosts: Sequence[str] = SOME_HOSTS) -> Any:  # noqa: ANN401 - the subject's own value type
    """A policy value of the mode, of the type that the subject takes."""
    if mode == "allow":
        return target.Network.allow(hosts=hosts)
    return target.Network.none() if mode == "none" else target.Network.all()


def networks(target: Target, hosts: Sequence[str] = SOME_HOSTS) -> list[Options]:
    """Every network mode that is declared, and to leave it out."""
    modes = MODES if target.has_option("network") else ()
    declared = [mode for mode in modes if mode in target.declared.network]
    return [{}, *({"network": network(target, mode, hosts)} for mode in declared)]


def accesses(target: Target) -> list[Options]:
    """Every way to choose an access that is declared, and to leave it out."""
    levels = ACCESS_LEVELS if target.has_option("access") else ()
    return [{}, *({"access": level} for level in levels if not wider(target, level))]


def wider(target: Target, level: str) -> bool:
    """Whether an access level is wider than what is declared."""
    levels: list[str] = list(ACCESS_LEVELS)
    return levels.index(level) > levels.index(target.declared.access)


def company(target: Target, option: str) -> list[Options]:
    """What may stand beside an option: every declared network and access, itself left out."""
    return [
        {**one, **other}
        for one in ([{}] if option == "network" else networks(target))
        for other in ([{}] if option == "access" else accesses(target))
    ]


def accepts_what_is_declared(target: Target) -> None:
    """The control of a refusal: each declared network goes with each declared access.

    Raises:
        Violation: The constructor refuses some of it.
    """
    for options in company(target, ""):
        refusal = target.refusal(**options)
        if refusal is not None:
            raise Violation(
                f"the constructor refused {options!r}, all of it declared, with {refusal!r}",
                remedy="accept what supported_network and supported_access declare",
            )


def policy_of(target: Target, options: Options) -> tuple[Mode, set[Origin]]:
    """The mode and the listed origins of the network that a sandbox with these options has."""
    built = options["network"] if "network" in options else target.build(**options).network
    return built.mode, {Origin(entry.host, entry.port) for entry in built.entries}


def beside(others: Options) -> str:
    """Say in words what stood beside the option under test."""
    shown = ", ".join(f"{name}={value!r}" for name, value in others.items())
    return f", beside {shown}" if shown else ""
