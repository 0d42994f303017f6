"""The proxy as a sandbox uses it: outside, with a listening socket from inside."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from sandboxes import SandboxStartError
from sandboxes.contract import Network
from sandboxes.egress import EgressProxy, listening_inside
from tests.egress.world import PATIENCE, run

if TYPE_CHECKING:
    from collections.abc import Iterator

PORT = 3128
# Says that it is inside, waits to be told that somebody listens there, and is a client.
CLIENT = f"""
import socket
print("here", flush=True)
input()
with socket.create_connection(("127.0.0.1", {PORT}), timeout=20) as client:
    client.sendall(b"CONNECT evil.test:443 HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n")
    print(client.recv(4096).decode())
"""


@contextmanager
def inside(*namespaces: str) -> Iterator[subprocess.Popen[str]]:
    if shutil.which("unshare") is None:
        pytest.skip("there are no network namespaces here")
    process = subprocess.Popen(
        ["unshare", *namespaces, sys.executable, "-c", CLIENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "here\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    "namespaces",
    [
        ["--map-root-user", "--net"],
        pytest.param(
            ["--net"], marks=pytest.mark.skipif(os.geteuid() != 0, reason="root alone may do so")
        ),
    ],
    ids=["with a user namespace", "without"],
)
def test_what_is_inside_is_served_from_outside(namespaces: list[str]) -> None:
    async def use(process: subprocess.Popen[str]) -> str:
        network = Network.allow(hosts=("listed.test",))
        async with (
            listening_inside(process.pid, PORT) as listener,
            EgressProxy(network, listen=listener),
        ):
            said, _ = await asyncio.to_thread(process.communicate, "\n", PATIENCE)
        return said

    answers = []

    async def answered() -> None:
        with inside(*namespaces) as process:
            answers.append(await use(process))

    run(answered())
    assert answers[0].startswith("HTTP/1.1 403 ")
    assert "Network.allow() does not list evil.test" in answers[0]


def refusal(pid: int, port: int) -> str:
    async def use() -> None:
        async with listening_inside(pid, port):
            pytest.fail("it listens")

    with pytest.raises(SandboxStartError) as caught:
        run(use())
    return str(caught.value)


def test_nobody_listens_in_the_network_of_this_process_by_mistake() -> None:
    assert "no namespace of its own" in refusal(os.getpid(), PORT)


def test_a_process_that_is_gone_is_named() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert f"process {gone.pid} (" in refusal(gone.pid, PORT)


def test_a_port_that_is_taken_is_said_to_be() -> None:
    async def use(pid: int) -> None:
        async with listening_inside(pid, PORT):
            assert "in use" in await asyncio.to_thread(refusal, pid, PORT)

    with inside("--map-root-user", "--net") as process:
        run(use(process.pid))
