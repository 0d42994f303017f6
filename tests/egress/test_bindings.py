"""Header bindings: what is refused before anything starts, and where a header goes."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxes.contract import (
    GitHubBinding,
    HeaderBinding,
    Network,
    RefusedConfiguration,
    SandboxStartError,
    WorkspaceHeaderBindings,
)
from sandboxes.egress import EgressProxy
from sandboxes.egress.paths import is_under, readings
from tests.egress.test_endurance import opened
from tests.egress.world import API, OTHER, request, run, world

if TYPE_CHECKING:
    from collections.abc import Mapping

VALUE = "hunter2-hunter2"
SECRETS = {"key": VALUE, "other": "another-value"}


def bind(**options: Any) -> HeaderBinding:
    return HeaderBinding(**{"host": API, "header": "X-Api-Key", "secret_name": "key"} | options)


def build(*bindings: Any, secrets: Mapping[str, Any] = SECRETS, network: Any = None) -> None:
    with socket.socket() as listener:
        EgressProxy(network or Network.all(), listen=listener, bindings=bindings, secrets=secrets)


REFUSED = {
    "twice the same": ([bind(), bind(secret_name="other")], "two bindings"),
    "the same in other case": ([bind(), bind(header="x-api-key")], "two bindings"),
    "the same with underscores": ([bind(), bind(header="X_Api_Key")], "two bindings"),
    "the same host in capitals": ([bind(), bind(host="API.test.:443")], "two bindings"),
    "the same prefix with a slash": (
        [bind(path_prefix="/v1"), bind(path_prefix="/v1/")],
        "two bindings",
    ),
    "of GitHub": ([GitHubBinding(repos="all")], "GitHubBinding"),
    "of a workspace": ([WorkspaceHeaderBindings()], "WorkspaceHeaderBindings"),
    "header of the connection": ([bind(header="Connection")], "'Connection'"),
    "header that says where to": ([bind(header="hOST")], "'hOST'"),
    "header that says how long": ([bind(header="Content_Length")], "'Content_Length'"),
    "prefix with dots": ([bind(path_prefix="/v1/../x")], "path_prefix"),
    "prefix that is encoded": ([bind(path_prefix="/%76")], "path_prefix"),
    "prefix with a query": ([bind(path_prefix="/v1?x")], "path_prefix"),
    "prefix with an empty segment": ([bind(path_prefix="//v1")], "path_prefix"),
    "prefix beyond ASCII": ([bind(path_prefix="/\xe4")], "path_prefix"),
}


@pytest.mark.parametrize(("bindings", "fact"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_applied_is_refused(bindings: list[Any], fact: str) -> None:
    with pytest.raises(RefusedConfiguration, match=fact) as raised:
        build(*bindings)
    assert VALUE not in str(raised.value)


@pytest.mark.parametrize("network", [Network.none(), Network.allow(hosts=(OTHER, f"{API}:8443"))])
def test_a_binding_out_of_reach_is_refused(network: Network) -> None:
    with pytest.raises(RefusedConfiguration, match=API):
        build(bind(), network=network)


UNUSABLE = {
    "missing": {"other": VALUE},
    "empty": {"key": ""},
    "no text": {"key": 7},
    "CR": {"key": f"{VALUE}\rX: y"},
    "LF": {"key": f"{VALUE}\nX: y"},
    "NUL": {"key": f"{VALUE}\0"},
    "white space around it": {"key": f"{VALUE} "},
    "letters beyond ASCII": {"key": f"{VALUE}\xe4"},
}


@pytest.mark.parametrize("secrets", UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_secret_is_named_and_not_shown(secrets: dict[str, Any]) -> None:
    with pytest.raises(SandboxStartError, match=r"the secret 'key' of api\.test") as raised:
        build(bind(), secrets=secrets)
    assert VALUE not in str(raised.value)
    assert raised.value.__cause__ is None


def test_each_header_is_of_the_longest_prefix() -> None:
    async def use() -> None:
        bindings = (
            bind(path_prefix="/", secret_name="other"),
            bind(path_prefix="/v1/", suffix="!"),
            bind(path_prefix="/v1/", header="Authorization", prefix="Bearer "),
        )
        async with world(bindings=bindings, secrets=SECRETS) as here:
            sent = [request("/"), request("/v1/x"), request("/v1", "Authorization: mine")]
            for raw in sent:
                await here.ask(API, raw)
            got = [(s.values(b"X-Api-Key"), s.values(b"Authorization")) for s in here.api.seen]
            value, other = VALUE.encode(), b"another-value"
            assert got == [([other], []), ([value + b"!"], [b"Bearer " + value]), ([other], [])]

    run(use())


def test_a_path_that_two_prefixes_could_claim_gets_no_secret() -> None:
    async def attack() -> None:
        bindings = (bind(path_prefix="/a"), bind(path_prefix="/b", secret_name="other"))
        async with world(bindings=bindings, secrets=SECRETS) as here:
            assert (await here.ask(API, request("/a/../b/x"))).status == 400
            assert here.dialled == []

    run(attack())


def test_a_binding_is_of_its_port_alone() -> None:
    async def use() -> None:
        network = Network.allow(hosts=(API, f"{API}:8443"))
        async with world(network, bindings=(bind(host=f"{API}:8443"),), secrets=SECRETS) as here:
            here.routes["9.9.9.1", 8443] = here.routes["9.9.9.1", 443]
            await here.ask(API, request(), opened=False)
            await here.ask(API, request(host=f"{API}:8443"), port=8443)
            assert [seen.values(b"X-Api-Key") for seen in here.api.seen] == [[], [VALUE.encode()]]
            assert here.api.seen[1].values(b"Host") == [b"api.test:8443"]

    run(use())


@pytest.mark.parametrize("address", ["9.9.9.1", "2606:4700::1111"])
def test_an_address_can_be_bound(address: str) -> None:
    async def use() -> None:
        bindings = (bind(host=address),)
        certificates = {API: lambda ca: ca.issue_cert(address)}
        entry = f"[{address}]" if ":" in address else address
        async with world(
            Network.all(), bindings=bindings, secrets=SECRETS, certificates=certificates
        ) as here:
            here.routes["2606:4700::1111", 443] = here.routes["9.9.9.1", 443]
            client = await opened(here, entry)
            await client.start_tls(here.trusting(here.session_ca), address)
            await client.send(request(host=entry))
            assert (await client.reply()).status == 200
            assert here.api.seen[0].values(b"X-Api-Key") == [VALUE.encode()]
            assert here.api.seen[0].values(b"Host") == [entry.encode()]
            await client.close()

    run(use())


SEGMENTS = st.sampled_from(
    [
        "v1",
        "x",
        "..",
        ".",
        "",
        "%2e%2e",
        "%2E.",
        "..;a",
        "v1;b",
        "%2f",
        "\\",
        "%5c..",
        "%252e.",
        "%76%31",
    ]
)


def simple_server(path: str) -> str:
    """A server of the ordinary kind: undoes one encoding, then resolves as RFC 3986 does."""
    from posixpath import normpath
    from urllib.parse import unquote

    return normpath("/" + unquote(path).replace("\\", "/").lstrip("/"))


@given(st.lists(SEGMENTS, min_size=1, max_size=6).map(lambda parts: "/" + "/".join(parts)))
def test_no_spelling_takes_a_header_out_of_its_prefix(path: str) -> None:
    possible = readings(path.encode())
    if possible and all(is_under(reading, b"/v1") for reading in possible):
        served = simple_server(path)
        assert served == "/v1" or served.startswith(("/v1/", "/v1;"))
    if possible and not any(is_under(reading, b"/v1") for reading in possible):
        assert not is_under(simple_server(path).encode(), b"/v1")
