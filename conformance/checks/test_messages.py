"""CFG: what a constructor says when it refuses, and without its optional package."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from hypothesis import example, given
from hypothesis import strategies as st

from conformance.marks import verifies
from conformance.requirements import CFG_14, CFG_17, CFG_20, reference
from conformance.strategies import hosts
from conformance.subject import missing, refusals
from conformance.subject.blame import shown
from conformance.verdicts import NotApplicable, NotRun, Violation
from sandboxes.contract import ACCESS_LEVELS, GitHubBinding, Sandbox

if TYPE_CHECKING:
    from conformance.subject.targets import Target


@verifies(CFG_14)
def test_without_its_package_it_names_the_extra_to_install(target: Target) -> None:
    """Where an optional package is missing, importing works and building names its extra."""
    needed = missing.needed(target.cls)
    if not needed:
        raise NotApplicable(f"{target.cls.__name__} declares no optional packages")
    for package, extra in needed.items():
        importing, building = missing.built_without(target, package)
        without = f"without the package {package}"
        if importing:
            raise Violation(
                f"{without}, importing it raised {importing}",
                remedy="import an optional package where it is needed, not with the module",
            )
        if not building:
            raise Violation(
                f"it was built {without}",
                remedy="look for the package in the constructor, before open() needs it",
            )
        if not _names_extra(building, extra):
            raise Violation(
                f"built {without}, it raised {building}",
                remedy=f"name the extra in the message, as in pip install 'package[{extra}]'",
            )


def _names_extra(message: str, extra: str) -> bool:
    """Whether it is named as an extra: a package is often called like the one that brings it."""
    name = re.escape(extra)
    return bool(
        re.search(rf"\[[^\]]*(?<![\w-]){name}(?![\w-])[^\]]*\]", message)
        or re.search(rf"\bextra\W+{name}(?![\w-])|(?<![\w-]){name}\W+extra\b", message)
    )


@verifies(CFG_17)
def test_a_refusal_says_who_refuses_what_and_what_to_pass(target: Target) -> None:
    """A refusal names the sandbox class, what was refused and what to pass instead, in a line."""
    refused = False
    for options in refusals.owed(target.cls):
        option = next(iter(options))
        error = target.refusal(**options) if target.has_option(option) else None
        if error is None:
            continue  # no such option, or a break of CFG-02, CFG-03, CFG-04 or CFG-11
        refused = True
        for lack in _lacks(target, option, options[option], str(error)):
            raise Violation(
                f"refusing {options!r} it raised {shown(error)}, which {lack}",
                remedy="say the class, what it does not support, and what to pass, in one line",
            )
    if not refused:
        raise NotRun("the constructor refused nothing of what it was given; see CFG-11")


def _lacks(target: Target, option: str, given_: Any, message: str) -> list[str]:  # noqa: ANN401 - what an option got
    """What a refusal does not say."""
    names = [base.__name__ for base in target.cls.__mro__ if issubclass(base, Sandbox)]
    words = set(re.findall(r"\w+", message.lower()))
    lacks = []
    if not any(name.lower() in words for name in names if name != "Sandbox"):
        lacks.append("does not name the sandbox class")
    if not words & _what(option, given_):
        lacks.append(f"does not name what was refused, {option} or its value")
    if not words & _instead(target, option):
        lacks.append("does not say what to pass instead")
    if len(message.splitlines()) != 1:
        lacks.append("is not one line")
    return lacks


def _what(option: str, given_: Any) -> set[str]:  # noqa: ANN401 - as above
    """Words of which one names what was refused."""
    if option == "network" and not isinstance(given_, str):
        return {option, given_.mode}
    if option == "header_bindings":
        return {option, *(type(entry).__name__.lower() for entry in given_)}
    return {option, option.removesuffix("s")}


_LEAVE_OUT = {"leave", "omit", "without", "remove", "drop"}


def _instead(target: Target, option: str) -> set[str]:
    """Words of which one says what to pass instead."""
    if option == "network":
        return {*target.declared.network}
    if option == "access":
        widest = ACCESS_LEVELS.index(target.cls.supported_access)
        return {*ACCESS_LEVELS[: widest + 1], *_LEAVE_OUT}
    if option == "header_bindings":
        return {*(kind.__name__.lower() for kind in target.declared.bindings), *_LEAVE_OUT}
    return {"sandboxhook", "pass", "give", "use", "write", "must", *_LEAVE_OUT}


_REPOS = st.one_of(
    st.just("all"), st.lists(st.sampled_from(["acme/api", "acme/web"]), max_size=2).map(tuple)
)


@verifies(CFG_20)
@given(listed=st.lists(hosts.entries, min_size=1, max_size=3), repos=_REPOS)
@example(listed=[hosts.ENTRIES[0]], repos=("acme/api",))
def test_the_documented_refusals_are_exact(
    target: Target, listed: list[hosts.Entry], repos: tuple[str, ...] | str
) -> None:
    """`MistralSandbox` says the sentences of "Common issues", whatever hosts or repositories."""
    if not reference.is_a(target.cls, "MistralSandbox"):
        raise NotApplicable(f"{target.cls.__name__} is no MistralSandbox")
    binding: Any = GitHubBinding(repos=repos)  # type: ignore[arg-type]  # both are right
    network = target.Network
    cases: list[tuple[str, dict[str, Any]]] = [
        (reference.NETWORK_ISSUE, {"network": network.allow(hosts=[one.text for one in listed])}),
        (reference.BINDING_ISSUE, {"header_bindings": (binding,)}),
        (reference.BINDING_ISSUE, {"header_bindings": (binding,), "network": network.none()}),
    ]
    for sentence, options in cases:
        names = ("MistralSandbox", target.cls.__name__)
        wanted = [sentence.format(sandbox=name) for name in names]
        error = target.refusal(**options)
        if error is None or str(error) not in wanted:
            said = "it was built" if error is None else f"it said {str(error)!r}"
            raise Violation(
                f"given {options!r}, {said}, not {wanted[0]!r}",
                remedy="refuse with the very sentence of the network guide",
            )
