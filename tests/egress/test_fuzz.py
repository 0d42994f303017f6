"""Requests that nobody would write: whatever comes, the origin gets clear and rightful ones."""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.egress.test_bindings import simple_server
from tests.egress.world import API, BOUND, PATIENCE, QUICK, World, request, world

if TYPE_CHECKING:
    from collections.abc import Iterator

SEEDS = (
    request("/v1/x", "X-Api-Key: mine", "Accept: */*"),
    request("/x", "X-Api-Key: mine"),
    request("/v1/x", "Content-Length: 5", method="POST") + b"hello",
    request("/x", "Transfer-Encoding: chunked", method="POST") + b"5\r\nhello\r\n0\r\n\r\n",
    request("/v1/1") + request("/x") + request("/v1/3"),
)
PIECES = (
    *(b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b",", b";", b"/", b"//", b"/../", b"\\"),
    *(b"%2e%2e", b"%2f", b"%00", b"?", b"#", b"*", b"\x80", b"0", b"-1", b"HTTP/1.0", b"HTTP/2.0"),
    *(b"X-Api-Key: mine\r\n", b"Host: evil.test\r\n", b"Content-Length: 3\r\n", b"\r\n\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n", b"Expect: 100-continue\r\n"),
    *(b"GET /v1/x HTTP/1.1\r\n", b"https://evil.test", b"0\r\n\r\n", b"TRACE", b"Upgrade: x\r\n"),
)
HEAD = re.compile(
    rb"[!-~]+ /[!-~]* HTTP/1\.1\r\nHost: api\.test\r\n(?:[!-9;-~]+: [^\r\n\0]*\r\n)*\r\n"
)
EDITS = st.lists(
    st.tuples(st.integers(0, 300), st.integers(0, 8), st.sampled_from(PIECES)),
    min_size=1,
    max_size=4,
)


@pytest.fixture(scope="module")
def here() -> Iterator[tuple[asyncio.Runner, World]]:
    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        yield runner, runner.run(stack.enter_async_context(world(limits=QUICK)))
        runner.run(stack.aclose())


def edited(seed: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    for at, cut, piece in edits:
        start = at % (len(seed) + 1)
        seed = seed[:start] + piece + seed[start + cut :]
    return seed


async def send(here: World, raw: bytes) -> None:
    async with asyncio.timeout(PATIENCE):
        client = await here.tunnel(API)
        await client.send(raw)
        client.writer.write_eof() if client.writer.can_write_eof() else None
        with contextlib.suppress(OSError):
            await client.rest()
        client.writer.transport.abort()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(SEEDS), EDITS)
def test_what_reaches_an_origin_is_clear_and_rightful(
    here: tuple[asyncio.Runner, World],
    caplog: pytest.LogCaptureFixture,
    seed: bytes,
    edits: list[tuple[int, int, bytes]],
) -> None:
    runner, world_ = here
    world_.api.seen.clear()
    caplog.clear()
    runner.run(send(world_, edited(seed, edits)))
    for seen in world_.api.seen:
        assert HEAD.fullmatch(seen.head), seen.head
        assert len(re.findall(rb"(?i)\r\n(?:content-length|transfer-encoding):", seen.head)) <= 1
        keys = seen.values(b"X-Api-Key")
        assert keys in ([], [BOUND])
        path = seen.line.split(b" ")[1].partition(b"?")[0].decode()
        if keys:
            assert (simple_server(path) + "/").startswith("/v1/")
    assert "unforeseen" not in caplog.text
