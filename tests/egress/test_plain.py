"""Plain HTTP through the proxy: refused under `allow()`, let through under `all()`."""

from __future__ import annotations

import pytest

from sandboxes.contract import Network
from tests.egress.world import API, LISTED, OTHER, run, world


def absolute(url: str, *lines: str, host: str = OTHER, body: bytes = b"") -> bytes:
    head = [f"GET {url} HTTP/1.1", f"Host: {host}", *lines]
    return "\r\n".join([*head, "", ""]).encode() + body


@pytest.mark.parametrize("network", [LISTED, Network.none()], ids=["allow", "none"])
@pytest.mark.parametrize("port", ["", ":80", ":443"])
def test_plain_http_is_refused(network: Network, port: str) -> None:
    async def attack() -> None:
        async with world(network, bindings=()) as here:
            reply = await here.plain(absolute(f"http://{OTHER}{port}/x", host=OTHER + port))
            assert reply.status == 403
            assert b"Network." in reply.body
            assert (here.asked, here.dialled) == ([], [])

    run(attack())


DISAGREEING = {
    "Host of another": absolute(f"http://{OTHER}/", host=API),
    "user info": absolute(f"http://{API}@{OTHER}/"),
    "back-slash": absolute(f"http://{API}\\@{OTHER}/"),
    "fragment": absolute(f"http://{OTHER}/#x"),
    "https": absolute(f"https://{OTHER}/"),
    "ftp": absolute(f"ftp://{OTHER}/"),
    "file": absolute("file:///etc/passwd"),
    "no host": absolute("http:///x"),
    "half a bracket": absolute("http://[::1/x"),
    "TRACE": absolute(f"http://{OTHER}/").replace(b"GET", b"TRACE"),
    "Connection names Host": absolute(f"http://{OTHER}/", "Connection: host"),
}


@pytest.mark.parametrize("raw", DISAGREEING.values(), ids=DISAGREEING)
def test_a_request_of_two_minds_is_refused(raw: bytes) -> None:
    async def attack() -> None:
        async with world(Network.all()) as here:
            assert (await here.plain(raw)).status in (400, 405)
            assert (here.asked, here.dialled) == ([], [])

    run(attack())


def test_all_lets_it_through_without_any_secret() -> None:
    async def use() -> None:
        async with world(Network.all()) as here:
            client = await here.connect()
            drop = ("Proxy-Connection: keep-alive", "Proxy-Authorization: Basic eA==")
            await client.send(absolute(f"http://{API}/v1/x?a=b", *drop, host=API))
            assert (await client.reply()).status == 200
            await client.send(absolute(f"http://{OTHER}?q"))
            assert (await client.reply()).status == 200
            assert here.api.seen[0].head == b"GET /v1/x?a=b HTTP/1.1\r\nHost: api.test\r\n\r\n"
            assert here.other.seen[0].head == b"GET /?q HTTP/1.1\r\nHost: other.test\r\n\r\n"
            await client.close()

    run(use())
