"""Programs as they are used inside: they need the environment, and nothing else."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from sandboxes.contract import Network
from tests.egress.programs import run_program
from tests.egress.world import API, BOUND, OTHER, SECRET, run, world

if TYPE_CHECKING:
    from pathlib import Path

    from tests.egress.world import World

URLLIB = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"
# Node before 24 does not look at the proxy's variables: the tunnel is its user's to make.
NODE = """
const http = require('http'), tls = require('tls'), url = new URL(process.argv[1]);
const proxy = new URL(process.env.HTTPS_PROXY);
const ask = {host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: url.host + ':443'};
http.request(ask).on('connect', (reply, socket) => {
  if (reply.statusCode !== 200) { console.log(reply.statusMessage); process.exit(1); }
  const inner = tls.connect({socket, servername: url.host}, () => {
    const head = [`GET ${url.pathname} HTTP/1.1`, `Host: ${url.host}`, 'Connection: close'];
    inner.write(head.concat('', '').join('\\r\\n'));
    inner.on('data', data => process.stdout.write(data)).on('end', () => process.exit(0));
  });
  inner.on('error', error => { console.log(error); process.exit(1); });
}).end();
"""
CLIENTS = {
    "curl": ["curl", "-sS"],
    "git": ["git", "ls-remote"],
    "python": [sys.executable, "-c", URLLIB],
    "node": ["node", "-e", NODE],
}


async def ran(here: World, folder: Path, *command: str) -> tuple[int, str]:
    """Run a program in the environment that the proxy gives, and no other."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    ca_file = folder / "ca.pem"
    ca_file.write_bytes(here.proxy.ca_pem)
    address = ":".join(map(str, here.address))
    environment = here.proxy.environ(address, str(ca_file)) | {"PATH": os.environ["PATH"]}
    assert SECRET not in str(environment)
    return await run_program(*command, environment=environment)


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
@pytest.mark.parametrize("host", [API, OTHER])
def test_a_client_reaches_listed_hosts(client: list[str], host: str, tmp_path: Path) -> None:
    async def use() -> None:
        async with world() as here:
            await ran(here, tmp_path, *client, f"https://{host}/v1/x")
            assert here.origins[host].seen
            for seen in here.origins[host].seen:
                assert seen.line.startswith(b"GET /v1/x")
                assert seen.values(b"X-Api-Key") == ([BOUND] if host == API else [])

    run(use())


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_a_client_is_told_why_it_does_not_reach_another(client: list[str], tmp_path: Path) -> None:
    async def use() -> None:
        async with world() as here:
            code, said = await ran(here, tmp_path, *client, "https://evil.test/v1/x")
            assert code != 0
            assert "403" in said or "does not list evil.test" in said
            assert (here.asked, here.dialled) == ([], [])

    run(use())


def test_openssl_sees_the_refusal_of_a_name(tmp_path: Path) -> None:
    async def use() -> None:
        async with world() as here:
            address = ":".join(map(str, here.address))
            ask = ["openssl", "s_client", "-proxy", address, "-connect", f"{API}:443"]
            code, said = await ran(here, tmp_path, *ask, "-verify_return_error")
            assert (code, "Verify return code: 0 (ok)" in said) == (0, True)
            code, said = await ran(here, tmp_path, *ask, "-servername", "evil.test")
            assert code != 0
            assert "unrecognized name" in said

    run(use())


def test_plain_http_is_refused_in_words(tmp_path: Path) -> None:
    async def use() -> None:
        async with world(Network.allow(hosts=(OTHER,)), bindings=()) as here:
            code, said = await ran(here, tmp_path, "curl", "-sS", f"http://{OTHER}/")
            assert code == 0
            assert "Network.allow() blocks plain HTTP" in said
            assert here.dialled == []

    run(use())
