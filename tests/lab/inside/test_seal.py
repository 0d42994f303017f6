"""A process that is not sealed, or a namespace with another way out, is refused in one line."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.lab import kernel
from conformance.lab.client import Lab
from conformance.lab.errors import LabError, SealBroken
from conformance.lab.plan import LAB_VARIABLE, Facts
from conformance.lab.seal import verify_seal

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def facts(lab: Lab) -> Facts:
    return Facts.read(Path(os.environ[LAB_VARIABLE]))


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@pytest.fixture
def bridge(as_root: None) -> Iterator[str]:
    _ip("link", "add", "br-other", "type", "bridge")
    yield "br-other"
    _ip("link", "del", "br-other")


def test_the_lab_itself_is_sealed(facts: Facts) -> None:
    verify_seal(facts)


def test_a_thread_that_ends_meanwhile_breaks_no_seal(
    facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = [*os.listdir("/proc/self/task"), str(2**22 + 1)]  # more than a system ever has
    monkeypatch.setattr(os, "listdir", lambda _: threads)
    verify_seal(facts)


def test_another_device_is_refused_unless_it_is_ours(lab: Lab, bridge: str) -> None:
    with pytest.raises(SealBroken, match=r"has the device br-other beside its own; remove it"):
        Lab.connect("w1")
    Lab.connect("w1", own_devices=["br-"]).close()


@pytest.mark.parametrize(
    ("route", "named"),
    [
        (("198.51.100.0/24", "via", "11.77.0.9", "dev", "v0", "onlink"), r"198\.51\.100\.0/24"),
        (("203.0.113.7/32", "dev", "v0"), r"203\.0\.113\.7/32"),
        (("2001:db8::/32", "dev", "v0"), r"2001:db8::/32"),
    ],
)
def test_another_route_is_refused(
    facts: Facts, as_root: None, route: tuple[str, ...], named: str
) -> None:
    _ip("route", "add", *route)
    try:
        with pytest.raises(SealBroken, match=f"has the route {named} "):
            verify_seal(facts)
    finally:
        _ip("route", "del", *route)


def test_a_thread_elsewhere_is_refused(facts: Facts, as_root: None) -> None:
    outside, done = threading.Event(), threading.Event()

    def leave() -> None:
        kernel.unshare(kernel.CLONE_NEWNET)
        outside.set()
        done.wait(10)

    thread = threading.Thread(target=leave)
    thread.start()
    try:
        assert outside.wait(10)
        with pytest.raises(SealBroken, match=r"thread \d+ is in net:\[\d+\], not in the lab's"):
            verify_seal(facts)
    finally:
        done.set()
        thread.join()


def test_the_hosts_own_namespace_is_refused(facts: Facts) -> None:
    unsealed = dataclasses.replace(facts, namespaces=facts.host_namespaces)
    with pytest.raises(SealBroken, match="namespace is the host's own"):
        verify_seal(unsealed)


def test_outside_a_lab_there_is_no_lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(LAB_VARIABLE)
    with pytest.raises(LabError, match="runs in no lab"):
        Lab.connect()
    monkeypatch.setenv(LAB_VARIABLE, str(tmp_path))
    with pytest.raises(LabError, match="holds no laboratory"):
        Lab.connect()


def test_an_ordinary_user_has_no_capabilities_left(lab: Lab) -> None:
    if os.geteuid() == 0:
        pytest.skip("root keeps his")
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    sets = {line.split()[0]: int(line.split()[1], 16) for line in lines if line.startswith("Cap")}
    assert set(sets.values()) == {0}
    assert sets.keys() == {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"}


def test_interrupts_reach_the_command() -> None:
    import signal

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
