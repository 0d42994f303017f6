"""Which clients try which example of a check."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.probes.attempts import Attempts

if TYPE_CHECKING:
    from collections.abc import Sequence

WAYS: Sequence[Any] = [
    (SimpleNamespace(name=name), scheme) for name in "abcd" for scheme in ("https", "tcp")
]


@pytest.fixture
def attempts() -> Attempts:
    target: Any = SimpleNamespace(name="any")
    return Attempts(target, lambda: pytest.fail("no lab is needed"))


def test_all_clients_try_the_first_example_however_often_it_is_repeated(
    attempts: Attempts,
) -> None:
    assert attempts.rotated("first", WAYS) == WAYS
    assert len(attempts.rotated("second", WAYS)) == 2
    assert attempts.rotated("first", WAYS) == WAYS


def test_another_example_is_tried_by_the_same_few_of_each_scheme(attempts: Attempts) -> None:
    attempts.rotated("first", WAYS)

    once = attempts.rotated("second", WAYS, each=2)

    assert sorted(scheme for _, scheme in once) == ["https", "https", "tcp", "tcp"]
    assert attempts.rotated("second", WAYS, each=2) == once
    other = Attempts(attempts.target, lambda: pytest.fail("no lab is needed"))
    other.rotated("first", WAYS)
    assert other.rotated("second", WAYS, each=2) == once


def test_over_many_examples_every_client_has_its_turn(attempts: Attempts) -> None:
    attempts.rotated("first", WAYS)

    tried = {
        (client.name, scheme)
        for number in range(40)
        for client, scheme in attempts.rotated(number, WAYS)
    }

    assert tried == {(client.name, scheme) for client, scheme in WAYS}
