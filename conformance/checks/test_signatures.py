"""CFG: the names, defaults and declarations that the public documents give."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from conformance.marks import verifies
from conformance.requirements import CFG_16, CFG_21, reference
from conformance.subject.declarations import constructor
from conformance.verdicts import NotApplicable, Violation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.requirements.reference import Parameters
    from conformance.subject.targets import Target

    Found = Mapping[str, inspect.Parameter]

_REMEDY = "give a public class the parameters of the reference, or the class a name of its own"
_INTEGRATIONS = ("GitHubProxyConfig", "SecretInjectionProxyConfig")
_BY_NAME = inspect.Parameter.KEYWORD_ONLY


@verifies(CFG_16)
def test_the_constructor_has_the_parameters_of_the_reference(target: Target) -> None:
    """A public class has the reference's parameters; any other treats the shared ones alike."""
    public = reference.public_class(target.cls)
    name = public.__name__
    further = reference.FURTHER.get(name, {})
    _judge(name, _differences(constructor(public), reference.SANDBOXES[name], further))
    if target.cls is not public:
        _judge(target.cls.__name__, _of_its_own(target))


@verifies(CFG_16)
def test_the_values_it_takes_have_the_parameters_of_the_reference(target: Target) -> None:
    """The types that it takes have the parameters and the methods of the reference."""
    for name, kind in _values(target).items():
        for row in reference.VALUES:
            owner, _, method = row.partition(".")
            if owner != name:
                continue
            found = _parameters(kind, method)
            if kind.__name__ != name:  # what a type of its own adds is its own
                found = {key: entry for key, entry in found.items() if _counts(row, entry)}
            faults = _differences(
                found,
                reference.VALUES[row],
                reference.FURTHER.get(row, {}),
                by_place=row in reference.BY_PLACE,
            )
            _judge(".".join(filter(None, (kind.__name__, method))), faults)


def _judge(call: str, differences: Iterable[str]) -> None:
    if faults := list(differences):
        raise Violation(f"{call}() has {' and '.join(faults)}", remedy=_REMEDY)


def _parameters(kind: type[Any], method: str) -> dict[str, inspect.Parameter]:
    if not method:
        return dict(inspect.signature(kind).parameters)
    called = getattr(kind, method)
    found = list(inspect.signature(called).parameters.items())
    return dict(found[1:] if inspect.isfunction(called) else found)  # without self


def _counts(row: str, entry: inspect.Parameter) -> bool:
    return entry.name in reference.VALUES[row] or entry.default is entry.empty


def _values(target: Target) -> dict[str, type[Any]]:
    """The types that the constructor takes, by their names in the reference."""
    kinds = {
        "network": ("Network", target.Network),
        "egress": ("EgressPolicy", target.EgressPolicy),
    }
    taken = dict(named for option, named in kinds.items() if target.has_option(option))
    if target.has_option("sandbox_proxy"):
        proxy = target.SandboxProxy
        older = zip(_INTEGRATIONS, proxy.integration_types, strict=True)
        taken |= {"SandboxProxy": proxy, **dict(older)}
    return {**taken, **{kind.__name__: kind for kind in target.declared.bindings}}


def _differences(
    found: Found, wanted: Parameters, further: Parameters, *, by_place: bool = False
) -> Iterator[str]:
    """Say what differs, as one would write it between the brackets of the call."""
    for name, default in wanted.items():
        if name not in found:
            yield f"no {name}"
        else:
            yield from _difference(found[name], default, by_place=by_place)
    for name, entry in found.items():
        if name in further:
            yield from _difference(entry, further[name], by_place=by_place)
        elif name not in wanted:
            yield f"{_bare(entry)}, which the reference has not"
    if by_place and [*filter(wanted.__contains__, found)] != [*filter(found.__contains__, wanted)]:
        yield f"not in the order {', '.join(wanted)}"


def _difference(entry: inspect.Parameter, default: object, *, by_place: bool) -> Iterator[str]:
    own = reference.REQUIRED if entry.default is entry.empty else entry.default
    if type(own) is not type(default) or own != default:
        yield f"{_bare(entry)}, in the reference with {_shown(default)}"
    if by_place is (entry.kind is _BY_NAME):
        yield f"{entry.name} {'only by name' if by_place else 'by its place'}"


def _bare(entry: inspect.Parameter) -> str:
    return str(entry.replace(annotation=entry.empty))


def _shown(default: object) -> str:
    return str(default) if default is reference.REQUIRED else f"the default {default!r}"


def _of_its_own(target: Target) -> Iterator[str]:
    """What differs in the options that every sandbox takes; further ones are its own."""
    for name, entry in constructor(target.cls).items():
        if name not in reference.SHARED:
            continue
        if entry.kind is not _BY_NAME:
            yield f"{name} by its place"
        if not _means_nothing(target, name, entry.default):
            yield f"{_bare(entry)}, in the reference with {_shown(reference.SHARED[name])}"


def _means_nothing(target: Target, name: str, default: object) -> bool:
    """Whether a default says no more than to leave the option out says in the reference."""
    if name == "network":
        # A type without none() has no default to have.
        return default in (None, target.Network.none()) or "none" not in target.declared.network
    if name == "access":
        return default in (None, target.declared.access)
    return default is None or (isinstance(default, list | tuple) and not default)


@verifies(CFG_21)
def test_a_built_in_enforces_what_the_network_guide_lists(target: Target) -> None:
    """A built-in sandbox declares the network modes and bindings of the guide's table."""
    public = reference.public_class(target.cls)
    if public.__name__ not in reference.ENFORCED:
        raise NotApplicable(f"{target.cls.__name__} is none of the documented sandboxes")
    modes, bindings = reference.ENFORCED[public.__name__]
    declared = {
        "supported_network": (set(public.supported_network), modes),
        "supported_header_bindings": (
            {kind.__name__ for kind in public.supported_header_bindings},
            bindings,
        ),
    }
    for name, (found, listed) in declared.items():
        if found != listed:
            raise Violation(
                f"{public.__name__} declares {name} = {sorted(found)}, "
                f"and the network guide lists {sorted(listed)}",
                remedy="declare what the table of the network guide lists, and enforce it",
            )
