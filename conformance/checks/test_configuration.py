"""CFG: what a constructor accepts, and what it refuses before anything happens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from conformance.marks import alone, verifies
from conformance.oracle import MODES
from conformance.probes import choices
from conformance.probes.choices import accesses, beside
from conformance.probes.inside import describe
from conformance.probes.watch import prove_watching
from conformance.requirements import CFG_01, CFG_02, CFG_07
from conformance.strategies import hosts
from conformance.strategies.each import each
from conformance.subject import refusals
from conformance.verdicts import NotApplicable, NotRun, Violation

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.subject.targets import Target


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
    hosts=st.lists(hosts.entries, min_size=1, max_size=3),
)
@each("pick", range(len(MODES) - 1), hosts=[hosts.ENTRIES[0]])
def test_an_undeclared_network_mode_is_refused(
    target: Target, pick: int, hosts: list[hosts.Entry]
) -> None:
    """The constructor refuses a network mode outside `supported_network`, whatever else it gets."""
    undeclared = [mode for mode in MODES if mode not in target.declared.network]
    if not undeclared:
        raise NotApplicable("every network mode is declared, so there is none to refuse")
    network = choices.network(
        target, undeclared[pick % len(undeclared)], [entry.text for entry in hosts]
    )
    for others in accesses(target):
        if target.refusal(network=network, **others) is None:
            raise Violation(
                f"the constructor accepted {network!r}, whose mode it does not declare"
                + beside(others),
                remedy="raise from the constructor for a mode outside supported_network",
            )
    choices.accepts_what_is_declared(target)


@verifies(CFG_07)
@alone
def test_a_refusal_happens_before_anything_else(target: Target, lab: Lab) -> None:
    """A constructor that refuses has created, started, called and sent nothing."""
    prove_watching()
    with lab.alone():
        mark = lab.mark()
        refused = [one for one in refusals.watched(target) if one.refused]
        traffic = lab.traffic(mark)
    for one in refused:
        if one.deeds or traffic:
            raise Violation(
                f"refusing {one.options}, the constructor did {'; '.join(one.deeds) or 'work'}",
                saw=describe(traffic) if traffic else "",
                remedy="validate every option before creating or calling anything",
            )
    if not refused:
        raise NotRun(
            "the constructor refused nothing that it was given, not even a text as a hook; "
            "see CFG-02, CFG-04 and CFG-11"
        )
