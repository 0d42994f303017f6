"""Attacks with requests, on a host with a binding: raw bytes in, exact bytes out."""

from __future__ import annotations

import pytest

from tests.egress.world import API, BOUND, OTHER, QUICK, SECRET, request, run, world

CHUNKED = ("Transfer-Encoding: chunked",)


def post(path: str, *lines: str, body: bytes = b"") -> bytes:
    return request(path, *lines, method="POST") + body


REFUSED = {
    "Host of another": (request(host=OTHER), 421),
    "Host with another port": (request(host=f"{API}:8443"), 421),
    "two Hosts": (request("/v1/x", f"Host: {OTHER}"), 400),
    "two equal Hosts": (request("/v1/x", f"Host: {API}"), 400),
    "no Host": (b"GET /v1/x HTTP/1.1\r\n\r\n", 400),
    "no Host in HTTP/1.0": (b"GET /v1/x HTTP/1.0\r\n\r\n", 421),
    "Host with user info": (request(host=f"{API}@{OTHER}"), 400),
    "Host with a path": (request(host=f"{API}/{OTHER}"), 400),
    "two hosts in one Host": (request(host=f"{API}, {OTHER}"), 400),
    "absolute form": (request(f"https://{API}/v1/x"), 400),
    "absolute form of another": (request(f"https://{OTHER}/v1/x"), 400),
    "scheme-relative form is a path": (request(f"//{OTHER}/../v1/x"), 400),
    "asterisk form": (request("*", method="OPTIONS"), 400),
    "fragment": (request("/v1/x#y"), 400),
    "no HTTP": (b"\x00\x01\x02\r\n\r\n", 400),
    "TRACE": (request(method="TRACE"), 405),
    "TRACK": (request(method="TRACK"), 405),
    "CONNECT within": (b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test\r\n\r\n", 405),
    "HTTP/2 by prior knowledge": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "HTTP/0.9": (b"GET /v1/x\r\n\r\n", 400),
    "HTTP/1.2": (b"GET /v1/x HTTP/1.2\r\nHost: api.test\r\n\r\n", 400),
    "upgrade to h2c": (
        request("/v1/x", "Connection: upgrade, http2-settings", "Upgrade: h2c"),
        400,
    ),
    "upgrade to a websocket": (request("/v1/x", "Connection: upgrade", "Upgrade: websocket"), 400),
    "Connection names the bound header": (request("/v1/x", "Connection: x-api-key"), 400),
    "Connection names it with underscores": (request("/v1/x", "Connection: X_API_KEY"), 400),
    "Connection names Host": (request("/v1/x", "Connection: close, host"), 400),
    "length and chunks": (post("/v1/x", "Content-Length: 5", *CHUNKED, body=b"0\r\n\r\n"), 400),
    "chunks and length": (post("/v1/x", *CHUNKED, "Content-Length: 5", body=b"0\r\n\r\n"), 400),
    "two lengths": (post("/v1/x", "Content-Length: 0", "Content-Length: 5", body=b"aaaaa"), 400),
    "two equal lengths": (post("/v1/x", *["Content-Length: 1"] * 2, body=b"a"), 400),
    "two lengths in one": (post("/v1/x", "Content-Length: 0, 5", body=b"aaaaa"), 400),
    "two equal lengths in one": (post("/v1/x", "Content-Length: 1, 1", body=b"a"), 400),
    "length with a sign": (post("/v1/x", "Content-Length: +5", body=b"aaaaa"), 400),
    "hexadecimal length": (post("/v1/x", "Content-Length: 0x5", body=b"aaaaa"), 400),
    "negative length": (post("/v1/x", "Content-Length: -1"), 400),
    "length beyond numbers": (post("/v1/x", f"Content-Length: {10**19}"), 400),
    "two codings": (post("/v1/x", *CHUNKED, *CHUNKED, body=b"0\r\n\r\n"), 400),
    "unknown coding": (post("/v1/x", "Transfer-Encoding: xchunked", body=b"0\r\n\r\n"), 400),
    "coding before chunks": (
        post("/v1/x", "Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"),
        400,
    ),
    "chunks by identity": (post("/v1/x", "Transfer-Encoding: identity", body=b"0\r\n\r\n"), 400),
    "chunks in HTTP/1.0": (
        b"POST /v1/x HTTP/1.0\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "space before the colon": (
        post("/v1/x", "Transfer-Encoding : chunked", body=b"0\r\n\r\n"),
        400,
    ),
    "tab before the colon": (post("/v1/x", "Content-Length\t: 5", body=b"aaaaa"), 400),
    "header without a name": (request("/v1/x", ": x"), 400),
    "header without a colon": (request("/v1/x", "X-Api-Key"), 400),
    "bare LF ends a header": (b"GET /v1/x HTTP/1.1\r\nHost: api.test\nX: y\r\n\r\n", 400),
    "bare LF ends the head": (b"GET /v1/x HTTP/1.1\r\nHost: api.test\n\n", 400),
    "bare CR in a value": (request("/v1/x", "X: a\rX-Api-Key: mine"), 400),
    "bare CR ends the head": (b"GET /v1/x HTTP/1.1\r\nHost: api.test\r\n\r\r\n\r\n", 400),
    "NUL in a value": (request("/v1/x", "X: a\0b"), 400),
    "control character in a name": (request("/v1/x", "X\x01: a"), 400),
    "folded header": (request("/v1/x", "X: a", " X-Api-Key: mine"), 400),
    "header that begins with a tab": (request("/v1/x", "X: a", "\tX-Api-Key: mine"), 400),
    "line before the request": (b"\r\n" + request(), 400),
    "space before the request": (b" " + request(), 400),
    "space in the target": (request("/v1/x y"), 400),
    "other letters in the target": (request("/v1/\xe4"), 400),
    "unknown expectation": (
        post("/v1/x", "Expect: 200-maybe", "Content-Length: 1", body=b"a"),
        417,
    ),
    "head too long": (request("/v1/x", "X: " + "a" * 70_000), 431),
    "target too long": (request("/v1/" + "a" * 70_000), 431),
    "too many headers": (request("/v1/x", *["X: y"] * 300), 431),
    "/v1/../x": (request("/v1/../x"), 400),
    "/v1/..": (request("/v1/.."), 400),
    "/x/../v1/y": (request("/x/../v1/y"), 400),
    "/v1/%2e%2e/x": (request("/v1/%2e%2e/x"), 400),
    "/v1/.%2E/x": (request("/v1/.%2E/x"), 400),
    "/v1/..%2fx": (request("/v1/..%2fx"), 400),
    "/v1/%252e%252e/x": (request("/v1/%252e%252e/x"), 400),
    "/v1/%25252e%25252e/x": (request("/v1/%25252e%25252e/x"), 400),
    "/v1/%2525252525252525252e/x": (request("/v1/%2525252525252525252e/x"), 400),
    "//v1/x": (request("//v1/x"), 400),
    "/v1//../x": (request("/v1//../x"), 400),
    "/v1/..\\x": (request("/v1/..\\x"), 400),
    "/v1/%5c..%5cx": (request("/v1/%5c..%5c..%5cx"), 400),
    "/v1/..;/x": (request("/v1/..;/x"), 400),
    "/v1/..;a=b/x": (request("/v1/..;a=b/x"), 400),
    "/v1;a/x": (request("/v1;a/x"), 400),
    "/v1%3f/../x": (request("/v1%3f/../x"), 400),
    "/v1%00x": (request("/v1%00x"), 400),
    "/%76%31/x": (request("/%76%31/x"), 400),
}


@pytest.mark.parametrize(("raw", "status"), REFUSED.values(), ids=REFUSED)
def test_a_doubtful_request_is_refused_before_anything_is_dialled(raw: bytes, status: int) -> None:
    async def attack() -> None:
        async with world() as here:
            reply = await here.ask(API, raw)
            assert reply.status == status
            assert reply.body.startswith(b"egress proxy: ")
            assert here.dialled == []
            assert (await here.ask(API, request())).status == 200
            assert here.api.seen[-1].values(b"X-Api-Key") == [BOUND]

    run(attack())


BROKEN_BODIES = {
    "chunk with a wrong end": b"5\r\naaaaaXX0\r\n\r\n",
    "chunk without an end": b"5\r\naaaaa0\r\n\r\n",
    "chunk size with a sign": b"+5\r\naaaaa\r\n0\r\n\r\n",
    "chunk size with 0x": b"0x5\r\naaaaa\r\n0\r\n\r\n",
    "chunk size beyond numbers": b"f" * 40 + b"\r\naaaaa",
    "chunk size is negative": b"-1\r\naaaaa\r\n0\r\n\r\n",
    "chunk extension without an end": b"5;" + b"a" * 100_000,
    "trailer with a bare CR": b"0\r\nX: a\rb\r\n\r\n",
}


@pytest.mark.parametrize("body", BROKEN_BODIES.values(), ids=BROKEN_BODIES)
def test_a_broken_body_never_ends_at_the_origin(body: bytes) -> None:
    async def attack() -> None:
        async with world() as here:
            reply = await here.ask(API, post("/v1/x", *CHUNKED, body=body))
            assert reply.status == 400
            assert here.api.seen == []
            assert not here.api.raw.endswith(b"0\r\n\r\n")
            right = post("/v1/x", *CHUNKED, body=b"5;x=y\r\naaaaa\r\n0\r\nX-Trailer: 1\r\n\r\n")
            assert (await here.ask(API, right)).status == 200
            assert here.api.seen[-1].body == b"aaaaa"

    run(attack())


ENDLESS_BODIES = {
    "chunk lines end in bare LFs": b"5\naaaaa\n0\n\n",
    "chunk lines end in bare CRs": b"5\raaaaa\r0\r\r",
    "half of a chunk": b"5\r\naa",
}


@pytest.mark.parametrize("body", ENDLESS_BODIES.values(), ids=ENDLESS_BODIES)
def test_a_body_without_an_end_is_given_up(body: bytes) -> None:
    async def attack() -> None:
        async with world(limits=QUICK) as here:
            assert (await here.ask(API, post("/v1/x", *CHUNKED, body=body))).status == 408
            assert here.api.seen == []
            assert not here.api.raw.endswith(b"0\r\n\r\n")

    run(attack())


NEUTRALISED = {
    "client's own bound header": (request("/v1/x", "X-Api-Key: mine"), b"X-Api-Key", [BOUND]),
    "it twice and in odd case": (
        request("/v1/x", "x-aPI-key: a", "X-API-KEY: b"),
        b"X-Api-Key",
        [BOUND],
    ),
    "it with underscores": (request("/v1/x", "X_Api_Key: mine"), b"X_Api_Key", []),
    "it outside of the prefix": (request("/x", "X-Api-Key: mine"), b"X-Api-Key", []),
    "path that begins as the prefix": (request("/v1evil"), b"X-Api-Key", []),
    "prefix in the query": (request("/x?/v1/y=/v1/"), b"X-Api-Key", []),
    "dots in the query": (request("/v1/x?a=/../%2e%2e//"), b"X-Api-Key", [BOUND]),
    "prefix in other case": (request("/V1/x"), b"X-Api-Key", []),
    "/v1%2f..%2fx, in no reading under it": (request("/v1%2f..%2fx"), b"X-Api-Key", []),
    "/v1\\..\\x, in no reading under it": (request("/v1\\..\\x"), b"X-Api-Key", []),
    "encoded slash under the prefix": (request("/v1/a%2Fb"), b"X-Api-Key", [BOUND]),
    "empty segment under the prefix": (request("/v1//x"), b"X-Api-Key", [BOUND]),
    "the prefix alone": (request("/v1"), b"X-Api-Key", [BOUND]),
    "the prefix with a query": (request("/v1?x"), b"X-Api-Key", [BOUND]),
    "Proxy-Authorization": (
        request("/v1/x", "Proxy-Authorization: Basic eA=="),
        b"Proxy-Authorization",
        [],
    ),
    "Connection": (request("/v1/x", "Connection: x-drop", "X-Drop: 1"), b"X-Drop", []),
    "TE and Trailer": (request("/v1/x", "TE: trailers", "Trailer: X"), b"TE", []),
    "Keep-Alive": (request("/v1/x", "Keep-Alive: timeout=999"), b"Keep-Alive", []),
    "Range": (request("/v1/x", "Range: bytes=0-3"), b"Range", []),
    "Accept-Encoding": (
        request("/v1/x", "Accept-Encoding: gzip, br"),
        b"Accept-Encoding",
        [b"identity"],
    ),
    "Host in capitals and with a dot": (request(host="API.Test.:443"), b"Host", [b"api.test"]),
    "Expect": (
        post("/v1/x", "Expect: 100-Continue", "Content-Length: 1", body=b"a"),
        b"Expect",
        [],
    ),
    "trailer of the bound name": (
        post("/v1/x", *CHUNKED, body=b"1\r\na\r\n0\r\nX-Api-Key: mine\r\n\r\n"),
        b"X-Api-Key",
        [BOUND],
    ),
}


@pytest.mark.parametrize(("raw", "header", "values"), NEUTRALISED.values(), ids=NEUTRALISED)
def test_what_would_steer_is_taken_out(raw: bytes, header: bytes, values: list[bytes]) -> None:
    async def attack() -> None:
        async with world() as here:
            assert (await here.ask(API, raw)).status == 200
            (seen,) = here.api.seen
            assert seen.values(header) == values
            assert b"mine" not in here.api.raw

    run(attack())


def test_pipelined_requests_are_judged_one_by_one() -> None:
    async def attack() -> None:
        async with world() as here:
            client = await here.tunnel(API)
            await client.send(request("/v1/1") + request("/x") + request("/v1/../x"))
            replies = [(await client.reply()).status for _ in range(3)]
            assert replies == [200, 200, 400]
            assert [seen.values(b"X-Api-Key") for seen in here.api.seen] == [[BOUND], []]
            assert await client.rest() == b""
            await client.close()

    run(attack())


def test_a_request_in_a_body_stays_a_body() -> None:
    async def attack() -> None:
        inner = request("/v1/inner")
        async with world() as here:
            client = await here.tunnel(API)
            await client.send(post("/x", f"Content-Length: {len(inner)}", body=inner))
            assert (await client.reply()).status == 200
            await client.send(post("/x", "Content-Length: 0", body=inner))
            assert [(await client.reply()).status for _ in range(2)] == [200, 200]
            lines = [(seen.line, seen.values(b"X-Api-Key")) for seen in here.api.seen]
            assert lines == [
                (b"POST /x HTTP/1.1", []),
                (b"POST /x HTTP/1.1", []),
                (b"GET /v1/inner HTTP/1.1", [BOUND]),
            ]
            await client.close()

    run(attack())


def test_a_connection_that_was_good_is_judged_again_for_each_request() -> None:
    async def attack() -> None:
        async with world() as here:
            client = await here.tunnel(API)
            for _ in range(3):
                await client.send(request())
                assert (await client.reply()).status == 200
            await client.send(request(host=OTHER))
            assert (await client.reply()).status == 421
            await client.send(request())
            assert (await client.reply()).cut
            assert here.api.connections == 1
            assert len(here.api.seen) == 3
            await client.close()

    run(attack())


def test_large_bodies_pass_unchanged_both_ways() -> None:
    async def upload() -> None:
        body = bytes(range(256)) * 4000
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:7], body[7:]))
        async with world() as here:
            here.api.answers[b"/v1/big"] = (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
            )
            client = await here.tunnel(API)
            await client.send(post("/v1/big", *CHUNKED, body=chunks + b"0\r\n\r\n"))
            assert (await client.reply()).body == body
            assert here.api.seen[0].body == body
            await client.close()

    run(upload())


def test_the_secret_goes_to_its_own_host_alone() -> None:
    async def attack() -> None:
        async with world() as here:
            await here.ask(OTHER, request(host=OTHER))
            assert here.other.seen[0].values(b"X-Api-Key") == []
            here.api.answers[b"/v1/away"] = (
                b"HTTP/1.1 302 Found\r\nLocation: https://other.test/v1/x\r\n"
                b"Content-Length: 0\r\n\r\n"
            )
            moved = await here.ask(API, request("/v1/away"))
            assert moved.status == 302
            assert b"https://other.test/v1/x" in moved.head
            assert len(here.other.seen) == 1
            assert SECRET.encode() not in here.other.raw

    run(attack())
