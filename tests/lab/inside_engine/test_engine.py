"""The container engine of a lab: on the lab's wire, seen by its witnesses, and counted."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.lab.census import Census
from conformance.lab.errors import LabUnavailable
from conformance.lab.plan import LAB_VARIABLE, Facts
from conformance.probes.leftovers import SANDBOX_KINDS
from tests.lab.inside_engine.conftest import IMAGE

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.lab.sites import Site


def fetch(container: Any, site: Site) -> str:
    code, output = container.exec_run(["wget", "-q", "-O", "-", site.url("http")])
    assert code == 0, output
    return str(output.decode())


def test_a_container_reaches_the_labs_internet_by_name_past_its_sniffer(
    lab: Lab, container: Any
) -> None:
    site = lab.site()

    assert site.token in fetch(container, site)

    kinds = {(one.kind, one.protocol) for one in lab.seen(site)}
    assert {("dns", "udp"), ("packet", "tcp"), ("request", "tcp")} <= kinds


def test_what_nothing_listens_for_is_seen_as_well(lab: Lab, container: Any) -> None:
    site = lab.site()

    container.exec_run(["nc", "-w", "1", site.address, "81"])

    assert [(one.kind, one.port) for one in lab.seen(site)] == [("packet", 81)]


def test_a_container_without_a_network_reaches_nothing(lab: Lab, engine: Any) -> None:
    site = lab.site()
    command = ["wget", "-q", "-O", "-", f"http://{site.address}/"]

    engine.containers.create(IMAGE, command, network_mode="none", name="shut").start()
    shut = engine.containers.get("shut")
    assert shut.wait(timeout=20)["StatusCode"] != 0
    shut.remove()

    assert lab.seen(site) == []


def test_what_is_left_is_named_and_the_engine_itself_is_not(lab: Lab, engine: Any) -> None:
    before = Census.take()
    container = engine.containers.create(IMAGE, "sleep 60", name="left-over")
    container.start()
    volume, network = engine.volumes.create("left-volume"), engine.networks.create("left-net")

    left = Census.take().left_since(before, SANDBOX_KINDS)

    container.remove(force=True)
    volume.remove()
    network.remove()
    assert left == [
        f"container left-over of {IMAGE} (running)", "network left-net", "volume left-volume"
    ]  # fmt: skip
    deadline = time.monotonic() + 5  # the engine's helpers end after its answer
    while Census.take().left_since(before, SANDBOX_KINDS):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_worker_that_comes_later_gets_the_same_engine(lab: Lab, container: Any) -> None:
    script = (
        "from conformance.lab.client import Lab\n"
        "from conformance.lab.census import Census\n"
        "with Lab.connect('late') as lab: print(lab.start_engine(), *Census.take().items.values())"
    )

    late = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )

    assert late.stdout.startswith(lab.start_engine()), late.stderr
    assert f"container {container.name}" in late.stdout


def test_an_image_that_is_not_there_is_refused_with_those_that_are(lab: Lab, engine: Any) -> None:
    with pytest.raises(LabUnavailable, match=f"no image 'there/is:none'.*{IMAGE}.*docker save"):
        lab.require_image("there/is:none")
    lab.require_image(IMAGE)


def test_a_bind_mount_reaches_what_the_subject_sees_and_nothing_of_the_host(
    engine: Any, tmp_path: Path
) -> None:
    mounts = {"/var/lib": {"bind": "/host", "mode": "rw"}, str(tmp_path): {"bind": "/own"}}
    command = "sh -c 'echo x > /own/made; echo x > /host/lab-engine-canary'"

    engine.containers.run(IMAGE, command, volumes=mounts, remove=True, network_mode="none")

    assert (tmp_path / "made").read_text() == "x\n"
    assert Path("/var/lib/lab-engine-canary").exists()  # in the overlay: the caller looks outside


def test_the_engines_processes_descend_from_its_keeper(engine: Any, container: Any) -> None:
    keeper = Facts.read(Path(os.environ[LAB_VARIABLE])).engine_keeper
    pid = (
        container.attrs["State"]["Pid"]
        or engine.api.inspect_container(container.id)["State"]["Pid"]
    )
    line = []
    while pid > 1:
        line.append(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    assert keeper in line
