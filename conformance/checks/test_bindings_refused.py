"""CFG: the header bindings that a constructor refuses: by their type, and by their hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given

from conformance import oracle
from conformance.marks import needs, verifies
from conformance.probes.choices import accesses, beside, networks, policy_of
from conformance.requirements import CFG_03, CFG_06, CFG_18
from conformance.strategies import bindings
from conformance.strategies.each import each
from conformance.verdicts import NotApplicable, Violation
from sandboxes.contract import (
    BINDING_TYPES,
    GitHubBinding,
    HeaderBinding,
    MistralApiBinding,
    WorkspaceHeaderBindings,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.probes.choices import Options
    from conformance.strategies.bindings import Case
    from conformance.subject.targets import Target
    from sandboxes.contract import AnyBinding


@verifies(CFG_03)
@given(mix=bindings.mixes)
@each("mix", bindings.MIXES)
def test_an_undeclared_binding_type_is_refused(target: Target, mix: tuple[AnyBinding, ...]) -> None:
    """The constructor refuses a binding type that it does not declare, alone and among others."""
    known = target.declared.bindings
    if set(BINDING_TYPES) <= known:
        raise NotApplicable("every binding type is declared, so there is none to refuse")
    declared = [one for one in mix if type(one) in known]
    others = ", ".join(type(one).__name__ for one in mix if one not in declared)
    for network in networks(target, bindings.NEEDED_HOSTS):
        for access in accesses(target):
            company = network | access
            if others and target.refusal(header_bindings=mix, **company) is None:
                raise Violation(
                    f"the constructor accepted header_bindings={mix!r}, and does not declare "
                    f"{others}{beside(company)}",
                    remedy="raise from the constructor for a type outside "
                    "supported_header_bindings",
                )
        mode, _ = policy_of(target, network)
        # A list that cannot be chosen need not reach their hosts.
        if declared and (mode == "all" or (mode == "allow" and network)):
            _is_accepted(target, declared, network)


def _is_accepted(target: Target, mix: Sequence[AnyBinding], company: Options) -> None:
    refusal = target.refusal(header_bindings=mix, **company)
    if refusal is not None:
        raise Violation(
            f"the constructor refused header_bindings={mix!r}{beside(company)}, though it "
            f"declares their types and the network reaches their hosts: {refusal!r}",
            remedy="accept what supported_header_bindings declares where the network reaches it",
        )


@verifies(CFG_06)
@needs(binding=HeaderBinding)
@given(case=bindings.header_cases)
@each("case", bindings.HEADER_CASES)
def test_a_header_binding_needs_its_host(target: Target, case: Case) -> None:
    """A `HeaderBinding` is refused exactly where the network does not reach its host at 443."""
    _is_refused_exactly_where_it_is_blocked(target, case)


@verifies(CFG_06)
@needs(binding=GitHubBinding)
@given(case=bindings.github_cases)
@each("case", bindings.GITHUB_CASES)
def test_a_github_binding_needs_both_hosts(target: Target, case: Case) -> None:
    """A `GitHubBinding` is refused exactly where github.com or api.github.com is not reached."""
    _is_refused_exactly_where_it_is_blocked(target, case)


@verifies(CFG_18)
@needs(binding=MistralApiBinding)
@given(case=bindings.mistral_cases)
@each("case", bindings.MISTRAL_CASES)
def test_a_mistral_binding_needs_its_host(target: Target, case: Case) -> None:
    """A `MistralApiBinding` is refused exactly where the network does not reach api.mistral.ai."""
    _is_refused_exactly_where_it_is_blocked(target, case)


@verifies(CFG_18)
@needs(binding=WorkspaceHeaderBindings)
def test_the_bindings_of_a_workspace_need_a_network(target: Target) -> None:
    """`WorkspaceHeaderBindings` are refused exactly where the network is `none()`."""
    workspace = WorkspaceHeaderBindings()
    declared = [one for one in bindings.KINDS if type(one) in target.declared.bindings]
    for options in networks(target, bindings.NEEDED_HOSTS):
        mode, _ = policy_of(target, options)
        for access in accesses(target):
            company = options | access
            if mode != "none":
                _is_accepted(target, [workspace], company)
            elif target.refusal(header_bindings=(workspace,), **company) is None:
                raise Violation(
                    f"the constructor accepted WorkspaceHeaderBindings(){beside(company)}, though "
                    "none() reaches no host that a rule could be for",
                    remedy="refuse WorkspaceHeaderBindings under Network.none()",
                )
            if mode != "none" and (mode == "all" or options):
                _is_accepted(target, declared, company)


def _is_refused_exactly_where_it_is_blocked(target: Target, case: Case) -> None:
    mix, hosts = _with_company(target, case)
    for network in networks(target, hosts):
        mode, origins = policy_of(target, network)
        if network and mode == "allow":  # not by the subject's own reading of its entries
            origins = set(map(oracle.named, hosts))
        blocked = [one for one in case.needed if not oracle.opens(mode, origins, one)]
        for access in accesses(target):
            company = network | access
            if not blocked:
                _is_accepted(target, mix, company)
            elif target.refusal(header_bindings=mix, **company) is None:
                raise Violation(
                    f"the constructor accepted header_bindings={mix!r}{beside(company)}, though "
                    f"{mode}() does not reach {' and '.join(map(str, blocked))}",
                    remedy="raise from the constructor where network.reaches(host) is false",
                )


def _with_company(target: Target, case: Case) -> tuple[tuple[AnyBinding, ...], list[str]]:
    """The bindings of a case, and the hosts that are listed."""
    hosts = [entry.text for entry in case.listed]
    if case.place == "alone" or HeaderBinding not in target.declared.bindings:
        return (case.binding,), hosts
    other = bindings.header(bindings.BESIDE_HOST)
    mix = (case.binding, other) if case.place == "first" else (other, case.binding)
    return mix, [*hosts, bindings.BESIDE_HOST]
