"""What instances of the lab's cloud reach, told by the lab's own witnesses."""

from __future__ import annotations

import http.client
import ssl
import time
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

import pytest

from conformance.lab import addresses
from conformance.lab.census import Census
from conformance.lab.client import Lab

if TYPE_CHECKING:
    from tests.lab.clouds import RunningCloud

_DIAL = """
import socket, sys
for address in sys.argv[1:]:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as client:
        client.settimeout(5)
        try:
            client.connect((address, 5432))
            print(client.recv(99).decode().strip())
        except OSError:
            print("refused")
"""


def policy(*ranges: str) -> dict[str, Any]:
    egress: dict[str, Any] = {"mode": "EGRESS_POLICY_MODE_DENY_ALL"}
    if ranges:
        egress["allow_list"] = [{"cidr": range_} for range_ in ranges]
    return {"network_policy": {"egress": egress}}


def dial(cloud: RunningCloud, headers: dict[str, str], *dialled: str) -> list[str]:
    command = 'python3 -I -c "$DIAL" ' + " ".join(dialled)
    return list(cloud.run(headers, command, env={"DIAL": _DIAL})["stdout"].splitlines())


def test_the_names_are_the_providers_and_so_is_the_certificate(cloud: RunningCloud) -> None:
    _, service = cloud.create()
    place = cloud.await_status(service, "HEALTHY")["metadata"]["sandbox"]["public_url"]
    assert place.startswith("https://")
    assert place.endswith(".koyeb.app")
    host = place.removeprefix("https://")
    connection = http.client.HTTPSConnection(host, timeout=20, context=ssl.create_default_context())
    connection.request("GET", "/koyeb-sandbox/health")  # by its name alone, without a key
    assert connection.getresponse().status == 200
    connection.close()


def test_without_a_policy_everything_is_reached(lab: Lab, cloud: RunningCloud) -> None:
    four, six = lab.site(), lab.site(family=6)
    headers = cloud.ready()
    assert dial(cloud, headers, four.address, six.address) == [four.token, six.token]
    assert "packet" in {event.kind for event in lab.seen(four)}
    assert "packet" in {event.kind for event in lab.seen(six)}
    resolved = cloud.run(headers, f"getent ahostsv4 {four.name}")["stdout"].split()
    assert resolved[0] == four.address


def test_with_deny_all_no_packet_leaves(lab: Lab, cloud: RunningCloud) -> None:
    four, six = lab.site(), lab.site(family=6)
    headers = cloud.ready(**policy())
    assert dial(cloud, headers, four.address, six.address) == ["refused", "refused"]
    assert cloud.run(headers, f"getent hosts {four.name}")["code"] == 2
    assert lab.seen(four) == lab.seen(six) == []


@pytest.mark.parametrize("privileged", [False, True])
def test_nothing_inside_can_widen_the_policy(
    lab: Lab, cloud: RunningCloud, privileged: bool
) -> None:
    site = lab.site()
    docker = {"image": "koyeb/sandbox", "privileged": privileged}
    headers = cloud.ready(**policy(), docker=docker)
    flush = "ip rule del pref 100; ip route add default via 11.77.0.253 dev eth0 onlink"
    cloud.run(headers, flush)
    assert dial(cloud, headers, site.address) == ["refused"]
    assert lab.seen(site) == []


@pytest.mark.parametrize(
    ("allowed", "inside", "outside"),
    [
        ("11.90.0.8/30", ("11.90.0.8", "11.90.0.11"), ("11.90.0.7", "11.90.0.12")),
        ("2a11:90::8/126", ("2a11:90::8", "2a11:90::b"), ("2a11:90::7", "2a11:90::c")),
        ("11.91.0.5", ("11.91.0.5",), ("11.91.0.4", "11.91.0.6")),
    ],
)
def test_a_range_is_let_to_its_last_address_and_no_further(
    lab: Lab, cloud: RunningCloud, allowed: str, inside: tuple[str, ...], outside: tuple[str, ...]
) -> None:
    within = [lab.site(addresses=[address]) for address in inside]
    beyond = [lab.site(addresses=[address]) for address in outside]
    headers = cloud.ready(**policy(allowed))
    said = dial(cloud, headers, *inside, *outside)
    assert said == [site.token for site in within] + ["refused"] * len(outside)
    assert [lab.seen(site) for site in beyond] == [[] for _ in beyond]


def test_neither_its_host_nor_another_instance_is_the_internet(
    lab: Lab, cloud: RunningCloud
) -> None:
    other = cloud.ready(name="other")
    shown = cloud.run(other, "ip -o addr show dev eth0 | awk '{print $4}'")["stdout"]
    neighbours = [line.partition("/")[0] for line in shown.split()]
    assert len(neighbours) == 2
    serve = "exec python3 -m http.server 5432 --bind ::"
    cloud.call("POST", "/koyeb-sandbox/start_process", {"cmd": serve}, **other)
    headers = cloud.ready()
    refused = ["refused"] * 4
    hosts = (addresses.SUBJECT_IPV4, addresses.SUBJECT_IPV6)
    assert dial(cloud, headers, *hosts, *neighbours) == refused


def test_the_mesh_is_a_way_round_the_policy(lab: Lab, cloud: RunningCloud) -> None:
    peer = str(ip_network(addresses.MESH[0])[77])
    site = lab.site(addresses=[peer])
    closed = cloud.ready(name="closed", **policy())
    assert dial(cloud, closed, peer) == ["refused"]
    opened = cloud.ready(name="opened", **{**policy(), "mesh": "DEPLOYMENT_MESH_AUTO"})
    assert dial(cloud, opened, peer) == [site.token]


def test_a_late_policy_lets_all_through_and_then_nothing(lab: Lab, cloud: RunningCloud) -> None:
    early, late = lab.site(), lab.site()
    cloud.client.inject("late_policy", seconds=3, times=1)
    headers = cloud.ready(**policy())
    assert dial(cloud, headers, early.address) == [early.token]
    deadline = time.monotonic() + 30
    while dial(cloud, headers, early.address) != ["refused"]:
        assert time.monotonic() < deadline
    assert dial(cloud, headers, late.address) == ["refused"]
    assert lab.seen(late) == []


def test_a_policy_that_never_holds_lets_all_through(lab: Lab, cloud: RunningCloud) -> None:
    site = lab.site()
    cloud.client.inject("no_policy", times=1)
    headers = cloud.ready(**policy())
    assert dial(cloud, headers, site.address) == [site.token]


def test_the_census_counts_what_is_in_the_cloud_and_none_of_its_processes(
    cloud: RunningCloud,
) -> None:
    before = Census.take()
    app, service = cloud.create("left")
    cloud.await_status(service, "HEALTHY")
    kinds = {"process", "mount", "cloud app", "cloud service", "cloud instance"}
    left = Census.take().left_since(before, kinds)
    assert sorted(left) == [
        "app in the cloud: app-left",
        "instance in the cloud: left",
        "service in the cloud: left",
    ]
    cloud.call("DELETE", f"/v1/apps/{app}")
    assert Census.take().left_since(before, kinds) == []


def test_the_seal_holds_beside_the_cloud(cloud: RunningCloud) -> None:
    cloud.ready()
    with Lab.connect("w1") as another:
        assert another.cloud().inventory()
