"""LIF-21: what a cloud is asked with, and what its sandboxes are called with, stays outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.marks import alone, needs, verifies
from conformance.probes import searching
from conformance.probes.clouds import raised, soon, watched
from conformance.probes.logs import everything_logged
from conformance.probes.told import told
from conformance.probes.traces import found_in
from conformance.requirements import LIF_21
from conformance.strategies.troubles import Trouble
from conformance.verdicts import NotRun, Violation

if TYPE_CHECKING:
    import pytest

    from conformance.lab.client import Lab
    from conformance.probes.clouds import Watch
    from conformance.subject.facade import Box
    from conformance.subject.targets import Target

_API, _INSIDE = "/v1/", "/koyeb-sandbox/"
_BEARER = "Bearer "
_TROUBLES = (
    Trouble("status", "POST /v1/apps", status=401),
    Trouble("reset", "POST /v1/services"),
    Trouble("lose_reply", "POST /koyeb"),
    Trouble("status", "POST /koyeb", status=401),
    Trouble("broken"),
)


def _secrets(watch: Watch) -> dict[str, str]:
    """What the cloud was asked with, and what its sandboxes were called with; what each is.

    Raises:
        NotRun: Neither was ever sent.
    """
    found: dict[str, str] = {}
    for what, path in (("the executor's secret", _INSIDE), ("the API token", _API)):
        said = {row["headers"].get("authorization", "") for row in watch.asked(path=path)}
        bearers = {one.removeprefix(_BEARER) for one in said if one.startswith(_BEARER)}
        found |= dict.fromkeys(bearers, what)
    if not found:
        raise NotRun("it sent the cloud no token: see LIF-13")
    return found


@verifies(LIF_21)
@needs(opens=True, cloud=True)
@alone
def test_no_secret_of_the_cloud_is_inside(target: Target, lab: Lab) -> None:
    """Environment, files and processes inside hold neither the token nor the executor's secret."""
    with watched(lab) as watch, target.open() as box:
        box.write_file("used", b"used")
        box.execute(f"true # {'a long command ' * 10_000}")
        found = [
            f"{what} in {place}"
            for secret, what in _secrets(watch).items()
            for place in searching.places(box, lab, secret)
        ]
    if found:
        raise Violation(
            f"inside was found {'; '.join(found[:4])}",
            remedy="keep the secrets of the cloud out of the environment of commands, and let "
            "no command look into what runs beside it",
        )


def _shown(box: Box) -> list[str]:
    running = box.running
    return [repr(running), str(running), *box.inventory()]


def _fail(target: Target, watch: Watch, trouble: Trouble) -> str:
    """What is told when the cloud goes wrong."""

    def session() -> None:
        with target.open(**soon(target)) as box:
            box.execute("true")

    watch.cloud.inject(**trouble.how())
    error = raised(session)
    watch.cloud.mend()
    return told(error) if error is not None else ""


@verifies(LIF_21)
@needs(opens=True, cloud=True)
@alone
def test_no_secret_of_the_cloud_is_written_down(
    target: Target, lab: Lab, capfd: pytest.CaptureFixture[str]
) -> None:
    """No log, output, exception or `repr` holds the token or the executor's secret."""
    texts: dict[str, list[str]] = {}
    with watched(lab) as watch, everything_logged() as log:
        with target.open() as box:
            texts["a repr"] = _shown(box)
            watch.cloud.kill()
            gone = raised(lambda: box.execute("true", timeout_seconds=5))
        texts["an exception"] = [told(gone) if gone is not None else ""]
        texts["an exception"] += [_fail(target, watch, trouble) for trouble in _TROUBLES]
        built = target.build()
        texts["a repr"] += [repr(built), str(built), repr(getattr(built, "__dict__", {}))]
        kept = _secrets(watch)
    texts |= {"the log": list(log), "the output of the process": list(capfd.readouterr())}
    for where, lines in texts.items():
        for secret, what in kept.items():
            if how := found_in([secret], "\n".join(lines)):
                raise Violation(
                    f"{where} held {what}, written {how}",
                    remedy="leave secrets of the cloud out of all that is logged, raised and shown",
                )
