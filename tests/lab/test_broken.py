"""A lab that breaks says so: it never answers that nothing was seen."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.lab.accounts import Account

_JUDGE = """
from conformance.lab.client import Lab
from conformance.lab.errors import LabError
lab = Lab.connect("w")
site = lab.site()
{action}
try:
    print("answered", lab.seen(site))
except LabError as broken:
    print("broken:", broken)
"""


def test_a_cut_wire_is_told(caller: Account) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root inside the lab")
    action = "import subprocess; subprocess.run(['ip', 'link', 'set', 'v0', 'down'], check=True)"
    run = caller.run_python(_JUDGE.format(action=action))
    assert run.stdout.startswith("broken: the lab's wire is cut"), run.stdout + run.stderr


def test_lost_servers_are_told(account: Account) -> None:
    action = "import os; os.kill(2, 9)"
    run = account.run_python(_JUDGE.format(action=action))
    assert run.stdout.startswith("broken: the lab's servers"), run.stdout + run.stderr
    assert "the lab's servers ended with 137" in run.stderr


def test_a_stopped_witness_is_told(caller: Account) -> None:
    action = "import os, signal; os.kill(2, signal.SIGSTOP); lab._socket.settimeout(0.5)"
    run = caller.run_python(_JUDGE.format(action=action))
    assert run.stdout == "broken: the lab's servers do not answer: timed out\n", run.stderr
