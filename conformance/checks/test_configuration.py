"""CFG: what a constructor accepts, and what it refuses before anything happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from conformance import strategies
from conformance.lab.census import Census
from conformance.marks import verifies
from conformance.oracle import MODES, Mode
from conformance.probes.inside import describe
from conformance.probes.watch import Watch, prove_watching
from conformance.requirements import CFG_01, CFG_02, CFG_04, CFG_07
from conformance.verdicts import NotApplicable, NotRun, Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.lab.client import Lab
    from conformance.targets import Target

_LEVELS = ("none", "files", "full")
_SOME_HOSTS = ("packages.example.org",)


def _network(target: Target, mode: Mode, hosts: Sequence[str] = _SOME_HOSTS) -> Any:  # noqa: ANN401 - the subject's own value type
    if mode == "allow":
        return target.Network.allow(hosts=hosts)
    return target.Network.none() if mode == "none" else target.Network.all()


@verifies(CFG_01)
def test_no_network_option_means_no_network(target: Target) -> None:
    """`network` left out, or `None`, is `Network.none()`."""
    if "none" not in target.declared.network:
        raise NotApplicable("Network.none() is not declared, so it cannot be the default")
    spellings: list[dict[str, Any]] = [{}]
    if target.has_option("network"):
        spellings.append({"network": None})
    for options in spellings:
        network = target.build(**options).network
        if network.mode != "none" or network != target.Network.none():
            raise Violation(
                f"built with {options or 'no options'} it has network={network!r}",
                remedy="take a missing network as Network.none()",
            )


@verifies(CFG_02)
@given(
    pick=st.integers(0, len(MODES) - 1),
    hosts=st.lists(strategies.entries, min_size=1, max_size=3),
)
def test_an_undeclared_network_mode_is_refused(
    target: Target, pick: int, hosts: list[strategies.Entry]
) -> None:
    """The constructor refuses a network mode outside `supported_network`, whatever its hosts."""
    undeclared = [mode for mode in MODES if mode not in target.declared.network]
    if not undeclared:
        raise NotApplicable("every network mode is declared, so there is none to refuse")
    network = _network(target, undeclared[pick % len(undeclared)], [entry.text for entry in hosts])
    if target.refusal(network=network) is None:
        raise Violation(
            f"the constructor accepted {network!r}, whose mode it does not declare",
            remedy="raise from the constructor for a mode outside supported_network",
        )
    for mode in MODES if target.has_option("network") else ():
        if mode in undeclared:
            continue
        refusal = target.refusal(network=_network(target, mode))
        if refusal is not None:
            raise Violation(
                f"the constructor refused the declared network mode {mode!r} with {refusal!r}",
                remedy="accept what supported_network declares",
            )


@verifies(CFG_04)
@given(pick=st.integers(0, len(_LEVELS) - 1))
def test_a_wider_access_is_refused(target: Target, pick: int) -> None:
    """The constructor refuses an `access` wider than `supported_access`."""
    widest = _LEVELS.index(target.declared.access)
    wider = _LEVELS[widest + 1 :]
    if not wider:
        raise NotApplicable("full access is declared, so there is none wider to refuse")
    access = wider[pick % len(wider)]
    if target.refusal(access=access) is None:
        raise Violation(
            f'the constructor accepted access="{access}" and declares "{_LEVELS[widest]}"',
            remedy="raise from the constructor for an access wider than supported_access",
        )
    for level in _LEVELS[: widest + 1] if target.has_option("access") else ():
        refusal = target.refusal(access=level)
        if refusal is not None:
            raise Violation(
                f'the constructor refused access="{level}", within what it declares: {refusal!r}',
                remedy="accept every level up to supported_access",
            )


def _refusals(target: Target) -> list[dict[str, Any]]:
    """What constructors refuse: what is not declared, and what nobody can mean."""
    owed: list[dict[str, Any]] = [
        {"network": _network(target, mode)} for mode in MODES if mode not in target.declared.network
    ]
    widest = _LEVELS.index(target.declared.access)
    owed += [{"access": level} for level in _LEVELS[widest + 1 :]]
    return [*owed, {"network": "none"}, {"access": "everything"}, {"hooks": ("no hook",)}]


@verifies(CFG_07)
def test_a_refusal_happens_before_anything_else(target: Target, lab: Lab) -> None:
    """A constructor that refuses has created, started, called and sent nothing."""
    prove_watching()
    refused = 0
    with lab.alone():
        for options in _refusals(target):
            target.refusal(**options)  # what is imported or cached on the first time is no trace
            before, mark = Census.take(), lab.mark()
            with Watch() as watch:
                refusal = target.refusal(**options)
            left, traffic = Census.take().left_since(before), lab.traffic(mark)
            if refusal is None:
                continue  # another requirement speaks of what should have been refused
            refused += 1
            if watch.deeds or left or traffic:
                raise Violation(
                    f"refusing {options!r}, the constructor did {'; '.join(watch.deeds) or 'work'}"
                    + (f" and left {'; '.join(left)}" if left else ""),
                    saw=describe(traffic) if traffic else "",
                    remedy="validate every option before creating or calling anything",
                )
    if not refused:
        raise NotRun(
            "the constructor refused nothing that it was given, not even a text as a hook; "
            "see CFG-02, CFG-04 and CFG-11"
        )
