"""How a Mistral sandbox is made, waited for, proven closed and deleted, whatever the cloud does."""

from __future__ import annotations

import asyncio
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import certifi
import httpx
import pytest
import respx

import sandboxes as agents
from sandboxes import EgressPolicy, Network, SandboxError, SandboxStartError
from sandboxes.inside import cloud_probe
from sandboxes.mistral import programs, provisioning, transport
from tests.sandboxes.mistral_help import REQUEST, TOKEN, Answer, Cloud, sandbox_in

if TYPE_CHECKING:
    from collections.abc import Iterator

CUSTOM = EgressPolicy.custom(allow_cidrs=("203.0.113.10", "10.0.0.0/8", "2001:db8::/32"))
TOKENS = (
    "KOYEB_API_KEY",
    "NUAGE_KOYEB_SANDBOX_API_TOKEN",
    "AGENTS_SDK_KOYEB_SANDBOX_API_TOKEN",
)
LOST = httpx.ReadTimeout("no answer")
KEY = "key-canary-77aa"


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    for variable in TOKENS:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("KOYEB_API_KEY", TOKEN)
    monkeypatch.setattr(transport, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(provisioning, "_AGAIN_SECONDS", 0.01)
    with respx.mock(assert_all_called=False) as router:
        yield Cloud(router, tmp_path)


def opened(cloud: Cloud, **options: Any) -> None:
    async def session() -> None:
        options.setdefault("network", None if "egress" in options else Network.all())
        async with sandbox_in(cloud.folder)(**options).open(REQUEST) as box:
            assert (await box.execute("echo on")).stdout == "on\n"

    asyncio.run(asyncio.wait_for(session(), 60))


def failed(cloud: Cloud, **options: Any) -> str:
    with pytest.raises(SandboxStartError) as caught:
        opened(cloud, **options)
    text = f"{caught.value!r} {caught.value.__cause__!r}"
    assert "\n" not in str(caught.value)
    assert TOKEN not in text
    return str(caught.value)


def definition(cloud: Cloud, **options: Any) -> Any:
    """What a sandbox asks for; its deployment ends at once."""
    cloud.statuses, keep = ["ERROR"], cloud.control
    bodies: list[Any] = []

    def control(request: httpx.Request, body: Any) -> httpx.Response:
        if request.method == "POST":
            bodies.append(body)
        return keep(request, body)

    cloud.control = control  # type: ignore[method-assign] # listens
    failed(cloud, **options)
    return bodies


def test_what_is_asked_for_is_what_the_provider_s_own_client_asks_for(cloud: Cloud) -> None:
    app, service = definition(
        cloud,
        egress=CUSTOM,
        image="koyeb/sandbox:dind",
        privileged=True,
        instance_type="medium",
        ttl_seconds=3600,
        idle_timeout_seconds=600,
        enable_light_sleep=True,
    )
    name = app["name"]
    assert app == {"name": name, "life_cycle": {"delete_when_empty": True}}
    secret = service["definition"]["env"][0].pop("value")
    assert len(secret) >= 43
    assert service == {
        "app_id": "apps-1",
        "name": name,
        "life_cycle": {"delete_after_create": 3600, "delete_after_sleep": 0},
        "definition": {
            "name": name,
            "type": "SANDBOX",
            "docker": {"image": "koyeb/sandbox:dind", "privileged": True},
            "env": [{"key": "SANDBOX_SECRET"}],
            "ports": [{"port": 3030, "protocol": "http"}, {"port": 3031, "protocol": "http"}],
            "routes": [{"port": 3030, "path": "/koyeb-sandbox/"}, {"port": 3031, "path": "/"}],
            "regions": ["nl-north-1"],
            "instance_types": [{"type": "medium"}],
            "mesh": "DEPLOYMENT_MESH_DISABLED",
            "scalings": [
                {
                    "min": 0,
                    "max": 1,
                    "targets": [
                        {"sleep_idle_delay": {"deep_sleep_value": 3900, "light_sleep_value": 600}}
                    ],
                }
            ],
            "network_policy": {
                "egress": {
                    "mode": "EGRESS_POLICY_MODE_DENY_ALL",
                    "allow_list": [
                        {"cidr": "203.0.113.10/32"},
                        {"cidr": "10.0.0.0/8"},
                        {"cidr": "2001:db8::/32"},
                    ],
                }
            },
        },
    }


def test_the_network_is_in_every_definition(cloud: Cloud) -> None:
    _, service = definition(cloud, network=Network.none())
    deny = {"egress": {"mode": "EGRESS_POLICY_MODE_DENY_ALL"}}
    assert service["definition"]["network_policy"] == deny
    cloud.statuses = ["ERROR"]
    _, service = definition(cloud, network=Network.all(), enable_mesh=True)
    assert "network_policy" not in service["definition"]
    assert service["definition"]["mesh"] == "DEPLOYMENT_MESH_ENABLED"


def test_it_is_made_used_and_deleted(cloud: Cloud) -> None:
    opened(cloud)
    assert cloud.apps == {}
    assert cloud.calls.count("POST /apps") == cloud.calls.count("POST /services") == 1


@pytest.mark.parametrize("made", ["apps", "services"])
def test_a_lost_answer_makes_nothing_twice(cloud: Cloud, made: str) -> None:
    cloud.lost.add(f"POST /{made}")  # it was made, and nobody heard of it
    opened(cloud)
    assert cloud.calls.count(f"POST /{made}") == 1
    assert cloud.apps == {}
    for fault in (LOST, httpx.Response(502), httpx.Response(429, headers={"Retry-After": "0"})):
        cloud.calls.clear()
        cloud.services.clear()
        cloud.statuses = ["HEALTHY"]
        cloud.faults[f"POST /{made}"] = [fault]  # it was not made
        opened(cloud)
        assert cloud.calls.count(f"POST /{made}") == 2
        assert cloud.calls.count(f"GET /{made}") == 1
        assert cloud.apps == {}


def test_what_was_lost_is_deleted_when_it_cannot_be_used(cloud: Cloud) -> None:
    cloud.lost.add("POST /apps")
    cloud.faults["GET /apps"] = [httpx.Response(401)]
    failed(cloud)
    assert cloud.apps == {}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "does not know the API token"),
        (403, "role cloud_user"),
        (400, "mend the option that it names"),
    ],
)
@pytest.mark.parametrize("call", ["POST /apps", "POST /services", "GET /deployments/d-1"])
def test_a_refusal_says_what_to_do_and_leaves_nothing(
    cloud: Cloud, call: str, status: int, words: str
) -> None:
    said = {"message": f"no, {TOKEN}", "fields": [{"field": "region", "description": "unknown"}]}
    cloud.faults[call] = [httpx.Response(status, json=said)]
    message = failed(cloud)
    assert words in message
    assert "no, ***; region: unknown" in message
    assert cloud.apps == {}


def test_an_app_that_was_refused_is_looked_for_nowhere(cloud: Cloud) -> None:
    cloud.faults["POST /apps"] = [httpx.Response(403, json={"message": "no"})]
    failed(cloud)
    assert cloud.calls == ["POST /apps"]


def test_a_cloud_that_fails_for_a_moment_is_asked_again(cloud: Cloud) -> None:
    moment: list[Answer] = [httpx.Response(503), httpx.ConnectError("refused"), LOST]
    cloud.faults = {
        "GET /services/services-1": [*moment],
        "GET /deployments/d-1": [*moment],
        "DELETE /apps/apps-1": [*moment],
        "GET /health": [*moment],
    }
    opened(cloud, readiness_interval_seconds=0)
    assert cloud.apps == {}


def test_what_may_be_left_is_named(cloud: Cloud) -> None:
    cloud.faults["DELETE /apps/apps-1"] = [httpx.Response(500)] * transport.ATTEMPTS
    with pytest.raises(SandboxError, match=r"app sandbox-[0-9a-f]+ may be left.*by hand"):
        opened(cloud)


@pytest.mark.parametrize("variable", TOKENS)
def test_any_one_of_the_tokens_is_enough(
    cloud: Cloud, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KOYEB_API_KEY")
    message = failed(cloud)
    assert all(name in message for name in TOKENS)
    assert cloud.calls == []
    monkeypatch.setenv(variable, TOKEN)
    opened(cloud)


def test_what_does_not_get_ready_is_given_up_in_time_and_deleted(cloud: Cloud) -> None:
    cloud.statuses = ["PROVISIONING"]
    began = time.monotonic()
    message = failed(cloud, wait_ready_timeout_seconds=1)
    assert "wait_ready_timeout_seconds=1 (its deployment was PROVISIONING)" in message
    assert time.monotonic() - began < 20
    cloud.services.clear()
    cloud.faults["GET /services/services-1"] = [httpx.ConnectError("refused")] * 99
    assert "ConnectError: refused" in failed(cloud, wait_ready_timeout_seconds=1)
    cloud.faults.clear()
    cloud.statuses = ["STARTING", "UNHEALTHY"]
    cloud.services.clear()
    assert "ended before it was ready (UNHEALTHY)" in failed(cloud)
    cloud.statuses = ["HEALTHY"]
    cloud.services.clear()
    cloud.faults["GET /health"] = [httpx.Response(502), LOST, httpx.ConnectError("refused")]
    message = failed(cloud, readiness_max_retries=2, readiness_interval_seconds=0)
    assert "readiness_max_retries=2 (its executor did not answer any of 3 probes)" in message
    assert cloud.apps == {}


def test_cancelled_while_it_is_made_it_leaves_nothing(cloud: Cloud) -> None:
    async def session() -> None:
        cloud.statuses = ["STARTING"]
        opening = asyncio.ensure_future(sandbox_in(cloud.folder)().open(REQUEST).__aenter__())
        while "GET /deployments/d-1" not in cloud.calls:  # noqa: ASYNC110 - no event of ours
            await asyncio.sleep(0.01)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    asyncio.run(asyncio.wait_for(session(), 30))
    assert cloud.apps == {}


def test_nothing_runs_before_the_policy_is_proven_to_be_in_force(cloud: Cloud) -> None:
    cloud.opened = [["1.1.1.1"], ["8.8.8.8"], []]
    opened(cloud, network=Network.none(), setup_script=f"touch {cloud.folder}/ran")
    assert cloud.opened == []
    assert len(cloud.lines) == 3 + 2  # then the script and the command
    assert (cloud.folder / "ran").exists()


def test_a_policy_that_never_comes_into_force_runs_nothing(cloud: Cloud) -> None:
    cloud.opened = [["1.1.1.1"]] * 50
    message = failed(
        cloud,
        egress=CUSTOM,
        wait_ready_timeout_seconds=1,
        setup_script=f"touch {cloud.folder}/ran",
    )
    assert "1.1.1.1 could be reached from inside" in message
    assert cloud.opened != []  # only the probe was asked for
    assert not (cloud.folder / "ran").exists()
    assert cloud.apps == {}


def test_what_the_policy_opens_is_no_proof(cloud: Cloud) -> None:
    halves = EgressPolicy.custom(
        allow_cidrs=("0.0.0.0/1", "128.0.0.0/2", "192.0.0.0/3", "2000::/3")
    )
    assert "list narrower ranges" in failed(cloud, egress=halves)
    assert cloud.apps == {}


def test_nothing_is_made_where_nobody_is_there_to_act_for(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    message = failed(cloud, header_bindings=(agents.GitHubBinding(repos="all"),))
    assert "MISTRAL_API_KEY is not set" in message
    assert cloud.calls == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (httpx.Response(401, json={"message": "who?"}), "set MISTRAL_API_KEY to a valid key"),
        (httpx.Response(403, json={"message": "not acme/b"}), "(HTTP 403: not acme/b)"),
        (httpx.Response(422, json={"message": "no host"}), "(HTTP 422: no host); mend the binding"),
        (httpx.Response(503, text=f"sorry, {KEY}"), "(HTTP 503: sorry, ***); try again later"),
        (LOST, "Sandbox Proxy gave no answer"),
        (httpx.Response(200, text="<html>"), "see whether MISTRAL_API_URL names the right place"),
    ],
)
def test_nothing_is_made_where_sandbox_proxy_gives_nothing(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, answer: Answer, words: str
) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)
    cloud.faults["POST /sandbox-proxy/bootstrap"] = [answer] * transport.ATTEMPTS
    message = failed(cloud, header_bindings=(agents.GitHubBinding(repos=("acme/b",)),))
    assert words in message
    assert KEY not in message
    assert set(cloud.calls) == {"POST /sandbox-proxy/bootstrap"}


def test_the_probe_tells_what_is_open_from_what_is_shut() -> None:
    with socket.create_server(("127.0.0.1", 0)) as ear, socket.socket() as shut:
        shut.bind(("127.0.0.1", 0))
        heard, deaf = ("127.0.0.1", ear.getsockname()[1]), ("127.0.0.1", shut.getsockname()[1])
        assert cloud_probe.opened([heard, deaf], 1.0) == ["127.0.0.1"]
        assert cloud_probe.opened([deaf], 1.0) == []


def made_before(cloud: Cloud, **policy: Any) -> None:
    env = [{"key": "SANDBOX_SECRET", "value": "secret-canary"}]
    definition = {"env": env, "mesh": "DEPLOYMENT_MESH_DISABLED", **policy}
    cloud.apps["a"] = {"id": "a", "name": "theirs"}
    cloud.services["s"] = {"id": "s", "app_id": "a", "name": "theirs", "definition": definition}
    cloud.statuses = ["HEALTHY"]


def deny(*ranges: str) -> dict[str, Any]:
    listed = [{"cidr": one} for one in ranges]
    return {"egress": {"mode": "EGRESS_POLICY_MODE_DENY_ALL", "allow_list": listed}}


def test_one_that_was_made_before_is_used_and_stays(cloud: Cloud) -> None:
    made_before(cloud, network_policy=deny("10.1.0.0/16", "203.0.113.10/32"))
    cloud.opened = [[]]
    beat = f"(while :; do date +%N >{cloud.folder}/beat; sleep .05; done) &"
    opened(cloud, egress=CUSTOM, pre_provisioned_sandbox_id="s", setup_script=beat)
    assert set(cloud.apps) == {"a"}
    assert not [call for call in cloud.calls if call.startswith(("DELETE", "POST /apps"))]
    last = (cloud.folder / "beat").read_text()
    time.sleep(0.3)
    assert (cloud.folder / "beat").read_text() == last


@pytest.mark.parametrize(
    ("live", "words"),
    [
        ({}, "not denied by default"),
        ({"network_policy": {"egress": {"mode": "EGRESS_POLICY_MODE_DEFAULT"}}}, "not denied"),
        ({"network_policy": deny("10.0.0.0/7")}, "it opens 10.0.0.0/7"),
        ({"network_policy": deny("0.0.0.0/0")}, "it opens 0.0.0.0/0"),
        ({"network_policy": deny("example.org")}, "no range of addresses"),
        ({"network_policy": deny(), "mesh": "DEPLOYMENT_MESH_AUTO"}, "mesh is not disabled"),
        ({"network_policy": deny(), "mesh": None}, "mesh is not disabled"),
        ({"network_policy": deny(), "env": []}, "no secret for its executor"),
    ],
)
def test_one_that_is_open_wider_than_written_is_refused(
    cloud: Cloud, live: dict[str, Any], words: str
) -> None:
    made_before(cloud, **live)
    assert words in failed(cloud, egress=CUSTOM, pre_provisioned_sandbox_id="s")
    assert cloud.lines == []
    assert set(cloud.apps) == {"a"}


def test_a_token_is_not_sent_in_clear(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOYEB_API_HOST", "http://cloud.example.org")
    assert "use https" in failed(cloud)
    assert cloud.calls == []


@pytest.mark.parametrize("same", [True, False])
def test_programs_are_compiled_for_the_python_that_reads_them(
    cloud: Cloud, same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not same:
        monkeypatch.setattr(programs, "MAGIC_NUMBER", b"another")
    opened(cloud)
    assert ["compile(" in line for line in cloud.lines] == [True, not same]


def test_certificates_are_read_once_and_again_where_they_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text(Path(certifi.where()).read_text())
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
    first = transport._trusted()
    assert transport._trusted() is first
    bundle.write_text(bundle.read_text() + "\n")
    assert transport._trusted() is not first
