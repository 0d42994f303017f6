"""The clients that checks send into sandboxes really get out where nothing holds them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.lab.errors import LabUnavailable
from conformance.lab.launch import run_in_lab

ROOT = Path(__file__).parents[1]

# Runs in a sealed lab: a box that is this machine itself, without any policy.
INSIDE = """
import subprocess, sys
from conformance.lab.client import Lab
from conformance.probes import discovery
from conformance.probes.places import destination
from sandboxes import SandboxExecutionResult

class Box:
    def execute(self, command, *, timeout_seconds=None):
        ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True,
                             errors="replace", stdin=subprocess.DEVNULL, timeout=timeout_seconds)
        return SandboxExecutionResult(ran.returncode, ran.stdout, ran.stderr)

box, lab = Box(), Lab.connect("probes")
found = discovery.found(box)
for client in found:
    for scheme in client.commands:
        for family in (4, 6):
            site = lab.site(family=family)
            ran = box.execute(client.command(scheme, destination(scheme, site)), timeout_seconds=20)
            if not lab.seen(site):
                print("SILENT", client.name, scheme, family, ran)
            if client.prints and scheme in ("https", "http") and site.token not in ran.stdout:
                print("UNANSWERED", client.name, scheme, family, ran)
print("FOUND", *(client.name for client in found))
"""


def test_every_client_reaches_the_lab_by_each_of_its_schemes(
    capfd: pytest.CaptureFixture[str],
) -> None:
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    # The prober needs a python3 on the path, and the suite's own is sure to be one.
    environ["PATH"] = f"{Path(sys.executable).parent}:{environ['PATH']}"
    try:
        code = run_in_lab(
            [sys.executable, "-c", INSIDE],
            mode="sealed",
            cwd=ROOT,
            results=[],
            environ=environ,
            pass_fds=[],
            on_fallback=pytest.fail,
        )
    except LabUnavailable as reason:
        pytest.skip(f"a sealed lab cannot be had here: {reason}")
    printed = capfd.readouterr().out.splitlines()
    assert code == 0
    assert [line for line in printed if line.startswith(("SILENT", "UNANSWERED"))] == []
    (found,) = [line.split()[1:] for line in printed if line.startswith("FOUND")]
    assert {"bash", "python3", "getent"} <= set(found)


def test_a_listener_inside_tells_a_client_that_works_from_one_that_does_not() -> None:
    source = (ROOT / "conformance/probes/listener.py").read_text(encoding="utf-8")
    knock = "import socket; socket.create_connection(('127.0.0.1', %d)).sendall(b'x')"
    for port, dialled, heard in ((28411, 28411, True), (28412, 28413, False)):
        client = f'{sys.executable} -I -c "{knock % dialled}"'
        ran = subprocess.run(
            [sys.executable, "-I", "-c", source, "tcp", str(port), client],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert ("heard=42" in ran.stdout.split()) is heard
