"""Which clients try which example of a check."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.probes.attempts import Attempts

if TYPE_CHECKING:
    from collections.abc import Sequence


def _ways(*schemes: str, straight: str = "") -> Sequence[Any]:
    clients = [SimpleNamespace(name=name, takes_proxies=name not in straight) for name in "abcd"]
    return [(client, scheme) for client in clients for scheme in schemes]


WAYS = _ways("https", "tcp")


def _attempts(*, has_processes: bool) -> Attempts:
    declared = SimpleNamespace(fact={"has_processes": has_processes}.__getitem__)
    target: Any = SimpleNamespace(name="any", declared=declared)
    return Attempts(target, lambda: pytest.fail("no lab is needed"))


@pytest.fixture
def attempts() -> Attempts:
    return _attempts(has_processes=True)


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
    other = _attempts(has_processes=True)
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


@pytest.mark.parametrize(
    ("schemes", "others"), [(("https", "http", "tcp"), set()), (("https",), {"d"})]
)
def test_a_client_without_proxies_is_not_asked_for_one_that_takes_them(
    attempts: Attempts, schemes: tuple[str, ...], others: set[str]
) -> None:
    ways = _ways(*schemes, straight="d")
    attempts.rotated("first", ways)

    for number in range(20):
        tried = attempts.rotated(number, ways)
        for wanted in {"https", "http"} & set(schemes):
            names = {client.name for client, scheme in tried if scheme == wanted}
            assert len(names & set("abc")) == 1
            assert names - set("abc") == others


def test_clients_without_proxies_have_their_turns_where_there_are_no_others(
    attempts: Attempts,
) -> None:
    ways = _ways("https", "tcp", straight="abcd")
    attempts.rotated("first", ways)

    assert [scheme for _, scheme in attempts.rotated("second", ways)] in (
        ["https", "tcp"],
        ["tcp", "https"],
    )


def test_clients_that_are_no_programs_try_every_example() -> None:
    attempts = _attempts(has_processes=False)

    assert attempts.rotated("first", WAYS) == WAYS
    assert attempts.rotated("second", WAYS) == WAYS
