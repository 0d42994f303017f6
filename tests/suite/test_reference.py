from __future__ import annotations

import inspect
from typing import Any

import pytest

import sandboxes as agents
from conformance.requirements import reference
from conformance.subject.declarations import constructor
from sandboxes.experimental import CustomSandbox
from sandboxes.pattern import sandbox_hook


def public(name: str) -> Any:
    owner, _, method = name.partition(".")
    found = sandbox_hook.GitIdentity if owner == "GitIdentity" else getattr(agents, owner)
    return getattr(found, method) if method else found


def shown(parameters: dict[str, inspect.Parameter]) -> dict[str, object]:
    return {
        name: reference.REQUIRED if entry.default is entry.empty else entry.default
        for name, entry in parameters.items()
        if name != "self"
    }


@pytest.mark.parametrize("row", reference.VALUES)
def test_our_values_have_the_parameters_of_the_reference(row: str) -> None:
    found = dict(inspect.signature(public(row)).parameters)
    assert shown(found) == {**reference.VALUES[row], **reference.FURTHER.get(row, {})}
    kinds = {entry.kind for name, entry in found.items() if name != "self"}
    by_place = row in reference.BY_PLACE
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD if by_place else inspect.Parameter.KEYWORD_ONLY
    assert kinds <= {kind}


@pytest.mark.parametrize("name", [name for name in reference.SANDBOXES if hasattr(agents, name)])
def test_our_sandboxes_have_the_parameters_of_the_reference(name: str) -> None:
    found = constructor(public(name))
    assert shown(found) == {**reference.SANDBOXES[name], **reference.FURTHER.get(name, {})}
    assert {entry.kind for entry in found.values()} == {inspect.Parameter.KEYWORD_ONLY}


def test_every_sandbox_has_a_row() -> None:
    class Mine(agents.BashkitSandbox):
        pass

    assert reference.public_class(Mine) is agents.BashkitSandbox
    assert reference.public_class(CustomSandbox) is agents.Sandbox
    assert reference.is_a(Mine, "BashkitSandbox")
    assert not reference.is_a(CustomSandbox, "BashkitSandbox")
    with pytest.raises(LookupError):
        reference.public_class(int)


def test_the_tables_name_the_same_sandboxes() -> None:
    assert {*reference.ENFORCED} == {*reference.SANDBOXES} - {"Sandbox"}
    assert {*reference.EXTRAS} <= {*reference.ENFORCED}
    assert {*reference.FURTHER} <= {*reference.SANDBOXES, *reference.VALUES}
    assert {*reference.VALUES} >= reference.BY_PLACE
    assert len(reference.SANDBOXES["MistralSandbox"]) == 25
