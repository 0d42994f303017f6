"""The model that verdicts rest on agrees with the ranges and rules it is meant to be."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from conformance import oracle
from conformance.oracle import Block, Origin
from conformance.strategies import (
    addresses,
    cidrs,
    hosts,
    look_alikes,
    no_entries,
    spellings,
    urls,
)
from sandboxes.contract import (
    EgressPolicy,
    HostEntry,
    InvalidHostEntry,
    Network,
    RefusedConfiguration,
)

if TYPE_CHECKING:
    from conformance.strategies.addresses import Literal
    from conformance.strategies.cidrs import HostBits
    from conformance.strategies.hosts import Entry, WrongEntry
    from conformance.strategies.look_alikes import LookAlike
    from conformance.strategies.spellings import Pair

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
        ("::0.0.0.2", False),
        ("::10.0.0.1", True),
        ("11.77.0.1", False),
        ("2a11:77::1", False),
    ],
)
def test_carried_addresses_count_and_documentation_ranges_do_not(
    address: str, private: bool
) -> None:
    assert oracle.is_private(address) is private


@pytest.mark.parametrize(
    ("address", "inner"),
    [
        *(("203.0.113.1", None), ("0.0.0.1", None), ("2001:db8::1", None)),
        # What looks like 0.0.0.0/8 is an address of its own, and what follows is compatible.
        *(("::", None), ("::1", None), ("::0.0.0.2", None), ("::0.255.255.255", None)),
        *(("::1.0.0.0", "1.0.0.0"), ("::203.0.113.1", "203.0.113.1")),
        *(("::ffff:203.0.113.1", "203.0.113.1"), ("::fffe:cb00:7101", None)),
        *(("64:ff9b::203.0.113.1", "203.0.113.1"), ("64:ff9b::1:203.0.113.1", None)),
        *(("64:ff9b:1:2::203.0.113.1", "203.0.113.1"), ("64:ff9b:2::203.0.113.1", None)),
        *(("2002:cb00:7101:1::1", "203.0.113.1"), ("2003:cb00:7101:1::1", None)),
        *(("2001::34ff:8efe", "203.0.113.1"), ("2001:1::34ff:8efe", None)),
    ],
)
def test_which_ipv4_address_an_ipv6_one_carries(address: str, inner: str | None) -> None:
    assert oracle.written_ipv4(address) == inner


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
        assert oracle.opens(mode, listed, origin) is (
            mode != "none"
        )  # it speaks TLS if nobody asks
        neighbour = Origin(origin.host, origin.port + 1)
        assert oracle.opens(mode, listed, neighbour, tls=tls) is (mode == "all")


@pytest.mark.parametrize(
    ("entry", "origin"),
    [
        ("a.test", Origin("a.test", 443)),
        ("a.test:80", Origin("a.test", 80)),
        ("A.Test.:1", Origin("a.test", 1)),
        ("203.0.113.10:65535", Origin("203.0.113.10", 65535)),
        ("2001:DB8:0::1:8443", Origin("2001:db8::1:8443", 443)),
        ("[2001:db8::1]", Origin("2001:db8::1", 443)),
        ("[2001:db8::0:1]:8443", Origin("2001:db8::1", 8443)),
        ("b\xfccher.b\xfccher.test", Origin("xn--bcher-kva.xn--bcher-kva.test", 443)),
        ("BU\u0308CHER.test:80", Origin("xn--bcher-kva.test", 80)),
        ("fa\xdf.test", Origin("xn--fa-hia.test", 443)),
    ],
)
def test_what_an_entry_names(entry: str, origin: Origin) -> None:
    assert oracle.named(entry) == origin


def test_an_origin_is_written_with_and_without_its_port() -> None:
    assert [(one.bare, one.full, str(one)) for one in (Origin("a.test"), Origin("::1", 80))] == [
        ("a.test", "a.test:443", "a.test"),
        ("[::1]", "[::1]:80", "[::1]:80"),
    ]


def both(entry: str) -> tuple[tuple[str, int], tuple[str, int]]:
    """The model's reading of an entry, and that of the contract."""
    ours, theirs = oracle.named(entry), HostEntry.parse(entry)
    return (ours.host, ours.port), (theirs.host, theirs.port)


@given(hosts.entries | st.sampled_from(hosts.ENTRIES))
def test_generated_entries_name_what_they_were_built_from(entry: Entry) -> None:
    assert {*both(entry.text)} == {(entry.origin.host, entry.origin.port)}


@given(spellings.pairs | st.sampled_from(spellings.PAIRS))
def test_spellings_are_read_alike_by_two_parsers(pair: Pair) -> None:
    for entry in (pair.first, pair.second):
        ours, theirs = both(entry)
        assert ours == theirs


def test_the_pairs_are_of_both_kinds() -> None:
    same = [oracle.named(pair.first) == oracle.named(pair.second) for pair in spellings.PAIRS]
    assert same == sorted(same, reverse=True)
    assert (sum(same), len(same)) == (14, 18)


@given(spellings.whole_addresses | st.sampled_from(spellings.WHOLE))
def test_an_address_taken_whole_is_not_the_one_with_a_port(pair: Pair) -> None:
    whole, split = oracle.named(pair.first), oracle.named(pair.second)
    assert whole.port == 443 != split.port
    assert whole.host != split.host


@given(no_entries.no_questions | st.sampled_from(no_entries.NO_QUESTIONS))
def test_generated_wrong_entries_are_wrong(wrong: WrongEntry) -> None:
    with pytest.raises(InvalidHostEntry):
        Network.allow(hosts=[wrong.text])


@pytest.mark.parametrize("wrong", no_entries.NO_QUESTIONS, ids=lambda wrong: ascii(wrong.text))
def test_each_wrong_entry_is_wrong(wrong: WrongEntry) -> None:
    with pytest.raises(InvalidHostEntry):
        HostEntry.parse(wrong.text)


@pytest.mark.parametrize(
    ("entry", "block"),
    [
        ("0.0.0.1", Block(32, 1, 1)),
        ("0.0.0.4/30", Block(32, 4, 7)),
        ("0.0.0.7/30", Block(32, 4, 7)),
        ("1.2.3.4/0", Block(32, 0, 2**32 - 1)),
        ("::4/126", Block(128, 4, 7)),
        ("::ffff:0:0/96", Block(128, 0xFFFF << 32, (0xFFFF << 32) + 2**32 - 1)),
        ("::2", Block(128, 2, 2)),
    ],
)
def test_what_a_range_holds(entry: str, block: Block) -> None:
    assert oracle.block(entry) == block


@given(cidrs.ranges)
def test_a_range_has_the_ends_that_the_library_gives_it(entry: str) -> None:
    network = ipaddress.ip_network(entry)
    ends = int(network.network_address), int(network.broadcast_address)
    assert oracle.block(entry) == Block(network.max_prefixlen, *ends)


ALL_BUT_THE_LOWEST = [f"{ipaddress.IPv4Address(1 << n)}/{32 - n}" for n in range(32)]


def covers(entries: list[str]) -> bool:
    return oracle.covers_a_family(map(oracle.block, entries))


@given(st.lists(st.integers(1, 5).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, 31)))))
def test_ipv4_ranges_cover_exactly_when_the_library_merges_them_into_one(
    parts: list[tuple[int, int]],
) -> None:
    networks = [ipaddress.IPv4Network(((part << 27) >> 32 - n << 32 - n, n)) for n, part in parts]
    merged = list(ipaddress.collapse_addresses(networks))
    assert covers([str(network) for network in networks]) is (
        merged == [ipaddress.IPv4Network("0.0.0.0/0")]
    )


@pytest.mark.parametrize("entries", cidrs.COVERINGS)
def test_a_covering_covers_and_is_refused(entries: tuple[str, ...]) -> None:
    assert covers([*entries])
    with pytest.raises(RefusedConfiguration):
        EgressPolicy.custom(allow_cidrs=entries)


@pytest.mark.parametrize("entries", cidrs.GAPS)
def test_a_gap_covers_nothing_whole_and_is_taken(entries: tuple[str, ...]) -> None:
    assert not covers([*entries])
    assert EgressPolicy.custom(allow_cidrs=entries).allow_cidrs == entries


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([], False),
        (["0.0.0.0/1"], False),
        (["128.0.0.0/1"], False),
        ([*ALL_BUT_THE_LOWEST], False),
        ([*ALL_BUT_THE_LOWEST, "0.0.0.0"], True),
        (["0.0.0.0/1", "128.0.0.0/1", "::1"], True),
        (["::/1", "8000::/1"], True),
        (["::ffff:0:0/97", "::ffff:8000:0/98", "::ffff:c000:0/98"], True),
        (["::ffff:0:0/97", "::ffff:8000:0/98", "::ffff:c000:0/99"], False),
        (["::fffe:0:0/95"], True),
        (["::1:0:0:0/95"], False),
        (["::/1"], True),
        (["8000::/1"], False),
        (["4000::/2", "::/2", "8000::/1"], True),
        (["2000::/3", "4000::/2", "8000::/1"], False),
        # IPv4 as IPv6 writes it counts beside, wherever it comes in order.
        (["0.0.0.0/1", "::ffff:128.0.0.0/97", "2001:db8::/32"], True),
    ],
)
def test_what_covers_a_family(entries: list[str], expected: bool) -> None:
    assert covers(entries) is expected


@given(cidrs.coverings())
@settings(deadline=None)  # each is drawn part by part
def test_generated_coverings_cover(entries: list[str]) -> None:
    assert covers(entries)


@given(cidrs.gaps())
@settings(deadline=None)  # each is drawn part by part
def test_generated_gaps_leave_something_out(entries: list[str]) -> None:
    assert not covers(entries)


@given(cidrs.host_bits | st.sampled_from(cidrs.HOST_BITS))
def test_host_bits_are_set_and_the_range_meant_is_the_same_block(entry: HostBits) -> None:
    assert oracle.block(entry.text) == oracle.block(entry.meant)
    assert entry.text != entry.meant
    assert str(ipaddress.ip_network(entry.meant)) == entry.meant
    with pytest.raises(RefusedConfiguration, match=re.escape(f"'{entry.meant}'")):
        EgressPolicy.custom(allow_cidrs=[entry.text])


@given(cidrs.no_ranges | st.sampled_from(cidrs.NO_RANGES))
def test_what_is_no_range_is_refused(wrong: WrongEntry) -> None:
    with pytest.raises(RefusedConfiguration):
        EgressPolicy.custom(allow_cidrs=[wrong.text])


@given(hosts.long_name_entries, look_alikes.look_alikes)
def test_a_look_alike_is_another_entry(entry: Entry, look_alike: LookAlike) -> None:
    other = look_alike.of(entry.origin.host)
    assume(other != entry.origin.host)
    assert not Network.allow(hosts=[entry.text]).reaches(f"{other}:{entry.origin.port}")


@given(urls.splits)
def test_a_split_holds_both_hosts_or_only_the_other(split: urls.Split) -> None:
    url = split.url(listed="listed.test", other="other.test", path="/n")
    assert "other.test" in url.lower()
