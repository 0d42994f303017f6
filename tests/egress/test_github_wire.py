"""GitHub requests on the wire: what is granted arrives with the credential, and nothing else."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import TYPE_CHECKING

import pytest

from sandboxes.contract import HeaderBinding, Network, RefusedConfiguration
from sandboxes.egress import Credential, Denied, EgressProxy, Issued
from sandboxes.egress.github import HOSTS, GitHubAuthorizer
from tests.egress.github_world import (
    API,
    BASIC,
    BEARER,
    CODELOAD,
    GITHUB,
    REPOS,
    TOKEN,
    UPLOADS,
    github,
    token,
)
from tests.egress.test_github_requests import GRANTED, NEVER_GRANTED, REFUSED_IN_A_LIST
from tests.egress.world import QUICK, SECRET, request, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.egress.world import Reply, World

Row = tuple[str, str, str]
# One connection for each is what the proxy has to close after a refusal.
_AT_ONCE = 8


async def outcomes(here: World, rows: Sequence[Row]) -> dict[Row, str]:
    """What became of each row: the credential it arrived with, or the status of a refusal."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(number: int, row: Row) -> str:
        host, method, target = row
        lines = (f"X-Row: {number}", "Authorization: token mine", "Content-Length: 0")
        raw = request(target, *lines, host=host, method=method)
        async with limit:
            reply = await here.ask(host, raw)
        came = [
            seen
            for origin in here.origins.values()
            for seen in origin.seen
            if seen.values(b"X-Row") == [b"%d" % number]
        ]
        if not came:
            return f"refused with {reply.status}"
        assert came[0].line == f"{method} {target} HTTP/1.1".encode("latin-1")
        (value,) = came[0].values(b"Authorization")
        return {BASIC: "basic", BEARER: "bearer", b"token mine": "the client's own"}[value]

    found = await asyncio.gather(*(one(number, row) for number, row in enumerate(rows)))
    return dict(zip(rows, found, strict=True))


def test_each_granted_request_arrives_with_the_credential_in_its_hosts_form() -> None:
    async def use() -> None:
        async with github() as here:
            wanted = {row: "basic" if row[0] == GITHUB else "bearer" for row in GRANTED}
            assert await outcomes(here, GRANTED) == wanted

    run(use())


def test_nothing_arrives_of_a_request_beyond_the_list() -> None:
    async def use() -> None:
        async with github() as here:
            # It has no body that could be judged, and is refused for that.
            rows = [row for row in REFUSED_IN_A_LIST if row[2] != "/graphql"]
            assert await outcomes(here, rows) == dict.fromkeys(rows, "refused with 403")

    run(use())


def test_nothing_arrives_of_what_is_never_granted() -> None:
    async def use() -> None:
        async with github() as here:
            rows = [row for row in NEVER_GRANTED if row[0] in HOSTS]
            found = await outcomes(here, rows)
            assert set(found.values()) == {f"refused with {status}" for status in (400, 403, 405)}

    run(use())


def test_other_hosts_of_githubs_get_no_credential() -> None:
    async def use() -> None:
        async with github("all") as here:
            row = (CODELOAD, "GET", "/octo/tools/zip/main")
            assert await outcomes(here, [row]) == {row: "the client's own"}
            plain = await here.plain(
                b"GET http://github.com/octo/tools HTTP/1.1\r\nHost: github.com\r\n\r\n"
            )
            assert plain.status == 200
            assert here.origins[GITHUB].seen[0].values(b"Authorization") == []

    run(use())


def test_all_that_the_user_reaches_is_granted_by_all() -> None:
    async def use() -> None:
        rows: list[Row] = [
            (API, "GET", "/user/repos"),
            (API, "POST", "/repos/other/tools/forks"),
            (GITHUB, "GET", "/other/tools/info/refs?service=git-upload-pack"),
            (API, "GET", "/repositories/99"),
        ]
        async with github("all") as here:
            assert "refused" not in str(await outcomes(here, rows))

    run(use())


SMUGGLED = ("Authorization", "authorization", "AUTHORIZATION", "Cookie", "X-HTTP-Method-Override",
            "X_HTTP_Method_Override", "Proxy-Authorization")  # fmt: skip


@pytest.mark.parametrize("header", SMUGGLED)
def test_a_client_says_neither_who_it_is_nor_what_is_meant_instead(header: str) -> None:
    async def use() -> None:
        async with github() as here:
            await here.ask(API, request("/user", f"{header}: DELETE", host=API))
            assert b"DELETE" not in here.origins[API].seen[0].head
            assert here.origins[API].seen[0].values(b"Authorization") == [BEARER]

    run(use())


def test_the_connection_header_takes_no_credential_out() -> None:
    async def use() -> None:
        async with github() as here:
            raw = request("/user", "Connection: Authorization", host=API)
            assert (await here.ask(API, raw)).status == 400
            assert here.origins[API].seen == []

    run(use())


def post(body: bytes, *lines: str) -> bytes:
    head = request("/graphql", f"Content-Length: {len(body)}", *lines, host=API, method="POST")
    return head + body


def query(text: str, **variables: object) -> bytes:
    return json.dumps({"query": text, "variables": variables}).encode()


READ = query('query($n: String!) { repository(owner: "Octo", name: $n) { id } }', n="tools")
HIDDEN = query('{ repository(owner: "octo", name: "hidden") { id } }')


def test_a_graphql_request_is_sent_as_it_was_judged() -> None:
    async def use() -> None:
        async with github() as here:
            lines = ("Content-Type: text/plain; charset=utf-7", "Content-Encoding: identity")
            assert (await here.ask(API, post(READ, *lines))).status == 200
            (seen,) = here.origins[API].seen
            sent = json.loads(seen.body)
            assert "followRenames: false" in sent["query"]
            assert sent["variables"] == {"n": "tools"}
            assert seen.values(b"Content-Type") == [b"application/json; charset=utf-8"]
            assert seen.values(b"Content-Encoding") == []
            assert seen.values(b"Content-Length") == [b"%d" % len(seen.body)]
            assert seen.values(b"Authorization") == [BEARER]

    run(use())


@pytest.mark.parametrize("asks", [True, False])
def test_a_rename_is_not_followed_whatever_the_client_asks_for(asks: bool) -> None:
    async def use() -> None:
        given = f'owner: "octo", name: "tools", followRenames: {str(asks).lower()}'
        async with github() as here:
            await here.ask(API, post(query(f"{{ repository({given}) {{ id }} }}")))
            sent = json.loads(here.origins[API].seen[0].body)["query"]
            assert sent.count("followRenames") == sent.count("followRenames: false") == 1

    run(use())


def in_chunks(body: bytes) -> bytes:
    head = request("/graphql", "Transfer-Encoding: chunked", host=API, method="POST")
    pieces = [body[start : start + 7] for start in range(0, len(body), 7)]
    return head + b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in pieces) + b"0\r\n\r\n"


def test_a_graphql_body_is_judged_however_it_is_framed() -> None:
    async def use() -> None:
        async with github() as here:
            assert (await here.ask(API, in_chunks(HIDDEN))).status == 403
            assert here.dialled == []
            assert (await here.ask(API, in_chunks(READ))).status == 200
            client = await here.tunnel(API)
            await client.send(request("/graphql", f"Content-Length: {len(READ)}",
                                      "Expect: 100-continue", host=API, method="POST"))  # fmt: skip
            await client.reader.readuntil(b"100 \r\n\r\n")
            await client.send(READ + post(HIDDEN))
            assert [(await client.reply()).status for _ in range(2)] == [200, 403]
            await client.close()
            assert len(here.origins[API].seen) == 2

    run(use())


def test_nothing_of_a_refused_graphql_request_is_sent() -> None:
    async def use() -> None:
        async with github() as here:
            for body in (HIDDEN, b"", b"\xff\xfe{}", HIDDEN.decode().encode("utf-16")):
                reply = await here.ask(API, post(body))
                told = json.loads(reply.body)
                assert reply.status in (400, 403)
                assert told["errors"] == [{"type": "FORBIDDEN", "message": told["message"]}]
            assert here.dialled == []

    run(use())


def test_a_graphql_body_is_bounded_in_length_and_time() -> None:
    async def use() -> None:
        async with github(limits=QUICK) as here:
            assert (await here.ask(API, post(b" " * (256 * 1024 + 1)))).status == 413
            client = await here.tunnel(API)
            await client.send(post(READ)[:-1])
            assert (await client.reply()).status == 408
            await client.close()
            assert here.dialled == []

    run(use())


def test_refusals_tell_nothing_and_have_the_shape_of_the_interface() -> None:
    async def refusal(here: World, host: str, target: str) -> Reply:
        reply = await here.ask(host, request(target, host=host))
        assert reply.status == 403
        return reply

    async def use() -> None:
        async with github() as here:
            rest = [await refusal(here, API, path) for path in ("/repos/a/b", "/orgs/x", "/gists")]
            assert len({reply.body for reply in rest}) == 1
            assert "repos" in json.loads(rest[0].body)["message"]
            page = await refusal(here, GITHUB, "/a/b/info/refs?service=git-upload-pack")
            assert page.body.startswith(b"egress proxy: GitHubBinding grants no such request")

    run(use())


def test_numbers_are_asked_for_once_and_a_new_name_is_none_of_the_listed_ones() -> None:
    async def use() -> None:
        async with github((*REPOS, "octo/moved")) as here:
            moved = b"HTTP/1.1 301 Moved Permanently\r\nLocation: /repositories/9\r\n"
            here.origins[API].answers[b"/repos/octo/moved"] = moved + b"Content-Length: 0\r\n\r\n"
            rows = [(API, "GET", f"/repositories/{number}") for number in (42, 9, 7, 8, 42)]
            statuses = [
                (await here.ask(API, request(target, host=host))).status for host, _, target in rows
            ]
            assert statuses == [200, 403, 200, 403, 200]
            asked = [seen for seen in here.origins[API].seen if b"/repos/" in seen.line]
            assert len(asked) == 3
            assert all(seen.values(b"Authorization") == [BEARER] for seen in asked)

    run(use())


def test_where_github_does_not_say_which_number_is_meant_it_is_asked_again() -> None:
    async def use() -> None:
        async with github(("octo/tools",)) as here:
            api, raw = here.origins[API], request("/repositories/42", host=API)
            api.answers[b"/repos/octo/tools"] = b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"
            assert (await here.ask(API, raw)).status == 502
            api.answers[b"/repos/octo/tools"] = (
                b'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"id": 42}'
            )
            assert (await here.ask(API, raw)).status == 200

    run(use())


def test_what_a_server_echoes_of_the_credential_is_covered() -> None:
    async def use() -> None:
        async with github() as here:
            for host, path in ((API, "/user"), (GITHUB, "/octo/tools/raw/x")):
                here.origins[host].answers[path.encode()] = b"echo"
                reply = await here.ask(host, request(path, host=host))
                shown = reply.head + reply.body
                assert b"Authorization: B" in shown
                assert TOKEN.encode() not in shown
                assert BASIC.removeprefix(b"Basic ") not in shown

    run(use())


def test_a_credential_is_renewed_before_it_ends_and_asked_for_once_at_a_time() -> None:
    async def use() -> None:
        now, issued = [0.0], 0

        async def issue() -> Issued:
            nonlocal issued
            issued += 1
            mine = issued
            await asyncio.sleep(0)
            return Issued(f"ghs_number{mine}", 100)

        credential = Credential(issue, lambda: now[0])
        assert {*await asyncio.gather(credential(), credential())} == {"ghs_number1"}
        for now[0], wanted in ((79.0, 1), (81.0, 2), (160.0, 2), (162.0, 3)):
            assert await credential() == f"ghs_number{wanted}"

    run(use())


def test_without_a_credential_nothing_is_sent() -> None:
    async def fails() -> Issued:
        raise ConnectionRefusedError("no issuer")

    async def use() -> None:
        async with github(token=Credential(fails)) as here:
            reply = await here.ask(API, request("/user", host=API))
            assert (reply.status, len(here.dialled)) == (502, 0)
            assert "cannot be renewed" in json.loads(reply.body)["message"]

    run(use())


@pytest.mark.parametrize("value", ["", "a b", "a\r\nX: y", "\u00e4"])
def test_what_is_no_headers_value_is_not_sent(value: str) -> None:
    async def odd() -> str:
        return value

    async def use() -> None:
        async with github(token=odd) as here:
            reply = await here.ask(API, request("/user", host=API))
            assert (reply.status, len(here.dialled)) == (502, 0)

    run(use())


def test_a_header_binding_goes_along_where_it_is_for_another_header() -> None:
    async def use() -> None:
        binding = HeaderBinding(host=API, header="X-Api-Key", secret_name="key")
        async with github(bindings=(binding,)) as here:
            await here.ask(API, request("/user", host=API))
            await here.ask(API, request("/orgs/x", host=API))
            (seen,) = here.origins[API].seen
            assert seen.values(b"X-Api-Key") == [SECRET.encode()]
            assert seen.values(b"Authorization") == [BEARER]

    run(use())


def build(network: Network, *binders: GitHubAuthorizer, header: str = "X-Other") -> None:
    binding = HeaderBinding(host=API, header=header, secret_name="key")
    with socket.socket() as listener:
        EgressProxy(
            network,
            listen=listener,
            bindings=(binding,),
            authorizers=binders,
            secrets={"key": SECRET},
        )


def test_what_an_authorizer_cannot_hold_is_refused_when_the_proxy_is_built() -> None:
    mine = GitHubAuthorizer(REPOS, token)
    build(Network.allow(hosts=(GITHUB, API)), mine)
    for network, authorizers, header, fact in (
        (Network.allow(hosts=(API,)), (mine,), "X-Other", "needs network access to github.com"),
        (Network.all(), (mine, mine), "X-Other", "two authorizers claim github.com"),
        (Network.all(), (mine,), "Authorization", "claims what GitHubAuthorizer adds"),
        (Network.all(), (mine,), "authorization", "claims what"),
    ):
        with pytest.raises(RefusedConfiguration, match=fact):
            build(network, *authorizers, header=header)


def test_an_upload_is_out_of_reach_where_its_host_is_not_listed() -> None:
    async def use() -> None:
        async with github(network=Network.allow(hosts=(GITHUB, API))) as here:
            raw = request("/repos/octo/tools/releases/1/assets", host=UPLOADS, method="POST")
            with pytest.raises(ConnectionRefusedError, match="403"):
                await here.ask(UPLOADS, raw)

    run(use())


def test_a_refusal_names_nothing_that_came_with_a_secret() -> None:
    denied = Denied(403, "why", {"message": "why"})

    assert b'\r\n\r\n{"message": "why"}\n' in denied.response()
    assert b"Content-Length: 19\r\n" in denied.response()
