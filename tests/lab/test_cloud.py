"""The lab's cloud on loopback: the protocol, the faults, the instances and their end."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from conformance.lab.errors import LabError
from tests.lab.clouds import SECRET, RunningCloud, running, service_body

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.accounts import Account

_PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")


@pytest.fixture(scope="module")
def shared(caller: Account, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCloud]:
    with running(tmp_path_factory.mktemp("cloud")) as cloud:
        yield cloud


@pytest.fixture
def cloud(shared: RunningCloud) -> RunningCloud:
    """A cloud that holds nothing and does nothing wrong."""
    shared.client.reset()
    return shared


def test_in_a_sealed_lab_its_instances_reach_what_their_policy_says(account: Account) -> None:
    run = account.run(account.python, *_PYTEST, "tests/lab/inside_cloud/test_instances.py")

    assert run.returncode == 0, run.stdout + run.stderr
    assert not re.search(r"\d+ skipped", run.stdout), run.stdout


def test_in_a_sealed_lab_our_client_does_as_the_providers_own_and_outlasts_faults(
    caller: Account,
) -> None:
    tests = (f"tests/lab/inside_cloud/test_{name}.py" for name in ("clients", "mistral"))
    run = caller.run(caller.python, *_PYTEST, *tests)

    assert run.returncode == 0, run.stdout + run.stderr
    assert not re.search(r"\d+ skipped", run.stdout), run.stdout


# -- the control plane


def test_a_caller_without_the_token_is_told_so_and_makes_nothing(cloud: RunningCloud) -> None:
    status, body = cloud.call("POST", "/v1/apps", {"name": "x"}, authorization="Bearer wrong")
    assert (status, body["code"]) == (401, "unauthorized")
    assert cloud.kinds() == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"type": "WEB"}, "definition.type"),
        ({"docker": {}}, "definition.docker.image"),
        ({"regions": ["atlantis"]}, "definition.regions"),
        ({"instance_types": [{"type": "huge"}]}, "definition.instance_types"),
        ({"mesh": "on"}, "definition.mesh"),
        ({"network_policy": {"egress": {"mode": "OPEN"}}}, "definition.network_policy.egress.mode"),
        (
            {"network_policy": {"egress": {"allow_list": [{"cidr": "10.0.0.0/33"}]}}},
            "definition.network_policy.egress.allow_list",
        ),
        ({"regions": ["fra"], "network_policy": {"egress": {}}}, "definition.network_policy"),
    ],
)
def test_a_definition_that_is_wrong_is_refused_by_its_field(
    cloud: RunningCloud, changes: dict[str, Any], field: str
) -> None:
    _, app = cloud.call("POST", "/v1/apps", {"name": "app"})
    body = service_body(app["app"]["id"], "one", **changes)
    status, said = cloud.call("POST", "/v1/services", body)
    assert (status, said["code"]) == (400, "invalid_argument")
    assert [row["field"] for row in said["fields"]] == [field]
    assert cloud.kinds() == ["app"]


def test_the_name_of_an_app_is_taken_once(cloud: RunningCloud) -> None:
    cloud.call("POST", "/v1/apps", {"name": "same"})
    status, said = cloud.call("POST", "/v1/apps", {"name": "same"})
    assert (status, said["fields"][0]["field"]) == (400, "name")
    assert cloud.kinds() == ["app"]


def test_an_app_is_found_by_its_name_and_deleted_with_all_that_is_in_it(
    cloud: RunningCloud,
) -> None:
    app, service = cloud.create("two")
    cloud.await_status(service, "HEALTHY")
    assert cloud.kinds() == ["app", "instance", "service"]
    rows = cloud.call("GET", "/v1/services?types=SANDBOX&limit=100&offset=0&name=two")[1]
    assert [row["id"] for row in rows["services"]] == [service]
    assert cloud.call("GET", "/v1/services?name=three")[1]["services"] == []
    assert cloud.call("DELETE", f"/v1/apps/{app}") == (200, {})
    assert cloud.kinds() == []
    assert cloud.call("GET", f"/v1/services/{service}")[0] == 404


def test_an_app_that_is_to_go_when_empty_goes_with_its_last_service(cloud: RunningCloud) -> None:
    _, app = cloud.call("POST", "/v1/apps", {"name": "a", "life_cycle": {"delete_when_empty": 1}})
    _, made = cloud.call("POST", "/v1/services", service_body(app["app"]["id"], "one"))
    assert cloud.call("DELETE", f"/v1/services/{made['service']['id']}")[0] == 200
    assert cloud.kinds() == []


def test_what_is_deleted_while_it_comes_up_never_runs(cloud: RunningCloud) -> None:
    for number in range(5):
        app, service = cloud.create(f"early{number}")
        time.sleep(number / 100)  # not to wait for anything: to be at another step
        cloud.call("DELETE", f"/v1/apps/{app}")
        assert cloud.kinds() == []
        assert cloud.call("GET", f"/v1/services/{service}")[0] == 404
    assert _instances_of(cloud) == 0


def test_a_sandbox_is_deleted_when_its_time_is_up(cloud: RunningCloud) -> None:
    headers = cloud.ready(life_cycle={"delete_after_create": 1})
    cloud.await_kinds("app")
    assert cloud.call("POST", "/koyeb-sandbox/run", {"cmd": "true"}, **headers)[0] == 404


def test_another_definition_is_another_instance_without_the_files(cloud: RunningCloud) -> None:
    _, service = cloud.create()
    first = cloud.await_status(service, "HEALTHY")
    key = {"x_routing_key": first["metadata"]["sandbox"]["routing_key"]}
    auth = {"authorization": f"Bearer {SECRET}"}
    cloud.run({**key, **auth}, "touch /tmp/kept")
    status, _ = cloud.call("PUT", f"/v1/services/{service}", {"definition": first["definition"]})
    assert status == 200
    second = cloud.await_status(service, "HEALTHY")
    assert second["id"] != first["id"]
    key = {"x_routing_key": second["metadata"]["sandbox"]["routing_key"]}
    assert cloud.run({**key, **auth}, "ls /tmp")["stdout"] == ""
    cloud.await_kinds("app", "service", "instance")


def test_an_idle_sandbox_sleeps_and_wakes_without_what_it_held(cloud: RunningCloud) -> None:
    delay = {"targets": [{"sleep_idle_delay": {"deep_sleep_value": 1}}]}
    _, service = cloud.create(scalings=[{"min": 0, "max": 1, **delay}])
    found = cloud.await_status(service, "HEALTHY")
    key = found["metadata"]["sandbox"]["routing_key"]
    headers = {"x_routing_key": key, "authorization": f"Bearer {SECRET}"}
    assert cloud.run(headers, "touch /tmp/held; sleep 1.5; ls /tmp")["stdout"] == "held\n"
    cloud.await_status(service, "SLEEPING")
    cloud.await_kinds("app", "service")
    assert cloud.run(headers, "ls /tmp")["stdout"] == ""
    assert cloud.deployment(service)["status"] == "HEALTHY"


# -- the executor


def test_the_executor_takes_its_own_secret_alone(cloud: RunningCloud) -> None:
    headers = cloud.ready()
    wrong = {**headers, "authorization": f"Bearer {cloud.token}"}
    assert cloud.call("POST", "/koyeb-sandbox/run", {"cmd": "true"}, **wrong)[0] == 401
    assert cloud.call("GET", "/koyeb-sandbox/health", **wrong) == (200, {"status": "ok"})
    lost = {**headers, "x_routing_key": "none"}
    assert cloud.call("GET", "/koyeb-sandbox/health", **lost)[0] == 404


def test_the_executor_has_the_defects_that_clients_must_live_with(cloud: RunningCloud) -> None:
    headers = cloud.ready()
    assert cloud.run(headers, "kill -9 $$")["code"] == -1
    assert cloud.run(headers, "printf '\\377'")["stdout"] == "\ufffd"
    assert cloud.run(headers, "echo $SANDBOX_SECRET")["stdout"] == f"{SECRET}\n"
    assert cloud.run(headers, "cat; pwd")["stdout"] == "/root\n"
    said = cloud.call("POST", "/koyeb-sandbox/read_file", {"path": "/tmp/none"}, **headers)
    assert said == (200, {"error": "open /tmp/none: no such file or directory"})
    bad = cloud.call("POST", "/koyeb-sandbox/run", {"cmd": "true", "cwd": "/none"}, **headers)
    assert bad == (400, "Invalid working directory: /none\n")


def test_a_killed_process_leaves_its_children(cloud: RunningCloud) -> None:
    headers = cloud.ready()
    body = {"cmd": "sleep 61.5 & wait"}
    status, made = cloud.call("POST", "/koyeb-sandbox/start_process", body, **headers)
    assert (status, made["status"]) == (201, "running")
    find = "i=0; until pgrep -f '^sleep 61.5'; do i=$((i+1)); [ $i -lt 500 ] || exit 1; done"
    assert cloud.run(headers, find)["code"] == 0
    killed = cloud.call("POST", "/koyeb-sandbox/kill_process", {"id": made["id"]}, **headers)
    assert killed[0] == 200
    rows = cloud.call("GET", "/koyeb-sandbox/list_processes", **headers)[1]["processes"]
    assert [row["status"] for row in rows] == ["killed"]
    assert cloud.run(headers, "pgrep -f '^sleep 61.5'")["code"] == 0


def test_a_bound_port_is_public_whatever_the_policy(cloud: RunningCloud) -> None:
    deny = {"network_policy": {"egress": {"mode": "EGRESS_POLICY_MODE_DENY_ALL"}}}
    headers = cloud.ready(**deny)
    page = "mkdir /tmp/w; cd /tmp/w; echo shown >f; exec python3 -m http.server 8123"
    cloud.call("POST", "/koyeb-sandbox/start_process", {"cmd": page}, **headers)
    assert cloud.call("POST", "/koyeb-sandbox/bind_port", {"port": "8123"}, **headers)[0] == 200
    deadline = time.monotonic() + 20
    while cloud.call("GET", "/f", x_routing_key=headers["x_routing_key"]) != (200, "shown\n"):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_stream_ends_with_its_caller_and_what_the_shell_started_does_not(
    cloud: RunningCloud,
) -> None:
    headers = cloud.ready()
    body = json.dumps({"cmd": "sleep 62.5 & echo $$; wait"}).encode()
    with socket.create_connection(_place(cloud), 20) as caller:
        lines = ["POST /koyeb-sandbox/run_streaming HTTP/1.1", "host: x",
                 f"x-routing-key: {headers['x_routing_key']}",
                 f"authorization: {headers['authorization']}",
                 f"content-length: {len(body)}", "", ""]  # fmt: skip
        caller.sendall("\r\n".join(lines).encode() + body)
        said = b""
        while b'"stdout"' not in said:
            said += caller.recv(65536)
    shell = re.search(rb'"data": "(\d+)"', said)
    assert shell is not None
    gone = f"i=0; while kill -0 {shell[1].decode()} 2>&-; do sleep .02; i=$((i+1));"
    assert cloud.run(headers, f"{gone} [ $i -lt 500 ] || exit 1; done")["code"] == 0
    assert cloud.run(headers, "pgrep -f '^sleep 62.5'")["code"] == 0


# -- instances


def test_an_instance_sees_its_own_processes_files_and_network_alone(cloud: RunningCloud) -> None:
    headers = cloud.ready()
    script = "ls /proc | grep -c '^[0-9]'; cat /sys/kernel/x /dev/mem; ls /work /home /sys; id -u"
    said = cloud.run(headers, script)
    assert int(said["stdout"].splitlines()[0]) < 10
    devices = cloud.run(headers, "cut -d: -f1 /proc/net/dev | tail -n +3")["stdout"].split()
    assert sorted(devices) == ["eth0", "lo"]
    held = cloud.run(headers, "grep CapEff /proc/self/status")["stdout"].split()[1]
    assert not int(held, 16) >> 21 & 1, "CAP_SYS_ADMIN is not for a sandbox"
    assert not int(held, 16) >> 12 & 1, "nor is CAP_NET_ADMIN"
    assert cloud.run(headers, "touch /usr/bin/x")["code"] == 1
    assert cloud.run(headers, f"ls {Path(__file__).parent}")["code"] == 2


def test_an_instance_takes_all_that_ran_in_it_along(cloud: RunningCloud) -> None:
    headers = cloud.ready()
    cloud.run(headers, "setsid sh -c 'sleep 3600 & sleep 3600' >&- 2>&- & true")
    assert _instances_of(cloud) > 2
    cloud.client.reset()
    assert _instances_of(cloud) == 0


def test_a_cloud_that_is_killed_takes_its_instances_along(caller: Account, tmp_path: Path) -> None:
    with running(tmp_path) as cloud:
        cloud.ready()
        below = _below(cloud.pid)
        assert len(below) > 2
        os.kill(cloud.pid, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while alive := [pid for pid in below if _is_running(pid)]:
            assert time.monotonic() < deadline, alive
            time.sleep(0.02)


# -- faults


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_a_status_is_answered_as_often_as_was_said_and_nothing_is_done(
    cloud: RunningCloud, status: int
) -> None:
    cloud.client.inject("status", "POST /v1/apps", status=status, times=2)
    for _ in range(2):
        said = cloud.call("POST", "/v1/apps", {"name": "a"})
        assert (said[0], said[1]["status"]) == (status, status)
    assert cloud.kinds() == []
    assert cloud.call("POST", "/v1/apps", {"name": "a"})[0] == 200


def test_a_cloud_flaps(cloud: RunningCloud) -> None:
    cloud.client.inject("status", "GET", every=2)
    found = [cloud.call("GET", "/v1/apps")[0] for _ in range(4)]
    assert found == [503, 200, 503, 200]


def test_a_lost_reply_is_of_something_that_was_done(cloud: RunningCloud) -> None:
    cloud.client.inject("lose_reply", "POST /v1/apps", times=1)
    with pytest.raises((http.client.HTTPException, OSError)):
        cloud.call("POST", "/v1/apps", {"name": "a"})
    assert cloud.kinds() == ["app"]


def test_a_lost_reply_of_a_command_is_of_one_that_ran(cloud: RunningCloud) -> None:
    headers = cloud.ready()
    cloud.client.inject("lose_reply", "/run$", times=1)
    with pytest.raises((http.client.HTTPException, OSError)):
        cloud.run(headers, "touch /tmp/ran")
    assert cloud.run(headers, "ls /tmp")["stdout"] == "ran\n"


def test_a_reset_is_of_something_that_was_not_done(cloud: RunningCloud) -> None:
    cloud.client.inject("reset", "POST /v1/apps", times=1)
    with pytest.raises((http.client.HTTPException, OSError)):
        cloud.call("POST", "/v1/apps", {"name": "a"})
    assert cloud.kinds() == []


def test_a_slow_answer_comes_after_its_time(cloud: RunningCloud) -> None:
    cloud.client.inject("slow", "GET /v1/apps", seconds=0.5)
    begun = time.monotonic()
    assert cloud.call("GET", "/v1/apps")[0] == 200
    assert time.monotonic() - begun >= 0.5


@pytest.mark.parametrize(("kind", "status"), [("never_ready", "STARTING"), ("broken", "ERROR")])
def test_a_deployment_gets_no_further(cloud: RunningCloud, kind: Any, status: str) -> None:
    cloud.client.inject(kind, times=1)
    _, service = cloud.create()
    cloud.await_status(service, status)
    assert cloud.kinds() == ["app", "service"]
    _, other = cloud.create("other")
    cloud.await_status(other, "HEALTHY")
    assert cloud.deployment(service)["status"] == status


def test_an_instance_dies_under_a_command(cloud: RunningCloud) -> None:
    headers = cloud.ready()
    cloud.client.inject("dies", "/run$", seconds=0.1, times=1)
    status, _ = cloud.call("POST", "/koyeb-sandbox/run", {"cmd": "sleep 30"}, **headers)
    assert status == 502
    cloud.await_kinds("app", "service")


def test_a_fault_that_nobody_knows_is_refused(cloud: RunningCloud) -> None:
    unknown: Any = "melts"
    with pytest.raises(LabError, match="melts"):
        cloud.client.inject(unknown)
    with pytest.raises(LabError, match="no pattern"):
        cloud.client.inject("slow", "(")


def test_what_was_there_before_is_provisioned_without_a_call(cloud: RunningCloud) -> None:
    service = cloud.client.provision("before", mesh="DEPLOYMENT_MESH_AUTO")
    assert cloud.client.requests() == []
    found = cloud.deployment(service)
    assert (found["status"], found["definition"]["mesh"]) == ("HEALTHY", "DEPLOYMENT_MESH_AUTO")
    key = {"x_routing_key": found["metadata"]["sandbox"]["routing_key"]}
    said = cloud.run({**key, "authorization": "Bearer secret-of-before"}, "echo on")
    assert said["stdout"] == "on\n"
    cloud.client.remove(service)
    assert cloud.kinds() == []
    with pytest.raises(LabError, match="regions"):
        cloud.client.provision("nowhere", regions=["atlantis"])


def test_requests_are_given_from_a_number_on(cloud: RunningCloud) -> None:
    cloud.call("GET", "/v1/apps")
    first = cloud.client.requests()[-1]["number"]
    cloud.call("GET", "/v1/services")
    assert [row["target"] for row in cloud.client.requests(first)] == ["/v1/services"]


def _place(cloud: RunningCloud) -> tuple[str, int]:
    parts = urlsplit(cloud.url)
    return str(parts.hostname), int(parts.port or 0)


def _instances_of(cloud: RunningCloud) -> int:
    """Count the processes of its instances: all below the one that they are forked from."""
    return len(_below(cloud.pid)) - 1


def _below(pid: int) -> list[int]:
    """Give all descendants of a process."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *_below(child)]
    return found


def _is_running(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
