"""What leaves a Bubblewrap sandbox: through its proxy, to a small internet on loopback."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sandboxes import OpenRequest
from sandboxes.bubblewrap_sandbox import BubblewrapSandbox
from sandboxes.contract import Network
from sandboxes.egress import EgressProxy
from tests.egress.test_clients import NODE, URLLIB
from tests.egress.world import API, BINDING, BOUND, LISTED, OTHER, SECRET, World, run, world
from tests.sandboxes.test_bubblewrap import needs_bwrap

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator

    from sandboxes import RunningSandbox

pytestmark = needs_bwrap

CLIENTS = {
    "curl": "curl -sS {url}",
    "git": "git ls-remote {url}",
    "python": f"python3 -I -c '{URLLIB}' {{url}}",
    "node": 'node -e "$NODE" {url}',
}


class InTheWorld(BubblewrapSandbox):
    """Whose proxy dials and asks for names in a world of its own."""

    def __init__(self, here: World, **options: Any) -> None:
        super().__init__(**options)
        self.here = here

    def _new_proxy(self, request: OpenRequest, listener: socket.socket) -> EgressProxy:
        options = self._proxy_options(request, listener)
        return EgressProxy(self.network, **options, resolve=self.here.resolve, dial=self.here.dial)


@asynccontextmanager
async def opened(
    network: Network = LISTED, bindings: Any = (BINDING,)
) -> AsyncIterator[tuple[World, RunningSandbox]]:
    async with world() as here:
        with tempfile.NamedTemporaryFile() as bundle:
            bundle.write(here.ca.cert_pem.bytes())
            bundle.flush()
            request = OpenRequest(
                session_id="s",
                ca_bundle=Path(bundle.name),
                secrets={"key": SECRET} if bindings else {},
            )
            sandbox = InTheWorld(here, network=network, header_bindings=bindings)
            async with sandbox.open(request) as box:
                yield here, box


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_a_client_reaches_listed_hosts_and_is_told_of_others(client: str) -> None:
    async def use() -> None:
        async with opened() as (here, box):
            program = client.split()[0]
            if (await box.execute(f"command -v {program}")).exit_code != 0:
                pytest.skip(f"{program} is not installed")
            await box.write_file("node.js", NODE.encode())
            for host in (API, OTHER, "evil.test"):
                command = client.format(url=f"https://{host}/v1/x")
                done = await box.execute(f"export NODE=$(cat node.js); {command}")
                if host == "evil.test":
                    assert done.exit_code != 0
                    break
                assert here.origins[host].seen, done
                assert here.origins[host].seen[0].line.startswith(b"GET /v1/x")
                bound = [BOUND] if host == API else []
                assert {tuple(one.values(b"X-Api-Key")) for one in here.origins[host].seen} == {
                    tuple(bound)
                }
            assert set(here.asked) == {API, OTHER}

    run(use())


def test_what_goes_round_the_proxy_reaches_nothing() -> None:
    async def use() -> None:
        async with opened() as (here, box):
            around = await box.execute(
                f"curl -sS --noproxy '*' https://{API}/; curl -sS --noproxy '*' https://9.9.9.1/;"
                f"curl -sS http://{API}/; curl -sS -x '' --resolve {API}:443:9.9.9.1 https://{API}/"
            )
            assert around.exit_code != 0
            assert here.api.connections == 0
            # The control: the same client, through the proxy.
            assert (await box.execute(f"curl -sS https://{API}/")).stdout == "ok"
            assert here.api.connections == 1

    run(use())


def test_the_secret_is_nowhere_inside() -> None:
    async def use() -> None:
        async with opened() as (here, box):
            await box.write_file("decoy", b"a" + SECRET.encode())
            # In pieces, so that the search does not find itself.
            head, tail = SECRET[:5], SECRET[5:]
            done = await box.execute(
                f"curl -sS https://{API}/v1/x; echo; p={head}; p=$p'{tail}'; env | grep -F \"$p\";"
                'grep -raFl "$p" /workspace /tmp /home /etc /run /proc/[0-9]*/environ 2>/dev/null'
            )
            assert done.stdout.split() == ["ok", "/workspace/decoy"]
            assert here.api.seen[0].values(b"X-Api-Key") == [BOUND]

    run(use())


def test_two_sessions_have_each_their_own_list() -> None:
    async def use() -> None:
        async with opened() as (here, one):
            other = InTheWorld(here, network=Network.allow(hosts=(OTHER,)))
            async with other.open(OpenRequest(session_id="t")) as box:
                command = f"curl -sSk https://{API}/; curl -sSk https://{OTHER}/"
                both = await asyncio.gather(one.execute(command), box.execute(command))
            assert both[0].stdout == "okok"
            assert both[1].stdout == "ok"
            assert here.api.connections == 1

    run(use())
