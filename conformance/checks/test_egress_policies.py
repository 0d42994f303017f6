"""NET: the addresses that `egress` opens, in a constructor that takes it.

The value type belongs to every installation, but nothing of a sandbox that does not take
it depends on it: for one without `egress` these rules are not applicable, rather than
held by a type that it never sees.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hypothesis import example, given, reject
from hypothesis import strategies as st

from conformance import oracle
from conformance.marks import needs, verifies
from conformance.probes import values
from conformance.requirements import NET_09, NET_10, NET_11, NET_12
from conformance.strategies import cidrs
from conformance.strategies.each import each
from conformance.verdicts import Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.strategies.cidrs import HostBits
    from conformance.strategies.hosts import WrongEntry
    from conformance.subject.targets import Target
    from sandboxes.contract import EgressPolicy

_FIELDS = ("mode", "allow_cidrs")
_SOME = cidrs.RANGES[:3]


@verifies(NET_09)
@needs(option="egress")
@given(entry=cidrs.ranges)
@each("entry", cidrs.RANGES)
def test_an_address_or_a_range_is_an_entry(target: Target, entry: str) -> None:
    """`custom` takes IPv4 and IPv6 addresses and ranges, alone and among others."""
    for entries in ((entry,), [*_SOME, entry]):
        policy = values.built(target.EgressPolicy.custom, allow_cidrs=entries)
        if policy.mode != "custom" or not policy.allow_cidrs:
            raise Violation(
                f"EgressPolicy.custom(allow_cidrs={entries!r}) gave {policy!r}",
                remedy="keep every entry, and the mode custom",
            )


@verifies(NET_09)
@needs(option="egress")
@given(wrong=cidrs.no_ranges)
@each("wrong", cidrs.NO_RANGES)
def test_names_urls_and_every_address_are_no_entry(target: Target, wrong: WrongEntry) -> None:
    """No entry at all, a name, a URL and each spelling of a /0 raise, alone and among others."""
    for entries in ((), [], (wrong.text,), [*_SOME, wrong.text]):
        if values.refusal(target.EgressPolicy.custom, allow_cidrs=entries) is None:
            raise Violation(
                f"EgressPolicy.custom(allow_cidrs={entries!r}) raised nothing"
                + (f" though an entry {wrong.fault}" if entries else ""),
                remedy="parse each entry as an address or a range, and judge what was parsed",
            )


def _is_taken(target: Target, entries: Sequence[str]) -> bool:
    return values.refusal(target.EgressPolicy.custom, allow_cidrs=entries) is None


def _custom(target: Target) -> EgressPolicy:
    """A custom policy of one entry, of the first kind that is taken."""
    taken = [[entry] for entry in _SOME if _is_taken(target, [entry])]
    return values.built(target.EgressPolicy.custom, allow_cidrs=[*taken, _SOME][0])


@verifies(NET_10)
@needs(option="egress")
@given(entries=st.one_of(cidrs.coverings(), cidrs.gaps()))
@each("entries", map(list, (*cidrs.COVERINGS, *cidrs.GAPS)))
def test_ranges_that_are_together_every_address_raise(target: Target, entries: list[str]) -> None:
    """`custom` raises exactly when its ranges cover a family between them."""
    covers = oracle.covers_a_family(oracle.block(entry) for entry in entries)
    if not covers and not all(_is_taken(target, [entry]) for entry in entries):
        reject()  # NET-09 speaks of right entries that are refused
    error = values.refusal(target.EgressPolicy.custom, allow_cidrs=entries)
    if (error is not None) is not covers:
        raise Violation(
            f"EgressPolicy.custom(allow_cidrs={entries!r}) "
            + ("took every address of a family" if covers else f"raised {error!r}"),
            remedy="merge the ranges, mapped ones as IPv4, and refuse a whole family only",
        )


@verifies(NET_10)
@needs(option="egress")
@given(entry=cidrs.host_bits)
@each("entry", cidrs.HOST_BITS)
def test_host_bits_raise_and_the_range_meant_is_named(target: Target, entry: HostBits) -> None:
    """A range with host bits that are set raises, and the message names the range meant."""
    if not _is_taken(target, [entry.meant]):
        reject()  # NET-09 speaks of right entries that are refused
    others = [one for one in _SOME if _is_taken(target, [one])]
    for entries in ([entry.text], [*others, entry.text]):
        error = values.refusal(target.EgressPolicy.custom, allow_cidrs=entries)
        if error is None or entry.meant not in re.findall(r"[0-9a-f:.]+/[0-9]+", str(error)):
            raise Violation(
                f"EgressPolicy.custom(allow_cidrs={entries!r}) "
                + ("raised nothing" if error is None else f"raised {error!r}"),
                remedy=f"raise for host bits, and say that {entry.meant} was meant",
            )


@verifies(NET_11)
@needs(option="egress")
@given(entries=st.lists(cidrs.ranges, min_size=1, max_size=3))
# Neither in order nor each of them once, nor in canonical form.
@example(entries=["203.0.113.10", "2001:DB8::/32", "10.0.0.0/8", "203.0.113.10"])
def test_methods_and_constructor_build_the_same_policy(target: Target, entries: list[str]) -> None:
    """`block_all()`, `allow_all()` and `custom()` equal what the constructor builds."""
    kind: Any = target.EgressPolicy
    if not _is_taken(target, entries):
        reject()  # NET-09 speaks of right entries that are refused
    ways = {
        "block_all": [
            *(values.built(kind.block_all), values.built(kind)),
            values.built(kind, mode="block_all"),
        ],
        "allow_all": [values.built(kind.allow_all), values.built(kind, mode="allow_all")],
        "custom": [
            values.built(kind.custom, allow_cidrs=entries),
            values.built(kind.custom, allow_cidrs=tuple(entries)),
            values.built(kind, mode="custom", allow_cidrs=tuple(entries)),
        ],
    }
    for mode, made in ways.items():
        first = made[0]
        alike = all(
            values.equal(one, first) and one.allow_cidrs == first.allow_cidrs for one in made
        )
        if not alike or any(one.mode != mode or not isinstance(one, kind) for one in made):
            raise Violation(
                f"EgressPolicy.{mode}() and its constructor built {made!r}",
                remedy="let each method call the constructor with its mode, and with the entries",
            )


@verifies(NET_11)
@needs(option="egress")
@given(wrong=cidrs.no_ranges)
@each("wrong", cidrs.ONE_OF_EACH)
def test_the_constructor_refuses_what_custom_refuses(target: Target, wrong: WrongEntry) -> None:
    """What `custom` raises on, the constructor raises on as well."""
    kind: Any = target.EgressPolicy
    for entries in ((), (*_SOME, wrong.text)):
        if values.refusal(kind.custom, allow_cidrs=entries) is None:
            continue  # NET-09 speaks of wrong entries that are taken
        if values.refusal(kind, mode="custom", allow_cidrs=entries) is None:
            raise Violation(
                f"EgressPolicy(mode='custom', allow_cidrs={entries!r}) was built, though custom() "
                "refuses these",
                remedy="validate in the constructor, and let every method call it",
            )


def _networks(target: Target) -> dict[str, dict[str, Any]]:
    """How to ask for each declared mode, where there is a choice."""
    if not target.has_option("network"):
        return {"none": {}}
    everything = {"all": {"network": target.Network.all()}}
    return {
        "none": {"network": target.Network.none()},
        **(everything if "all" in target.declared.network else {}),
    }


@verifies(NET_11)
@needs(option="egress", network="none")
def test_egress_takes_a_custom_policy_beside_none_alone(target: Target) -> None:
    """`egress` takes `custom()`, not the other two, and nothing beside `Network.all()`."""
    kind, networks = target.EgressPolicy, _networks(target)
    custom, none = _custom(target), networks["none"]
    others = (kind.block_all(), kind.allow_all())
    right: list[dict[str, Any]] = [
        *({}, {"egress": None}, {"egress": custom}),
        *(none, none | {"egress": custom}),
    ]
    wrong = [network | {"egress": one} for network in ({}, none) for one in others]
    if "all" in networks:
        everything = networks["all"]
        right += [everything, everything | {"egress": None}]
        wrong += [everything | {"egress": one} for one in (custom, *others)]
    for options in right:
        values.built(target.build, **options)
    for options in wrong:
        if target.refusal(**options) is None:
            raise Violation(
                f"the constructor took {options!r}",
                remedy="take a custom policy alone, and no policy beside Network.all()",
            )


@verifies(NET_11)
@needs(option="egress", network="none")
def test_egress_policy_tells_what_is_in_force(target: Target) -> None:
    """`egress_policy` is block_all under none(), allow_all under all(), or the custom policy."""
    kind, networks = target.EgressPolicy, _networks(target)
    custom = _custom(target)
    cases: list[tuple[dict[str, Any], object]] = [
        ({}, kind.block_all()),
        ({"egress": custom}, custom),
        (networks["none"], kind.block_all()),
        (networks["none"] | {"egress": custom}, custom),
    ]
    if "all" in networks:
        cases.append((networks["all"], kind.allow_all()))
    for options, want in cases:
        told = getattr(values.built(target.build, **options), "egress_policy", None)
        if told != want:
            raise Violation(
                f"built with {options or 'no options'} it has egress_policy={told!r}",
                remedy=f"give {want!r} as its egress_policy",
            )


@verifies(NET_12)
@needs(option="egress")
@given(entries=st.lists(cidrs.ranges, min_size=1, max_size=3))
@example(entries=list(_SOME))
def test_egress_policies_are_values(target: Target, entries: list[str]) -> None:
    """Policies are immutable, hashable, and equal exactly when mode and entries are."""
    kind, given = target.EgressPolicy, list(entries)
    if not _is_taken(target, entries):
        reject()  # NET-09 speaks of right entries that are refused
    policy = kind.custom(allow_cidrs=given)
    before = tuple(policy.allow_cidrs)
    given.append("198.51.100.1")
    more = [[*entries, other] for other in _SOME if other not in entries]
    customs = [kind.custom(allow_cidrs=each) for each in more if _is_taken(target, each)]
    others = [kind.block_all(), kind.allow_all(), *customs]
    fault = (
        "it holds the caller's list" * (tuple(policy.allow_cidrs) != before)
        or values.emptied(policy, ("allow_cidrs", "ranges"))
        or values.not_equal_by_value(policy, kind.custom(allow_cidrs=tuple(entries)), others)
        or values.changed(policy, _FIELDS)
    )
    if fault:
        raise Violation(
            f"of EgressPolicy.custom(allow_cidrs={entries!r}): {fault}",
            remedy="make it a frozen dataclass that holds tuples, as EgressPolicy is",
        )
