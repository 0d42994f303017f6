"""NET: the texts that an allow list and `reaches` read: what is none, and what is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from conformance import oracle
from conformance.marks import verifies
from conformance.oracle import Origin
from conformance.probes import values
from conformance.requirements import NET_03, NET_06, NET_07
from conformance.strategies import hosts, no_entries, spellings
from conformance.strategies.each import each
from conformance.verdicts import Violation

if TYPE_CHECKING:
    from conformance.strategies.hosts import WrongEntry
    from conformance.strategies.spellings import Pair
    from conformance.subject.targets import Target

_HOST = values.HOST


@verifies(NET_03)
@given(wrong=no_entries.no_entries)
@each("wrong", no_entries.NO_ENTRIES)
def test_what_is_no_host_and_port_is_no_entry(target: Target, wrong: WrongEntry) -> None:
    """An entry that is anything but a host and a port raises, alone and among right ones."""
    for listed in ([wrong.text], [_HOST, wrong.text]):
        if values.refusal(target.Network.allow, hosts=listed) is None:
            raise Violation(
                f"Network.allow(hosts={listed!r}) raised nothing though an entry has {wrong.fault}",
                remedy="parse each entry whole, and raise a ValueError where anything is left over",
            )


@verifies(NET_03)
@given(wrong=no_entries.no_questions)
@each("wrong", no_entries.NO_QUESTIONS)
def test_reaches_raises_on_what_is_no_entry(target: Target, wrong: WrongEntry) -> None:
    """`reaches` raises on what is no entry, whatever the network is."""
    kind = target.Network
    for network in (kind.none(), kind.all(), values.listing(target, [_HOST])):
        if values.refusal(network.reaches, wrong.text) is None:
            raise Violation(
                f"{network!r}.reaches({wrong.text!r}) raised nothing though this has {wrong.fault}",
                remedy="read what is asked as an entry is read, before the mode is looked at",
            )


@verifies(NET_03)
def test_what_is_no_text_is_no_entry(target: Target) -> None:
    """An entry that is no text raises, alone and among right ones, whatever it would be as one."""
    kind: Any = target.Network
    for wrong in no_entries.NO_TEXTS:
        for listed in ([wrong], [_HOST, wrong]):
            if values.refusal(kind.allow, hosts=listed) is None:
                raise Violation(
                    f"Network.allow(hosts={listed!r}) raised nothing",
                    remedy="take entries that are texts, and make none of anything else",
                )


@verifies(NET_03)
@given(pair=spellings.whole_addresses)
@each("pair", spellings.WHOLE)
def test_an_ipv6_address_without_brackets_is_taken_whole(target: Target, pair: Pair) -> None:
    """The end of an IPv6 address without brackets is an entry's last group, and no port."""
    for entry, asked in ((pair.first, pair.second), (pair.second, pair.first)):
        network = values.built(target.Network.allow, hosts=[entry])
        if values.built(network.reaches, asked) is not False:
            raise Violation(
                f"{network!r}.reaches({asked!r}) was not False",
                remedy="look for the port of an IPv6 address behind its brackets only",
            )


@verifies(NET_06)
@given(host=hosts.hosts, port=hosts.ports)
@each("host", hosts.HOSTS, port=80)
@each("host", hosts.HOSTS, port=8443)
def test_no_port_means_443(target: Target, host: str, port: int) -> None:
    """A host without a port is the same as with 443, in an entry and in what is asked."""
    bare, with_443 = Origin(host).bare, Origin(host).full
    for other in (with_443, Origin(host, port).full):
        for spelt_out, left_out in (
            ((with_443, other), (bare, other)),
            ((other, with_443), (other, bare)),
        ):
            want, got = (
                values.built(values.listing(target, [entry]).reaches, asked)
                for entry, asked in (spelt_out, left_out)
            )
            if want is not got:
                raise Violation(
                    f"{left_out[1]!r} is reached by an entry {left_out[0]!r}: {got!r}, and "
                    f"{spelt_out[1]!r} by an entry {spelt_out[0]!r}: {want!r}",
                    remedy="read a missing port as 443 on both sides, and compare ports always",
                )


@verifies(NET_07)
@given(pair=spellings.pairs)
@each("pair", spellings.PAIRS)
def test_entries_compare_in_normal_form(target: Target, pair: Pair) -> None:
    """An entry reaches another spelling exactly when both have the same normal form."""
    want = oracle.named(pair.first) == oracle.named(pair.second)
    for entry, asked in ((pair.first, pair.second), (pair.second, pair.first)):
        network = values.listing(target, [entry])
        error = values.refusal(network.reaches, asked)
        if error is not None and not asked.isascii():
            continue  # a type may ask for A-labels
        if error is not None or network.reaches(asked) is not want:
            raise Violation(
                f"{network!r}.reaches({asked!r}) was not {want} ({pair.kind})",
                remedy="compare lower-case A-labels of IDNA 2008 without a final dot, and IPv6 "
                "addresses as numbers, on both sides",
            )


@verifies(NET_07)
@given(text=st.one_of(spellings.odd_texts, hosts.entries.map(lambda entry: entry.text)))
@each("text", spellings.ODD_TEXTS)
def test_each_accepted_entry_reaches_itself(target: Target, text: str) -> None:
    """An entry that is accepted reaches itself, however odd it is."""
    network = values.listing(target, [text])
    if values.built(network.reaches, text) is not True:
        raise Violation(
            f"Network.allow(hosts=[{text!r}]) was built, and does not reach {text!r}",
            remedy="bring what is listed and what is asked into the same normal form",
        )
