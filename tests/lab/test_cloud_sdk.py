"""The provider's own client on the lab's cloud: if it is content, the cloud is faithful."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.lab.clouds import RunningCloud, forget_connections, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.accounts import Account

koyeb = pytest.importorskip("koyeb", reason="koyeb-sdk is needed: pip install koyeb-sdk")


@pytest.fixture(scope="module")
def cloud(caller: Account, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCloud]:
    assert "KOYEB_API_HOST" not in os.environ, "the client prefers it to what it is given"
    with running(tmp_path_factory.mktemp("cloud")) as cloud:
        yield cloud
        forget_connections(koyeb)


@pytest.fixture(autouse=True)
def _empty(cloud: RunningCloud) -> None:
    cloud.client.reset()


def create(cloud: RunningCloud, **options: Any) -> Any:
    options = {"name": "one", "timeout": 20, **options}
    return koyeb.Sandbox.create(host=cloud.url, api_token=cloud.token, **options)


def test_it_creates_runs_reads_writes_starts_kills_and_deletes(cloud: RunningCloud) -> None:
    sandbox = create(cloud, env={"GREETING": "hello"})
    ran = sandbox.exec("echo $GREETING; echo oops >&2; exit 3", stream=False)
    assert (ran.stdout, ran.stderr, ran.exit_code) == ("hello\n", "oops\n", 3)
    assert sandbox.exec("printf 'a\\nb\\n'").stdout == "ab"  # its streams lose the ends of lines
    files = sandbox.filesystem
    files.mkdir("/tmp/made")
    files.write_file("/tmp/made/text", "one\ntwo\n")
    assert files.read_file("/tmp/made/text").content == "one\ntwo\n"
    assert files.list_dir("/tmp/made") == ["text"]
    process = sandbox.launch_process("sleep 3600")
    assert [row.status for row in sandbox.list_processes()] == ["running"]
    sandbox.kill_process(process)
    assert [row.status for row in sandbox.list_processes()] == ["killed"]
    assert cloud.kinds() == ["app", "instance", "service"]
    sandbox.delete()
    assert cloud.kinds() == []


def test_it_finds_a_sandbox_by_its_id(cloud: RunningCloud) -> None:
    made = create(cloud)
    found = koyeb.Sandbox.get_from_id(made.id, host=cloud.url, api_token=cloud.token)
    assert found.exec("echo here", stream=False).stdout == "here\n"
    made.delete()


def test_its_definition_is_on_record_field_by_field(cloud: RunningCloud) -> None:
    create(
        cloud, image="koyeb/sandbox", instance_type="micro", region="na", idle_timeout=300,
        delete_after_delay=3600, enable_mesh=False,
        outbound_allowlist=["203.0.113.10", "10.0.0.5/8"],
    )  # fmt: skip
    posts = [row for row in cloud.client.requests() if row["method"] == "POST"]
    app, service = (row["body"] for row in posts[:2])
    assert app["life_cycle"] == {"delete_when_empty": True}
    definition = service["definition"]
    (secret,) = [row["value"] for row in definition.pop("env") if row["key"] == "SANDBOX_SECRET"]
    assert len(secret) >= 32
    assert service["life_cycle"]["delete_after_create"] == 3600
    assert definition == {
        "name": "one",
        "type": "SANDBOX",
        "docker": {"image": "koyeb/sandbox", "privileged": False},
        "ports": [{"port": 3030, "protocol": "http"}, {"port": 3031, "protocol": "http"}],
        "routes": [{"port": 3030, "path": "/koyeb-sandbox/"}, {"port": 3031, "path": "/"}],
        "regions": ["na"],
        "instance_types": [{"type": "micro"}],
        "mesh": "DEPLOYMENT_MESH_DISABLED",
        "scalings": [
            {"min": 0, "max": 1, "targets": [{"sleep_idle_delay": {"deep_sleep_value": 300}}]}
        ],
        "network_policy": {
            "egress": {
                "mode": "EGRESS_POLICY_MODE_DENY_ALL",
                "allow_list": [{"cidr": "203.0.113.10/32"}, {"cidr": "10.0.0.0/8"}],
            }
        },
    }


@pytest.mark.parametrize("kind", ["never_ready", "broken"])
def test_it_deletes_what_it_made_when_that_does_not_come_up(cloud: RunningCloud, kind: Any) -> None:
    cloud.client.inject(kind)
    with pytest.raises(koyeb.sandbox.errors.SandboxError):
        create(cloud, timeout=1)
    assert cloud.kinds() == []


def test_it_leaks_an_app_whose_reply_is_lost(cloud: RunningCloud) -> None:
    """What a better client has to look for: the app is there, and nobody knows its id."""
    cloud.client.inject("lose_reply", "POST /v1/apps", times=1)
    with pytest.raises(Exception, match=r"(?i)connection|closed|disconnected|exist|retries"):
        create(cloud)
    assert cloud.kinds() == ["app"]


_ASYNC = """
import asyncio, sys
from koyeb import AsyncSandbox

async def main() -> None:
    sandbox = await AsyncSandbox.create(host=sys.argv[1], api_token=sys.argv[2], name="two")
    ran = await sandbox.exec("echo there", stream=False)
    await sandbox.delete()
    print(ran.stdout, end="")

asyncio.run(main())
"""


def test_its_asynchronous_half_works_as_well(cloud: RunningCloud) -> None:
    command = [sys.executable, "-c", _ASYNC, cloud.url, cloud.token]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stdout) == (0, "there\n"), run.stderr
    assert cloud.kinds() == []
