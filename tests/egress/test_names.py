"""Names and addresses: what resolves to private ones, and which address is dialled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance import oracle
from conformance.strategies import policies
from sandboxes.contract import Network
from sandboxes.egress import is_private
from tests.egress.test_tunnels import connect
from tests.egress.world import API, OTHER, request, run, world

if TYPE_CHECKING:
    import ipaddress
    from collections.abc import Sequence

PRIVATE = (
    *("127.0.0.1", "127.255.255.255", "0.0.0.0", "0.255.255.255", "10.0.0.1", "172.16.0.1"),
    *("172.31.255.255", "192.168.0.1", "169.254.169.254", "100.64.0.1", "100.127.255.255"),
    *("192.0.0.1", "198.18.0.1", "198.19.255.255", "224.0.0.1", "239.255.255.255", "240.0.0.1"),
    *("255.255.255.255", "192.0.2.1", "198.51.100.1", "203.0.113.1"),
    *("::", "::1", "fc00::1", "fdff::1", "fe80::1", "febf::1", "fec0::1", "ff02::1"),
    *("fe80::1%eth0", "2001:db8::1", "100::1", "2001::1", "64:ff9b:1::9.9.9.9", "5f00::1"),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1"),
    *("::10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::127.0.0.1", "2002:7f00:1::", "2002:a00:1::1"),
    *("2002:c0a8:1::", "2002:a9fe:a9fe::", "::ffff:0:0"),
)
PUBLIC = (
    *("9.9.9.9", "1.0.0.0", "11.0.0.0", "9.255.255.255", "172.15.255.255", "172.32.0.0"),
    *("192.167.255.255", "192.169.0.0", "169.253.255.255", "169.255.0.0", "100.63.255.255"),
    *("100.128.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "128.0.0.0"),
    *("2606:4700::1111", "2a00::1", "2003::1", "::ffff:9.9.9.9", "64:ff9b::9.9.9.9"),
    "2002:909:909::1",
)


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_known_in_every_spelling(address: str) -> None:
    assert is_private(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_its_neighbours_are_public(address: str) -> None:
    assert not is_private(address)


@given(st.ip_addresses().map(str) | st.sampled_from(policies.PRIVATE))
def test_what_the_contract_counts_as_private_is_private(address: str) -> None:
    assert is_private(address) or not oracle.is_private(address)


@given(st.ip_addresses(v=4), st.sampled_from(["::ffff:{}", "::{}", "64:ff9b::{}"]))
def test_an_address_in_another_is_judged_as_alone(
    address: ipaddress.IPv4Address, around: str
) -> None:
    if int(address) > 0xFFFFFF:
        assert is_private(around.format(address)) == is_private(str(address))


@pytest.mark.parametrize("address", policies.PUBLIC)
def test_neighbours_of_private_ranges_are_public(address: str) -> None:
    assert not is_private(address)


ANSWERS = {
    "loopback": ["127.0.0.1"],
    "metadata service": ["169.254.169.254"],
    "public and private": ["9.9.9.2", "10.0.0.1"],
    "private and public": ["10.0.0.1", "9.9.9.2"],
    "mapped loopback": ["::ffff:127.0.0.1"],
    "6to4 of a private one": ["2002:a00:1::1"],
    "NAT64 of a private one": ["64:ff9b::a00:1"],
    "link-local with a zone": ["fe80::1%1"],
}


@pytest.mark.parametrize("mode", ["allow", "all"])
@pytest.mark.parametrize("answers", ANSWERS.values(), ids=ANSWERS)
def test_a_name_with_a_private_address_is_refused(answers: Sequence[str], mode: str) -> None:
    async def attack() -> None:
        network = Network.all() if mode == "all" else Network.allow(hosts=(OTHER,))
        async with world(network, bindings=()) as here:
            here.addresses[OTHER] = answers
            here.routes.update({(one, 443): here.routes["9.9.9.2", 443] for one in answers})
            reply = await here.plain(connect(f"{OTHER}:443"))
            assert reply.status == 403
            assert b"has a private address" in reply.body
            assert not any(one.encode() in reply.body for one in answers)
            assert here.dialled == []

    run(attack())


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "[::ffff:7f00:1]", "169.254.169.254"])
def test_a_listed_private_address_is_refused(host: str) -> None:
    async def attack() -> None:
        async with world(Network.allow(hosts=(host,)), bindings=()) as here:
            assert (await here.plain(connect(f"{host}:443"))).status == 403
            assert here.dialled == []

    run(attack())


def test_a_bound_host_with_a_private_address_is_refused_inside_of_the_tunnel() -> None:
    async def attack() -> None:
        async with world() as here:
            here.addresses[API] = ["10.0.0.1"]
            assert (await here.ask(API, request())).status == 403
            assert here.dialled == []

    run(attack())


def test_the_switch_opens_what_the_network_allows_and_nothing_else() -> None:
    async def use() -> None:
        async with world(block_private_addresses=False) as here:
            here.addresses[OTHER] = ["127.0.0.1"]
            here.routes["127.0.0.1", 443] = here.routes["9.9.9.2", 443]
            assert (await here.ask(OTHER, request(host=OTHER))).status == 200
            assert (await here.plain(connect("127.0.0.1:443"))).status == 403

    run(use())


def test_a_name_is_resolved_once_and_what_was_judged_is_dialled() -> None:
    async def attack() -> None:
        answers = iter((["9.9.9.2"], ["10.0.0.1"], ["9.9.9.2"]))

        async def rebinding(name: str, port: int) -> Sequence[str]:
            return next(answers)

        async with world(resolve=rebinding, bindings=()) as here:
            ask = request(host=OTHER)
            assert (await here.ask(OTHER, ask)).status == 200
            assert here.dialled == [("9.9.9.2", 443)]
            with pytest.raises(ConnectionRefusedError, match="private address"):
                await here.ask(OTHER, ask)
            assert here.dialled == [("9.9.9.2", 443)]

    run(attack())


def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    async def use() -> None:
        async with world() as here:
            here.addresses[OTHER] = ["9.9.9.7", "9.9.9.2"]
            assert (await here.ask(OTHER, request(host=OTHER))).status == 200
            assert here.dialled == [("9.9.9.7", 443), ("9.9.9.2", 443)]

    run(use())


def test_what_is_not_there_is_said_to_be_so() -> None:
    async def use() -> None:
        async with world() as here:
            del here.addresses[OTHER]
            assert (await here.plain(connect(f"{OTHER}:443"))).status == 502
            here.addresses[OTHER] = ["9.9.9.7"]
            assert (await here.plain(connect(f"{OTHER}:443"))).status == 502

    run(use())
