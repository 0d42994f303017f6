"""The lab's container engine, seen from the machine: what it keeps, and what it leaves there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import engines
from tests.lab.accounts import ROOT

if TYPE_CHECKING:
    from tests.lab.accounts import Account

_PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")
_START = (
    "import sys, time\n"
    "from conformance.lab.client import Lab\n"
    "with Lab.connect('main') as lab:\n"
    "    print(lab.start_engine(), flush=True)\n"
)
_CANARY = Path("/var/lib/lab-engine-canary")


@pytest.fixture(scope="session")
def engine_account(caller: Account) -> Account:
    """An account that can have an engine in the lab, with images for it."""
    if missing := engines.missing():
        pytest.skip(missing)
    return caller


def test_the_engine_keeps_its_promises_inside(engine_account: Account) -> None:
    run = engine_account.run(engine_account.python, *_PYTEST, "tests/lab/inside_engine")

    assert run.returncode == 0, run.stdout + run.stderr
    assert not re.search(r"\d+ skipped", run.stdout), run.stdout
    assert not _CANARY.exists()


def left_on_the_machine() -> set[str]:
    """Control groups, processes and mounts that only a lab's engine makes."""
    found = {str(path) for path in Path("/sys/fs/cgroup").glob("*/sandbox-conformance-*")}
    mounts = Path("/proc/self/mounts").read_text()
    found |= {line for line in mounts.splitlines() if "/dev/shm/lab/engine" in line}
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if b"/dev/shm/lab/engine" in process.read_bytes():
                found.add(str(process))
    return found


_CONTAINER = (
    _START + "import docker\n"
    "client = docker.DockerClient(base_url='unix:///dev/shm/lab/docker.sock')\n"
    "client.containers.run('sandbox-conformance/busybox:local', 'sleep 60', detach=True)\n"
    "print(len(client.containers.list(all=True)), flush=True)\n"
)


@pytest.mark.parametrize("runtime", ["crun", "runc"])
def test_containers_are_started_by_the_faster_runtime_if_it_is_there(
    engine_account: Account, tmp_path: Path, runtime: str
) -> None:
    if missing := engines.without_crun():
        pytest.skip(missing)
    path = os.environ["PATH"]
    if runtime != "crun":  # all programs of this machine but that one
        for folder in reversed(path.split(os.pathsep)):
            for program in Path(folder).glob("*"):
                (tmp_path / program.name).unlink(missing_ok=True)
                (tmp_path / program.name).symlink_to(program)
        (tmp_path / "crun").unlink()
        path = str(tmp_path)

    run = engine_account.run_python(
        f"{_CONTAINER}print(client.info()['DefaultRuntime'])", environ={"PATH": path}
    )

    assert run.stdout.split()[1:] == ["1", runtime], run.stderr


def test_an_engine_is_gone_with_its_lab_and_the_next_one_starts_without_its_containers(
    engine_account: Account,
) -> None:
    for _ in range(2):
        run = engine_account.run_python(_CONTAINER)
        assert run.stdout.split()[1:] == ["1"], run.stderr
    assert left_on_the_machine() == set()


def test_a_lab_that_is_killed_leaves_nothing_that_keeps_the_next_from_starting(
    engine_account: Account,
) -> None:
    command = engine_account.caller(
        [engine_account.python, "-c", f"{_CONTAINER}time.sleep(60)"], cwd=ROOT
    )
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline().startswith("unix://")
        assert killed.stdout.readline() == "1\n"
        killed.send_signal(signal.SIGKILL)

    run = engine_account.run_python(_CONTAINER)

    assert run.stdout.split()[1:] == ["1"], run.stderr
    deadline = time.monotonic() + 30
    while left_on_the_machine():  # what was in use at first, a later lab takes away
        assert time.monotonic() < deadline, left_on_the_machine()
        engine_account.run_python("")


def test_two_labs_at_once_have_an_engine_each(engine_account: Account) -> None:
    command = engine_account.caller(
        [engine_account.python, "-c", f"{_CONTAINER}sys.stdin.read()"], cwd=ROOT
    )
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline().startswith("unix://")
        assert first.stdout.readline() == "1\n"
        second = engine_account.run_python(_CONTAINER)
        first.communicate("", timeout=60)

    assert second.stdout.split()[1:] == ["1"], second.stderr


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("sealed", "only root starts an engine in the lab; run as root"),
        ("loopback", "none answers at DOCKER_HOST"),
    ],
)
def test_where_there_is_no_engine_the_lab_says_why(
    ordinary: Account, mode: str, reason: str
) -> None:
    run = ordinary.run_python(_START, mode=mode)

    assert run.returncode == 1
    assert reason in run.stderr.splitlines()[-1]


def test_a_machine_without_the_program_says_what_to_install(caller: Account) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root starts an engine in the lab")
    run = caller.run_python(_START, environ={"PATH": "/nonexistent"})

    assert "dockerd is not on the PATH; install it" in run.stderr.splitlines()[-1]
