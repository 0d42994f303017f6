"""The model that verdicts rest on agrees with the ranges and rules it is meant to be."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from conformance import oracle
from conformance.oracle import Origin
from conformance.strategies import addresses, hosts, look_alikes, urls
from sandboxes.contract import InvalidHostEntry, Network

if TYPE_CHECKING:
    from conformance.strategies.addresses import Literal
    from conformance.strategies.hosts import Entry, WrongEntry
    from conformance.strategies.look_alikes import LookAlike

# As a person writes them: the model holds first and last addresses instead.
PRIVATE = [
    *("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"),
    *("100.64.0.0/10", "0.0.0.0/8", "192.0.0.0/24", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4"),
    *("::1/128", "::/128", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
]
NETWORKS = [ipaddress.ip_network(text) for text in PRIVATE]
IPV4 = [network for network in NETWORKS if isinstance(network, ipaddress.IPv4Network)]


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_private_exactly_in_the_ranges(address: ipaddress.IPv4Address) -> None:
    assert oracle.is_private(str(address)) is any(address in network for network in IPV4)


@pytest.mark.parametrize("text", PRIVATE)
def test_ranges_are_private_from_edge_to_edge_and_not_beyond(text: str) -> None:
    network = ipaddress.ip_network(text)
    assert oracle.is_private(str(network[0]))
    assert oracle.is_private(str(network[-1]))
    for beyond in (int(network[0]) - 1, int(network[-1]) + 1):
        if not 0 <= beyond < 2**network.max_prefixlen:
            continue
        neighbour = type(network[0])(beyond)
        expected = any(neighbour in other for other in NETWORKS if other.version == network.version)
        # Right above :: and ::1 lie the compatible forms of 0.0.0.0/8.
        if neighbour.version == 6 and int(neighbour) < 2**32:
            expected = True
        assert oracle.is_private(str(neighbour)) is expected


@pytest.mark.parametrize(
    ("address", "private"),
    [
        ("::ffff:127.0.0.1", True),
        ("::ffff:11.0.0.1", False),
        ("::10.1.2.3", True),
        ("::8.8.8.8", False),
        ("64:ff9b::a00:1", True),
        ("64:ff9b::808:808", False),
        ("64:ff9b:1::c0a8:1", True),
        ("2002:a9fe:a9fe::", True),
        ("2002:808:808::1", False),
        # A Teredo client's address is stored inverted.
        ("2001:0:808:808:0:0:f5ff:fffe", True),
        ("2001:0:a00:1:0:0:f7f7:f7f7", False),
        ("192.0.2.1", False),
        ("198.51.100.7", False),
        ("203.0.113.9", False),
        ("2001:db8::1", False),
        ("11.77.0.1", False),
        ("2a11:77::1", False),
    ],
)
def test_carried_addresses_count_and_documentation_ranges_do_not(
    address: str, private: bool
) -> None:
    assert oracle.is_private(address) is private


@given(addresses.private_literals)
def test_generated_private_addresses_are_private_in_every_spelling(literal: Literal) -> None:
    assert all(oracle.is_private(address) for address in literal.dialled)


@given(st.sampled_from(oracle.MODES), st.sets(st.builds(Origin, hosts.names)), st.booleans())
def test_what_a_policy_opens(mode: oracle.Mode, listed: set[Origin], tls: bool) -> None:
    stranger = Origin("stranger.invalid", 8443)
    assert oracle.opens(mode, listed, stranger, tls=tls) is (mode == "all")
    for origin in listed:
        expected = {"none": False, "all": True, "allow": tls}[mode]
        assert oracle.opens(mode, listed, origin, tls=tls) is expected
        neighbour = Origin(origin.host, origin.port + 1)
        assert oracle.opens(mode, listed, neighbour, tls=tls) is (mode == "all")


@given(hosts.entries)
def test_generated_entries_name_what_they_were_built_from(entry: Entry) -> None:
    (parsed,) = Network.allow(hosts=[entry.text]).entries
    assert (parsed.host, parsed.port) == (entry.origin.host, entry.origin.port)


@given(hosts.wrong_entries)
def test_generated_wrong_entries_are_wrong(wrong: WrongEntry) -> None:
    with pytest.raises(InvalidHostEntry):
        Network.allow(hosts=[wrong.text])


@given(hosts.long_name_entries, look_alikes.look_alikes)
def test_a_look_alike_is_another_entry(entry: Entry, look_alike: LookAlike) -> None:
    other = look_alike.of(entry.origin.host)
    assume(other != entry.origin.host)
    assert not Network.allow(hosts=[entry.text]).reaches(f"{other}:{entry.origin.port}")


@given(urls.splits)
def test_a_split_holds_both_hosts_or_only_the_other(split: urls.Split) -> None:
    url = split.url(listed="listed.test", other="other.test", path="/n")
    assert "other.test" in url.lower()
