"""Origins that are not what they should be, or say what they should not."""

from __future__ import annotations

import datetime
import json
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from sandboxes.contract import HeaderBinding
from sandboxes.egress.redaction import RedactedStream, Redaction
from tests.egress.world import API, BINDING, BOUND, OTHER, SECRET, request, run, world

if TYPE_CHECKING:
    from collections.abc import Callable

HIDDEN = b"*" * len(SECRET)
PAST = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def answer(*lines: str, body: bytes = b"", status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode("latin-1") + body


CERTIFICATES: dict[str, Callable[[trustme.CA], trustme.LeafCert]] = {
    "of another host": lambda ca: ca.issue_cert(OTHER),
    "expired": lambda ca: ca.issue_cert(API, not_before=PAST, not_after=PAST),
    "of an unknown authority": lambda ca: trustme.CA().issue_cert(API),
    "of a wildcard elsewhere": lambda ca: ca.issue_cert("*.api.test"),
    "of nobody": lambda ca: ca.issue_cert(common_name=API),
}


@pytest.mark.parametrize("certificate", CERTIFICATES.values(), ids=CERTIFICATES)
def test_an_origin_with_a_wrong_certificate_gets_no_request(
    certificate: Callable[[trustme.CA], trustme.LeafCert],
) -> None:
    async def attack() -> None:
        async with world(certificates={API: certificate}) as here:
            reply = await here.ask(API, request())
            assert reply.status == 502
            assert b"certificate of api.test is not valid" in reply.body
            assert here.api.raw == b""

    run(attack())


UNUSABLE = {
    "no HTTP": b"\x00" * 100 + b"\r\n\r\n",
    "nothing": answer("Connection: close", status="")[:0] + b"\r\n\r\n",
    "101 unasked": answer("Upgrade: x", "Connection: upgrade", status="101 Switching"),
    "two lengths": answer("Content-Length: 1", "Content-Length: 2", body=b"ab"),
    "unknown coding": answer("Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"),
    "head too long": answer("X: " + "a" * 70_000, "Content-Length: 0"),
    "compressed although asked not to": answer(
        "Content-Encoding: gzip", "Content-Length: 1", body=b"x"
    ),
    "NUL in a header": answer("X: a\0b", "Content-Length: 0"),
}


@pytest.mark.parametrize("raw", UNUSABLE.values(), ids=UNUSABLE)
def test_an_answer_of_no_use_is_a_502(raw: bytes) -> None:
    async def attack() -> None:
        async with world() as here:
            here.api.answers[b"/"] = raw
            reply = await here.ask(API, request())
            assert reply.status == 502
            assert reply.body.startswith(b"egress proxy: ")

    run(attack())


def test_an_answer_cut_short_does_not_look_whole() -> None:
    async def attack() -> None:
        async with world() as here:
            here.api.answers[b"/"] = answer(
                "Connection: close", "Transfer-Encoding: chunked", body=b"5\r\nab"
            )
            client = await here.tunnel(API)
            await client.send(request())
            assert not (await client.rest()).endswith(b"0\r\n\r\n")
            await client.close()

    run(attack())


def test_what_an_origin_says_unasked_is_not_the_next_answer() -> None:
    async def attack() -> None:
        async with world() as here:
            evil = answer("Content-Length: 4", body=b"evil")
            here.api.answers[b"/v1/first"] = answer("Content-Length: 2", body=b"ok") + evil
            client = await here.tunnel(API)
            for path in ("/v1/first", "/v1/second"):
                await client.send(request(path))
                assert (await client.reply()).body == b"ok"
            assert here.api.connections == 2
            await client.close()

    run(attack())


def test_early_hints_and_trailers_end_at_the_proxy() -> None:
    async def use() -> None:
        async with world() as here:
            hints = answer("Link: </x>", status="103 Early Hints")
            chunks = b"2\r\nok\r\n0\r\nX-Trailer: 1\r\n\r\n"
            here.api.answers[b"/"] = hints + answer("Transfer-Encoding: chunked", body=chunks)
            client = await here.tunnel(API)
            await client.send(request("/v1/x", "Connection: close"))
            said = await client.rest()
            assert said.startswith(b"HTTP/1.1 200")
            assert b"ok" in said
            assert b"Trailer" not in said
            await client.close()

    run(use())


ECHOES = {
    "body": answer(f"Content-Length: {len(SECRET)}", body=SECRET.encode()),
    "chunks that cut it": answer(
        "Transfer-Encoding: chunked",
        body=b"".join(b"1\r\n%c\r\n" % byte for byte in SECRET.encode()) + b"0\r\n\r\n",
    ),
    "header": answer(f"X-Echo: {SECRET}", "Content-Length: 0"),
    "reason": answer("Content-Length: 0", status=f"200 {SECRET}"),
    "redirect": answer(f"Location: https://evil.test/?{SECRET}", "Content-Length: 0"),
    "URL": answer("Content-Length: 99", body=quote(SECRET, safe="").encode().ljust(99)),
    "JSON": answer(
        "Content-Length: 99", body=json.dumps(SECRET).replace("/", "\\/").encode().ljust(99)
    ),
    "trailer": answer("Transfer-Encoding: chunked", body=f"0\r\nX: {SECRET}\r\n\r\n".encode()),
    "early hint": answer(f"X: {SECRET}", status="103 Hint") + answer("Content-Length: 0"),
    "malformed header": answer(f"X {SECRET}", "Content-Length: 0"),
}


@pytest.mark.parametrize("raw", ECHOES.values(), ids=ECHOES)
def test_an_origin_that_echoes_the_secret_does_not_show_it(raw: bytes) -> None:
    async def attack() -> None:
        async with world() as here:
            here.api.answers[b"/"] = raw
            client = await here.tunnel(API)
            await client.send(request("/v1/x", "Connection: close"))
            said = await client.rest()
            assert said.startswith(b"HTTP/1.1 ")
            for shown in (SECRET, quote(SECRET, safe=""), SECRET.replace("/", "\\/")):
                assert shown.encode() not in said
            await client.close()

    run(attack())


def test_the_echo_of_the_whole_head_is_covered_and_its_length_stays() -> None:
    async def attack() -> None:
        async with world() as here:
            here.api.answers[b"/"] = b"echo"
            reply = await here.ask(API, request())
            assert SECRET.encode() in here.api.raw
            assert b"X-Api-Key: Key " + HIDDEN + b"\r\n" in reply.body
            assert len(reply.body) == len(here.api.seen[0].head)

    run(attack())


def test_what_was_echoed_once_is_covered_on_other_paths_too() -> None:
    async def attack() -> None:
        async with world() as here:
            here.api.answers[b"/kept"] = answer(
                f"Content-Length: {len(SECRET)}", body=SECRET.encode()
            )
            assert (await here.ask(API, request("/kept"))).body == HIDDEN

    run(attack())


def test_a_secret_is_covered_in_answers_of_other_bound_hosts_too() -> None:
    async def attack() -> None:
        second = HeaderBinding(host=OTHER, header="X-Api-Key", secret_name="second")
        secrets = {"key": SECRET, "second": "another-value"}
        async with world(bindings=(BINDING, second), secrets=secrets) as here:
            here.other.answers[b"/"] = answer(
                f"Content-Length: {len(SECRET)}", body=SECRET.encode()
            )
            assert (await here.ask(OTHER, request(host=OTHER), opened=True)).body == HIDDEN

    run(attack())


@pytest.mark.parametrize(("method", "statuses"), [("GET", [200, 200]), ("POST", [200, 502])])
def test_a_question_is_asked_again_where_a_kept_connection_was_closed(
    method: str, statuses: list[int]
) -> None:
    async def use() -> None:
        async with world() as here:
            here.api.hangs_up = 1
            client = await here.tunnel(API)
            replies = []
            for path in ("/v1/first", "/v1/second"):
                await client.send(request(path, "Content-Length: 0", method=method))
                replies.append((await client.reply()).status)
            assert replies == statuses
            assert all(seen.values(b"X-Api-Key") == [BOUND] for seen in here.api.seen)
            assert len(here.api.seen) == (3 if method == "GET" else 2)
            await client.close()

    run(use())


@given(
    st.lists(st.sampled_from([b"abcdabcdX", b"abcdabcd", b"abc", b"d", b"X", b"zz"]), max_size=8),
    st.lists(st.integers(0, 40), max_size=8),
)
def test_where_a_body_is_cut_makes_no_difference(parts: list[bytes], cuts: list[int]) -> None:
    redaction = Redaction([b"abcdabcdX", b"abcdabcd"])
    whole = b"".join(parts)
    ends = sorted({min(cut, len(whole)) for cut in cuts} | {0, len(whole)})
    stream = RedactedStream(redaction)
    shown = b"".join(stream.feed(whole[a:b]) for a, b in pairwise(ends))
    shown += stream.rest()
    assert shown == redaction.cover(whole)
    assert b"abcdabcd" not in shown
