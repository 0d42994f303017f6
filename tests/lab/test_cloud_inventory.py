"""After each fault of the cloud there is nothing in it, or only what the documents say stays."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args

import pytest

from conformance.lab.cloud.faults import Kind
from sandboxes import MistralSandbox, OpenRequest, SandboxError
from tests.lab.clouds import RunningCloud, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.accounts import Account

WAYS: dict[Kind, dict[str, Any]] = {
    "slow": {"where": "POST /v1/apps", "seconds": 2.5},
    "status": {"where": "POST /v1/services", "status": 403},
    "reset": {"where": "POST /koyeb"},
    "lose_reply": {"where": "POST /v1/", "times": 2},
    "dies": {"where": "POST /koyeb"},
    "never_ready": {},
    "broken": {},
    "late_policy": {"seconds": 1.0},
    "no_policy": {},
}
STATUSES = (401, 429, 503)
_LATE_SECONDS = 1.0


@pytest.fixture(scope="module")
def shared(caller: Account, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCloud]:
    with running(tmp_path_factory.mktemp("cloud")) as cloud:
        yield cloud


@pytest.fixture
def cloud(shared: RunningCloud, monkeypatch: pytest.MonkeyPatch) -> RunningCloud:
    shared.client.reset()
    monkeypatch.setenv("KOYEB_API_HOST", shared.url)
    monkeypatch.setenv("KOYEB_API_KEY", shared.token)
    return shared


def session(seconds: int = 2) -> SandboxError | None:
    """Open one, run a command and close it; give what it raised."""

    async def lived() -> None:
        sandbox = MistralSandbox(
            wait_ready_timeout_seconds=seconds,
            readiness_interval_seconds=0.1,
            readiness_max_retries=2,
            readiness_probe_timeout_seconds=1,
        )
        async with sandbox.open(OpenRequest(session_id="s")) as box:
            await box.execute("echo on", timeout_seconds=5)

    try:
        asyncio.run(asyncio.wait_for(lived(), 30))
    except SandboxError as error:
        return error
    return None


def test_every_kind_of_fault_is_tried() -> None:
    assert set(WAYS) == set(get_args(Kind))


@pytest.mark.parametrize("kind", WAYS)
def test_nothing_is_left_after(kind: Kind, cloud: RunningCloud) -> None:
    began = time.monotonic()
    with cloud.client.broken(kind, **WAYS[kind]):
        session()
        # What was given up may be done all the same.
        late = WAYS[kind].get("seconds", 0.0) * (kind == "slow") + _LATE_SECONDS
        while kind == "slow" and time.monotonic() < began + late:
            time.sleep(0.05)
    cloud.await_kinds()


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("where", ["POST /v1/apps", "POST /v1/services", "GET /v1/"])
def test_nothing_is_left_after_a_refusal(where: str, status: int, cloud: RunningCloud) -> None:
    with cloud.client.broken("status", where, status=status):
        assert session() is not None
        assert cloud.kinds() == []


def test_what_is_not_deleted_is_left_and_named(cloud: RunningCloud) -> None:
    with cloud.client.broken("status", "DELETE", status=403):
        error = session(seconds=20)
    left = cloud.client.inventory()

    assert sorted(row["kind"] for row in left) == ["app", "instance", "service"]
    assert left[0]["name"] in str(error)


def test_an_app_that_is_made_too_late_stays_with_nothing_in_it(cloud: RunningCloud) -> None:
    with cloud.client.broken("slow", "POST /v1/apps", seconds=9.0), suppress(TimeoutError):
        assert session() is not None
        assert cloud.kinds() == []
        cloud.await_kinds("app")
