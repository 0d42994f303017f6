"""The cloud sandbox, certified in the lab's cloud over every id that has a check."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.certify.conftest import Certify

# Each opening mostly waits for the cloud, so four processes pay on two processors.
WORKERS = "-n4"

SHOWN = {
    *("ACC-05", "CFG-19", "EXE-01", "FIL-04", "HOK-02", "PRC-01", "TMO-03"),
    *("EGR-01", "EGR-30", "EGR-31", "NET-11"),
    *(f"BND-{number:02}" for number in (6, *range(9, 21), 23, 24)),
    *(f"LIF-{number}" for number in (12, 13, 14, 15, 17, 20, 21)),
}
PLANNED = 2


def test_mistral_is_certified(certify: Certify) -> None:
    run = certify("--sandbox=mistral", WORKERS, "--require-certified")

    assert run.certificate["outcome"] == "certified", run.output
    assert run.code == 0
    assert run.certificate["lab"]["mode"] == "sealed"
    assert {run.verdicts[name] for name in SHOWN} == {"pass"}
    assert list(run.verdicts.values()).count("not run") == PLANNED
