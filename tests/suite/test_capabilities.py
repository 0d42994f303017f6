from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from conformance.subject.capabilities import require
from conformance.subject.targets import Surroundings, Target
from conformance.verdicts import Declined, HarnessError, NotApplicable, NotRun
from sandboxes.contract import BINDING_TYPES
from sandboxes.no_sandbox import NoSandbox
from tests.suite import subjects

if TYPE_CHECKING:
    from sandboxes.contract import NetworkMode, Sandbox


def ask(cls: type[Sandbox], **needs: Any) -> None:
    wanted: Any = needs
    require(Target("subject", cls, {}), wanted)


@pytest.mark.parametrize(
    "needs",
    [
        {"network": "none"},
        {"access": "full"},
        {"opens": True, "processes": True, "isolated": True},
        {"option": "label"},
        {"background": False},
    ],
)
def test_what_is_declared_may_be_checked(needs: dict[str, Any]) -> None:
    ask(subjects.Right, **needs)


@pytest.mark.parametrize("mode", ["all", "allow"])
@pytest.mark.parametrize("cls", [subjects.Right, NoSandbox])
def test_a_refused_network_is_declined(cls: type[Sandbox], mode: str) -> None:
    with pytest.raises(Declined, match=rf"does not declare Network.{mode}\(\), and refuses it"):
        ask(cls, network=mode)


@pytest.mark.parametrize("kind", BINDING_TYPES)
def test_a_refused_binding_is_declined(kind: type[Any]) -> None:
    with pytest.raises(Declined, match=kind.__name__):
        ask(subjects.Right, binding=kind)


def test_a_refused_access_is_declined() -> None:
    with pytest.raises(Declined, match='access="full"'):
        ask(NoSandbox, access="full")


def test_an_undeclared_network_that_is_taken_is_not_declined() -> None:
    with pytest.raises(NotRun, match="its constructor takes it: see CFG-02"):
        ask(subjects.AcceptsWhatItDoesNotDeclare, network="allow")


def test_a_refusal_beside_a_failing_control_is_not_declined() -> None:
    with pytest.raises(NotRun, match="refuses what it declares too"):
        ask(subjects.RefusesAll, network="allow")


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        ({"background": True}, "declares no background processes"),
        ({"blocks_private": True}, "does not declare to block private addresses"),
        ({"processes": False}, "declares has_processes"),
        ({"option": "image"}, "has no option image"),
    ],
)
def test_a_fact_that_is_not_declared_does_not_apply(needs: dict[str, Any], reason: str) -> None:
    with pytest.raises(NotApplicable, match=reason):
        ask(subjects.Right, **needs)


def test_a_misspelled_need_is_our_own_error() -> None:
    with pytest.raises(HarnessError, match="netwrok"):
        ask(subjects.Right, netwrok="all")


@pytest.mark.parametrize("needs", [{"network": "allow"}, {"network": "all"}])
@pytest.mark.parametrize(
    ("loopback", "blocks"), [(True, True), (True, False), (False, True)], ids=str
)
def test_private_servers_show_nothing_of_a_sandbox_that_refuses_private_addresses(
    needs: dict[str, Any], loopback: bool, blocks: bool
) -> None:
    class Walled(subjects.Right):
        supported_network: ClassVar[frozenset[NetworkMode]] = frozenset({"none", "allow", "all"})
        blocks_private_addresses = blocks

        def __init__(self, *, network: Any = None, **options: Any) -> None:
            super().__init__(**options)

    target = Target("subject", Walled, {})
    target.surroundings = lambda: Surroundings(loopback=loopback)
    wanted: Any = {"opens": True, **needs}
    if loopback and blocks:
        with pytest.raises(NotRun, match="every server of a loopback lab has a private address"):
            require(target, wanted)
    else:
        require(target, wanted)
    require(target, {"network": "allow"})  # what opens nothing goes on
