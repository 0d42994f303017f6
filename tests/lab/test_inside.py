"""What can only be tested inside a lab, run there: the same tests for each account and mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.lab.accounts import Account

_PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "tests/lab/inside")


def test_the_sealed_lab_keeps_its_promises(account: Account) -> None:
    run = account.run(account.python, *_PYTEST)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_loopback_lab_keeps_those_that_it_can(caller: Account) -> None:
    run = caller.run(caller.python, *_PYTEST, mode="loopback")
    assert run.returncode == 0, run.stdout + run.stderr
