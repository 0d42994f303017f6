"""The proxy as a sandbox uses it: outside, with a listening socket from inside."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys

import pytest

from sandboxes.contract import Network
from sandboxes.egress import EgressProxy
from tests.egress.world import PATIENCE, run

# Brings the namespace's loopback up, listens there, hands the socket over, and then is a client.
INSIDE = """
import fcntl, socket, struct, sys
with socket.socket() as one:
    fcntl.ioctl(one, 0x8914, struct.pack("16sH", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up, running
listener = socket.socket()
listener.bind(("127.0.0.1", 3128))
channel = socket.socket(fileno=int(sys.argv[1]))
socket.send_fds(channel, [b"here"], [listener.fileno()])
listener.close()
channel.recv(1)
with socket.create_connection(("127.0.0.1", 3128), timeout=20) as client:
    client.sendall(b"CONNECT evil.test:443 HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n")
    print(client.recv(4096).decode())
"""


def test_a_socket_that_was_made_in_a_network_namespace_is_served_from_outside() -> None:
    if shutil.which("unshare") is None:
        pytest.skip("there are no network namespaces here")
    namespaces = ["--net"] if os.geteuid() == 0 else ["--map-root-user", "--net"]

    async def use() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            process = await asyncio.create_subprocess_exec(
                *("unshare", *namespaces, sys.executable, "-c", INSIDE, str(theirs.fileno())),
                pass_fds=[theirs.fileno()],
                stdout=asyncio.subprocess.PIPE,
            )
            theirs.close()
            try:
                ours.settimeout(PATIENCE)
                said, handed_over, _, _ = await asyncio.to_thread(socket.recv_fds, ours, 9, 1)
                assert said == b"here"
                listener = socket.socket(fileno=handed_over[0])
                network = Network.allow(hosts=("listed.test",))
                async with EgressProxy(network, listen=listener):
                    ours.send(b"x")
                    answer, _ = await process.communicate()
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert b"Network.allow() does not list evil.test" in answer

    run(use())
