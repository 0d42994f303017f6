"""What a check needs against what a sandbox declares.

Not to support something is fine, but only where the constructor refuses it: `declined`
is earned by a refusal that was seen, beside a control that the same call succeeds with
what is supported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.requirements import CFG_02, CFG_03, CFG_04
from conformance.subject.blame import shown
from conformance.subject.examples import one_of_each
from conformance.verdicts import Declined, HarnessError, NotApplicable, NotRun
from sandboxes.contract import ACCESS_LEVELS

if TYPE_CHECKING:
    from conformance.marks import Needs
    from conformance.requirements import Requirement
    from conformance.subject.targets import Target

_FACTS = {
    "opens": ("opens", "opens nothing"),
    "processes": ("has_processes", "has no operating-system processes"),
    "background": ("supports_background_processes", "declares no background processes"),
    "isolated": ("isolated", "declares no isolation"),
    "blocks_private": ("blocks_private_addresses", "does not declare to block private addresses"),
    "resume": ("supports_resume", "declares no resuming"),
}
_EXAMPLE_HOST = "declined.example"


def require(target: Target, needs: Needs) -> None:
    """Let a check begin only where the sandbox has what it needs.

    Raises:
        Declined: Something is not declared, and the constructor refuses it.
        NotApplicable: A fact is not declared, or the constructor has not the option.
        NotRun: Something is not declared, yet the constructor takes it; or the sandbox refuses
            the addresses of this lab, as it says.
        HarnessError: The mark asks for something that does not exist.
    """
    for name, wanted in needs.items():
        if name == "network":
            _require_network(target, str(wanted))
        elif name == "access":
            _require_access(target, str(wanted))
        elif name == "binding":
            _require_binding(target, wanted)
        elif name == "option":
            if not target.has_option(str(wanted)):
                raise NotApplicable(f"{target.cls.__name__} has no option {wanted}")
        elif name == "engine":
            if target.cls.needs_container_engine is not wanted:
                raise NotApplicable(f"{target.cls.__name__} runs on no container engine")
        elif name == "cloud":
            if target.cls.needs_cloud is not wanted:
                raise NotApplicable(f"{target.cls.__name__} runs in no cloud")
        elif name in _FACTS:
            _require_fact(target, name, wanted)
        else:
            raise HarnessError(f"the mark needs({name}=...) does not exist")
    goes_out = "binding" in needs or needs.get("network", "none") != "none"
    if needs.get("opens") and goes_out and target.refuses_the_lab:
        raise NotRun(
            f"every server of a loopback lab has a private address, and {target.cls.__name__} "
            "declares to refuse those; use a sealed lab, as root or with user namespaces"
        )


def network_of(target: Target, mode: str) -> Any:  # noqa: ANN401 - the subject's own value type
    """A policy value of the mode, of the type that the subject takes."""
    if mode == "allow":
        return target.Network.allow(hosts=(_EXAMPLE_HOST,))
    return target.Network.all() if mode == "all" else target.Network.none()


def _require_fact(target: Target, name: str, wanted: object) -> None:
    fact, otherwise = _FACTS[name]
    if target.declared.fact(fact) is not wanted:
        reason = otherwise if wanted else f"declares {fact}"
        raise NotApplicable(f"{target.cls.__name__} {reason}")


def _require_network(target: Target, mode: str) -> None:
    if mode in target.declared.network:
        return
    control = {}
    if target.has_option("network"):
        control = {"network": network_of(target, min(target.declared.network, default="none"))}
    refused = {"network": network_of(target, mode)}
    _prove(target, refused, control, f"Network.{mode}()", CFG_02)


def _require_access(target: Target, level: str) -> None:
    declared: Any = target.declared.access
    if ACCESS_LEVELS.index(level) <= ACCESS_LEVELS.index(declared):
        return
    control = {"access": declared} if target.has_option("access") else {}
    _prove(target, {"access": level}, control, f'access="{level}"', CFG_04)


def _require_binding(target: Target, kind: Any) -> None:  # noqa: ANN401 - any binding type
    if kind in target.declared.bindings:
        return
    # The widest network, so that it is the type that is refused and not its hosts.
    network = {}
    if target.has_option("network") and "all" in target.declared.network:
        network = {"network": network_of(target, "all")}
    refused = {"header_bindings": (_binding(kind),), **network}
    _prove(target, refused, network, kind.__name__, CFG_03)


def _binding(kind: Any) -> object:  # noqa: ANN401 - any binding type
    for example in one_of_each(_EXAMPLE_HOST):
        if type(example) is kind:
            return example
    raise HarnessError(f"there is no example of the binding type {kind.__name__}")


def _prove(
    target: Target,
    refused: dict[str, Any],
    control: dict[str, Any],
    what: str,
    rule: Requirement,
) -> None:
    name = target.cls.__name__
    broken = target.refusal(**control)
    if broken is not None:
        raise NotRun(
            f"{name} does not declare {what}, and refuses what it declares too: {shown(broken)}"
        )
    error = target.refusal(**refused)
    if error is None:
        raise NotRun(f"{name} does not declare {what}, yet its constructor takes it: see {rule.id}")
    raise Declined(f"{name} does not declare {what}, and refuses it")
