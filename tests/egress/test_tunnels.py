"""Attacks with tunnels: what may be asked for, and what must come first in one."""

from __future__ import annotations

import asyncio
import ssl

import pytest

from sandboxes.contract import Network
from tests.egress import hellos
from tests.egress.world import API, LISTED, OTHER, PATIENCE, Client, World, request, run, world

# Names other hosts that exist, and answer: what is refused would be reached.
CONNECTS = {
    "host that is not listed": ("evil.test:443", 403),
    "sub-domain of a listed one": (f"x.{OTHER}:443", 403),
    "listed one as a sub-domain": (f"{OTHER}.evil.test:443", 403),
    "listed one as a suffix": (f"evil{OTHER}:443", 403),
    "another port": (f"{OTHER}:80", 403),
    "address of a listed name": ("9.9.9.2:443", 403),
    "its mapped address": ("[::ffff:9.9.9.2]:443", 403),
    "its address as one number": (f"{0x09090902}:443", 400),
    "its address in hexadecimal": ("0x09090902:443", 400),
    "its address in octal": ("011.011.011.02:443", 400),
    "its address in two parts": ("9.9.2306:443", 400),
    "no port": (OTHER, 400),
    "empty port": (f"{OTHER}:", 400),
    "port 0": (f"{OTHER}:0", 400),
    "port out of range": (f"{OTHER}:65979", 400),
    "port with a sign": (f"{OTHER}:+443", 400),
    "two ports": (f"{OTHER}:443:443", 400),
    "user info": (f"{OTHER}@evil.test:443", 400),
    "host as user info": (f"evil.test@{OTHER}:443", 400),
    "path": (f"{OTHER}:443/x", 400),
    "scheme": (f"https://{OTHER}:443", 400),
    "wildcard": ("*.test:443", 400),
    "percent encoding": ("other%2etest:443", 400),
    "back-slash": (f"{OTHER}\\evil.test:443", 400),
    "fragment": (f"{OTHER}#evil.test:443", 400),
    "empty host": (":443", 400),
    "empty label": ("other..test:443", 400),
    "brackets around a name": (f"[{OTHER}]:443", 400),
    "half a bracket": ("[::1:443", 400),
    "zone": ("[fe80::1%25eth0]:443", 400),
    "letters beyond ASCII": ("öther.test:443", 400),
    "full-width letters": ("\uff4fther.test:443", 400),
}


def connect(target: str, *lines: str) -> bytes:
    head = [f"CONNECT {target} HTTP/1.1", *(lines or [f"Host: {target}"])]
    return "\r\n".join([*head, "", ""]).encode()


async def first_bytes(here: World, host: str, sent: bytes) -> Client:
    """Open a tunnel, and send bytes of one's own in it."""
    client = await here.connect()
    await client.send(connect(f"{host}:443", f"Host: {host}:443"))
    assert (await client.reply()).status == 200
    await client.send(sent)
    return client


@pytest.mark.parametrize(("target", "status"), CONNECTS.values(), ids=CONNECTS)
def test_a_tunnel_elsewhere_is_refused_and_nothing_is_asked_or_dialled(
    target: str, status: int
) -> None:
    async def attack() -> None:
        async with world() as here:
            for name in ("evil.test", f"x.{OTHER}", f"{OTHER}.evil.test", f"evil{OTHER}"):
                here.addresses[name] = ["9.9.9.2"]
            reply = await here.plain(connect(target, f"Host: {target}"))
            assert reply.status == status
            assert reply.body.startswith(b"egress proxy: ")
            assert (here.asked, here.dialled) == ([], [])
            assert (await here.ask(OTHER, request(host=OTHER))).status == 200

    run(attack())


SPELLINGS = ("OTHER.test:443", "other.test.:443", "other.test:0443")


@pytest.mark.parametrize("target", SPELLINGS)
def test_other_spellings_of_a_listed_host_are_let_through(target: str) -> None:
    async def use() -> None:
        async with world() as here:
            reply = await here.plain(connect(target, f"Host: {target}"))
            assert reply.status == 200
            assert here.dialled == [("9.9.9.2", 443)]

    run(use())


ODD_CONNECTS = {
    "Host of a listed one": (connect("evil.test:443", f"Host: {OTHER}:443"), 403),
    "two Hosts": (connect(f"{OTHER}:443", f"Host: {OTHER}", "Host: evil.test"), 400),
    "body": (connect(f"{OTHER}:443", f"Host: {OTHER}", "Content-Length: 5") + b"hello", 400),
    "chunked body": (
        connect(f"{OTHER}:443", f"Host: {OTHER}", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
        400,
    ),
    "in small letters": (connect(f"{OTHER}:443", f"Host: {OTHER}").replace(b"CONN", b"conn"), 405),
    "SOCKS5": (b"\x05\x01\x00" + b"\r\n\r\n", 400),
    "SOCKS4": (b"\x04\x01\x01\xbb\x09\x09\x09\x02\x00\r\n\r\n", 400),
    "TLS to the proxy itself": (hellos.hello(OTHER) + b"\r\n\r\n", 400),
    "path as to an origin": (request("/v1/x", host=OTHER), 400),
}


@pytest.mark.parametrize(("raw", "status"), ODD_CONNECTS.values(), ids=ODD_CONNECTS)
def test_an_odd_word_to_the_proxy_is_refused(raw: bytes, status: int) -> None:
    async def attack() -> None:
        async with world() as here:
            assert (await here.plain(raw)).status == status
            assert (here.asked, here.dialled) == ([], [])

    run(attack())


def test_the_host_header_of_a_tunnel_counts_for_nothing() -> None:
    async def use() -> None:
        async with world() as here:
            here.addresses["proxy.test"] = ["9.9.9.1"]
            assert (await here.plain(connect(f"{OTHER}:443", "Host: proxy.test:80"))).status == 200
            assert (here.asked, here.dialled) == ([OTHER], [("9.9.9.2", 443)])

    run(use())


def test_none_refuses_every_tunnel() -> None:
    async def attack() -> None:
        async with world(Network.none(), bindings=()) as here:
            for target in (f"{OTHER}:443", "9.9.9.2:443", f"{OTHER}:80"):
                reply = await here.plain(connect(target))
                assert reply.status == 403
                assert b"Network.none() blocks " in reply.body
            assert (here.asked, here.dialled) == ([], [])

    run(attack())


NAMES = {
    "another": "evil.test",
    "another listed one": API,
    "none": None,
    "sub-domain": "x.other.test",
}


@pytest.mark.parametrize("host", [API, OTHER])
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_another_server_name_is_refused_with_an_alert(host: str, name: str | None) -> None:
    name = OTHER if name == host else name

    async def attack() -> None:
        async with world() as here:
            with pytest.raises(ssl.SSLError, match=r"(?i)unrecognized name|missing extension"):
                await here.tunnel(host, sni=name)
            assert here.origins[host].raw == b""
            assert (await here.ask(host, request(host=host))).status == 200

    run(attack())


RIGHT = hellos.hello(OTHER)
NO_HELLO = {
    "plain HTTP": request(host=OTHER),
    "SSH": b"SSH-2.0-x\r\n",
    "alert": b"\x15\x03\x03\x00\x02\x02\x28",
    "application data": b"\x17\x03\x03\x00\x05hello",
    "ServerHello": b"\x16\x03\x03\x00\x04\x02\x00\x00\x00",
    "SSL 2 hello": b"\x80\x2e\x01\x03\x01" + b"\0" * 41,
    "empty record": b"\x16\x03\x01\x00\x00",
    "record too long": b"\x16\x03\x01\xff\xff",
    "hello too long": b"\x16\x03\x01\x40\x00\x01\xff\xff\xff",
    "name cut short": RIGHT.replace(b"\0\0\x0aother", b"\0\0\x0bother"),
    "hidden name (ECH)": hellos.with_extension(RIGHT, hellos.ECH, b"\0" * 32),
    "two names": hellos.with_extension(RIGHT, 0, b"\0\x07\0\0\x04evil"),
    "two names, the right one last": hellos.with_extension(
        hellos.hello("evil.test"), 0, b"\0\x0d\0\0\x0aother.test"
    ),
    "name that ends in NUL": hellos.hello("other.testX").replace(b"other.testX", b"other.test\0"),
    "name with a port": hellos.hello("other.test:443"),
}


@pytest.mark.parametrize("sent", NO_HELLO.values(), ids=NO_HELLO)
def test_a_tunnel_that_begins_with_anything_else_carries_nothing(sent: bytes) -> None:
    async def attack() -> None:
        async with world() as here:
            seen = await tap(here, OTHER)
            client = await first_bytes(here, OTHER, sent)
            assert (await client.rest())[:1] in (b"\x15", b"")
            assert seen.data == b""
            await client.close()

    run(attack())


class Tap:
    """A bare server's log of all that it was sent."""

    def __init__(self) -> None:
        self.data = b""
        self._more = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            self.data += data
            self._more.set()
        writer.close()

    async def until(self, count: int) -> bytes:
        """Wait until so many bytes were logged."""
        async with asyncio.timeout(PATIENCE):
            while len(self.data) < count:
                self._more.clear()
                await self._more.wait()
        return self.data


async def tap(here: World, host: str) -> Tap:
    """Put a bare server in place of an origin, that logs what comes before any TLS."""
    seen = Tap()

    server = await asyncio.start_server(seen.serve, "127.0.0.1", 0)
    here.closing(server)
    here.routes[here.addresses[host][0], 443] = server.sockets[0].getsockname()[1]
    return seen


RIGHT_HELLOS = {
    "as it comes": [RIGHT],
    "in small records": [hellos.records(RIGHT[5:], 50)],
    "byte by byte": [RIGHT[at : at + 1] for at in range(len(RIGHT))],
    "with more after it": [RIGHT + b"\x14\x03\x03\x00\x01\x01"],
    "with what nobody knows": [hellos.with_extension(RIGHT, hellos.UNKNOWN, b"\0" * 2000)],
    "name in capitals": [hellos.hello("OTHER.test")],
    "name with a dot": [hellos.hello("other.test.")],
}


@pytest.mark.parametrize("parts", RIGHT_HELLOS.values(), ids=RIGHT_HELLOS)
def test_a_right_hello_passes_to_the_byte(parts: list[bytes]) -> None:
    async def use() -> None:
        async with world() as here:
            seen = await tap(here, OTHER)
            client = await first_bytes(here, OTHER, b"")
            for part in parts:
                await client.send(part)
            whole = b"".join(parts)
            assert await seen.until(len(whole)) == whole
            await client.close()

    run(use())


def test_what_follows_a_right_hello_is_tls_or_cut() -> None:
    async def attack() -> None:
        async with world() as here:
            seen = await tap(here, OTHER)
            client = await first_bytes(here, OTHER, RIGHT)
            await seen.until(len(RIGHT))
            await client.send(request(host=OTHER))
            await client.rest()
            assert seen.data == RIGHT
            await client.close()

    run(attack())


def test_a_hello_sent_with_the_connect_is_judged_as_any_other() -> None:
    async def attack() -> None:
        async with world() as here:
            seen = await tap(here, OTHER)
            ask = connect(f"{OTHER}:443", f"Host: {OTHER}:443")
            client = await here.connect()
            await client.send(ask + RIGHT)
            assert (await client.reply()).status == 200
            assert await seen.until(len(RIGHT)) == RIGHT
            await client.close()
            await here.plain(ask + hellos.hello("evil.test"))
            await here.plain(ask + request(host=OTHER))
            assert seen.data == RIGHT

    run(attack())


@pytest.mark.parametrize("address", ["9.9.9.2", "[2606:4700::1111]"])
def test_an_address_is_asked_for_without_a_name(address: str) -> None:
    async def use() -> None:
        network = Network.allow(hosts=(address,))
        async with world(network, bindings=()) as here:
            seen = await tap(here, OTHER)
            here.routes["2606:4700::1111", 443] = here.routes["9.9.9.2", 443]
            bare = hellos.hello(None)
            client = await first_bytes(here, address, bare)
            assert await seen.until(len(bare)) == bare
            await client.close()
            client = await first_bytes(here, address, RIGHT)
            assert (await client.rest())[:1] == b"\x15"
            assert seen.data == bare
            await client.close()

    run(use())


def test_all_opens_tunnels_for_whatever_they_carry() -> None:
    async def use() -> None:
        async with world(Network.all()) as here:
            seen = await tap(here, OTHER)
            client = await first_bytes(here, OTHER, b"SSH-2.0-x\r\n")
            assert await seen.until(11) == b"SSH-2.0-x\r\n"
            await client.close()
            assert (await here.ask(API, request())).status == 200
            with pytest.raises(ssl.SSLError):
                await here.tunnel(API, sni=OTHER)

    run(use())


def test_a_listed_port_is_one_of_its_own() -> None:
    async def use() -> None:
        async with world(Network.allow(hosts=(f"{OTHER}:8443",)), bindings=()) as here:
            here.routes["9.9.9.2", 8443] = here.routes["9.9.9.2", 443]
            assert (await here.plain(connect(f"{OTHER}:443"))).status == 403
            assert (await here.ask(OTHER, request(host=OTHER), port=8443)).status == 200

    run(use())


def test_http_2_is_offered_in_no_opened_tunnel() -> None:
    async def use() -> None:
        async with world(LISTED) as here:
            client = await here.connect()
            await client.send(connect(f"{API}:443", f"Host: {API}:443"))
            assert (await client.reply()).status == 200
            context = here.trusting(here.session_ca)
            context.set_alpn_protocols(["h2", "http/1.1"])
            await client.start_tls(context, API)
            tls = client.writer.get_extra_info("ssl_object")
            assert tls.selected_alpn_protocol() == "http/1.1"
            await client.close()

    run(use())
