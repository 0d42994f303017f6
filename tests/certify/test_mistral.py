"""The cloud sandbox, certified in the lab's cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.certify.conftest import Certify

# Each opening mostly waits for the cloud, so three processes pay on two processors.
QUICK = ("--conformance-profile=quick", "-n3", "--require-certified")

# Of what is the same code for every sandbox with processes, one id of each kind.
COMMANDS = "ACC-05,CFG-07,CFG-12,CFG-19,EXE-01,EXE-03,FIL-01,FIL-04,HOK-02,PRC-01,TMO-02,TMO-03"
EGRESS = "EGR-01,EGR-02,EGR-03,EGR-06,EGR-30,EGR-31"


@pytest.mark.parametrize(
    ("ids", "shown"),
    [
        (COMMANDS, {"EXE-01", "TMO-03", "CFG-19"}),
        (EGRESS, {"EGR-01", "EGR-30", "EGR-31"}),
        ("LIF", {f"LIF-{number}" for number in (12, 13, 14, 15, 17, 20, 21)}),
    ],
    ids=["commands", "egress", "life"],
)
def test_mistral_is_certified(certify: Certify, ids: str, shown: set[str]) -> None:
    run = certify("--sandbox=mistral", f"--requirement={ids}", *QUICK)

    assert run.certificate["outcome"] == "certified", run.output
    assert run.code == 0
    assert run.certificate["lab"]["mode"] == "sealed"
    assert {run.verdicts[name] for name in shown} == {"pass"}
