"""NET: what the network's value type accepts, equals, and says it reaches."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from hypothesis import example, given
from hypothesis import strategies as st

from conformance import oracle
from conformance.marks import verifies
from conformance.oracle import Origin
from conformance.probes import values
from conformance.requirements import NET_01, NET_02, NET_04, NET_05, NET_08, NET_12
from conformance.strategies import hosts, look_alikes, no_entries, policies
from conformance.strategies.each import each
from conformance.verdicts import Violation

if TYPE_CHECKING:
    from conformance.strategies.hosts import Entry, WrongEntry
    from conformance.subject.targets import Target
    from sandboxes.contract import Network

_HOST = values.HOST
_FIELDS = ("mode", "hosts")


@verifies(NET_01)
@given(listed=st.lists(hosts.entries, min_size=1, max_size=3))
# Neither in alphabetical order nor each of them once.
@example(listed=[hosts.ENTRIES[3], hosts.ENTRIES[0], hosts.ENTRIES[8], hosts.ENTRIES[0]])
def test_methods_and_constructor_build_the_same(target: Target, listed: list[Entry]) -> None:
    """`none()`, `all()` and `allow()` equal what the constructor builds; its default is `none`."""
    kind, texts = target.Network, tuple(entry.text for entry in listed)
    values.listing(target, texts)
    ways: dict[str, list[Network]] = {
        "none": [
            *(values.built(kind.none), values.built(kind)),
            *(values.built(kind, mode="none"), values.built(kind, mode="none", hosts=())),
        ],
        "all": [values.built(kind.all), values.built(kind, mode="all")],
        "allow": [
            *(values.built(kind.allow, hosts=texts), values.built(kind.allow, hosts=list(texts))),
            values.built(kind, mode="allow", hosts=texts),
        ],
    }
    for mode, made in ways.items():
        alike = all(values.equal(one, made[0]) and one.hosts == made[0].hosts for one in made)
        if not alike or any(one.mode != mode or not isinstance(one, kind) for one in made):
            raise Violation(
                f"Network.{mode}() and its constructor built {made!r}",
                remedy="let each method call the constructor with its mode, and with the hosts",
            )


@verifies(NET_01)
@given(wrong=no_entries.no_questions)
@each("wrong", no_entries.ONE_OF_EACH)
def test_the_constructor_refuses_what_allow_refuses(target: Target, wrong: WrongEntry) -> None:
    """What `allow(hosts=...)` raises on, the constructor raises on as well."""
    listed = (_HOST, wrong.text)
    if values.refusal(target.Network.allow, hosts=listed) is None:
        return  # NET-02 and NET-03 speak of wrong entries that are taken
    if values.refusal(target.Network, mode="allow", hosts=listed) is None:
        raise Violation(
            f"Network(mode='allow', hosts={listed!r}) was built, though allow() refuses these",
            remedy="validate in the constructor, and let every method call it",
        )


@verifies(NET_02)
@given(entry=hosts.entries)
@each("entry", hosts.ENTRIES)
def test_a_host_with_an_optional_port_is_an_entry(target: Target, entry: Entry) -> None:
    """A host name or IP address, with an optional port, is accepted."""
    values.built(target.Network.allow, hosts=[entry.text])


@verifies(NET_02)
@given(wrong=hosts.wrong_entries, others=st.lists(hosts.entries, max_size=2))
@each("wrong", hosts.SCHEME_PATH_WILDCARD, others=[hosts.ENTRIES[0]])
def test_a_scheme_a_path_or_a_wildcard_is_no_entry(
    target: Target, wrong: WrongEntry, others: list[Entry]
) -> None:
    """An entry with a scheme, a path or `*` raises, alone and among right ones."""
    for listed in ([wrong.text], [*(entry.text for entry in others), wrong.text]):
        if values.refusal(target.Network.allow, hosts=listed) is None:
            raise Violation(
                f"Network.allow(hosts={listed!r}) raised nothing though an entry has a "
                f"{wrong.fault}",
                remedy="raise a ValueError for every entry that is not host[:port]",
            )


@verifies(NET_04)
@given(text=hosts.one_word_names)
# Its letters are host names too, so that to go through them raises nothing.
@example(text="localhost")
@example(text="a")
def test_hosts_go_with_allow_alone_and_are_no_plain_text(target: Target, text: str) -> None:
    """Hosts beside none or all, allow without hosts, and a plain text for hosts raise."""
    kind: Any = target.Network
    wrong: tuple[tuple[Any, dict[str, Any]], ...] = (
        (kind, {"mode": "none", "hosts": (text,)}),
        (kind, {"mode": "all", "hosts": (text,)}),
        (kind, {"hosts": (text,)}),
        (kind, {"mode": "allow"}),
        (kind, {"mode": "allow", "hosts": text}),
        (kind.allow, {"hosts": ()}),
        (kind.allow, {"hosts": []}),
        (kind.allow, {"hosts": text}),
    )
    for call, options in wrong:
        if values.refusal(call, **options) is None:
            raise Violation(
                f"{values.written(call, **options)} raised nothing",
                remedy="raise for hosts without mode allow, allow without hosts, and a plain text",
            )
    values.built(kind.allow, hosts=(text,))


@verifies(NET_05)
@given(
    listed=st.lists(hosts.entries, min_size=1, max_size=3),
    port=hosts.ports,
    stranger=hosts.entries,
)
@example(listed=list(hosts.MIXED_ENTRIES), port=80, stranger=hosts.ENTRIES[0])
def test_reaches_is_none_never_all_always_allow_what_is_listed(
    target: Target, listed: list[Entry], port: int, stranger: Entry
) -> None:
    """`reaches` is false under none(), true under all(), and under allow() for what is listed."""
    origins = {entry.origin for entry in listed}
    networks = {
        "none": target.Network.none(),
        "all": target.Network.all(),
        "allow": values.listing(target, [origin.full for origin in sorted(origins)]),
    }
    # Each host with each port: what compares them apart takes one entry's for another's.
    ports = {port, *(origin.port for origin in origins)}
    crossed = {Origin(origin.host, other) for origin in origins for other in ports}
    for asked in (*sorted(crossed), stranger.origin):
        for mode in oracle.MODES:
            got = values.built(networks[mode].reaches, asked.full)
            want = oracle.opens(mode, origins, asked)
            if got is not want:
                raise Violation(
                    f"{networks[mode]!r}.reaches({asked.full!r}) gave {got!r}, not {want}",
                    remedy="compare host and port with each entry, and with nothing else",
                )


@verifies(NET_05)
def test_reaches_knows_every_entry_of_a_long_list(target: Target) -> None:
    """Under allow() `reaches` is true for each entry of a long list, and false for no entry."""
    # Ports are written out, and nothing is left to bring into normal form.
    texts = [Origin(f"other-{number}.example").full for number in range(policies.MOST_ENTRIES)]
    network = values.listing(target, texts)
    asked = {texts[0]: True, texts[-1]: True, "other.example:443": False}
    asked |= {texts[place]: True for place in (8, 10, 16, 32, 64, 100, 128)}
    for text, want in asked.items():
        got = values.built(network.reaches, text)
        if got is not want:
            raise Violation(
                f"with {len(texts)} entries reaches({text!r}) gave {got!r}, not {want}",
                remedy="compare with every entry of the list",
            )


@verifies(NET_08)
@given(
    entries=st.lists(hosts.long_name_entries, min_size=1, max_size=3),
    word=hosts.plain_labels,
)
@example(entries=list(hosts.MIXED_ENTRIES), word="evil")
def test_no_entry_reaches_a_look_alike(target: Target, entries: list[Entry], word: str) -> None:
    """No entry reaches a host that only contains, begins or ends with it."""
    network = values.listing(target, [entry.text for entry in entries])
    listed = {entry.origin for entry in entries}
    others = look_alikes.look_alikes_with(word)
    for origin, look_alike in itertools.product(sorted(listed), others):
        other = Origin(look_alike.of(origin.host), origin.port)
        if other in listed or values.refusal(network.reaches, str(other)):
            continue  # what is no entry is reached by none
        if network.reaches(str(other)):
            raise Violation(
                f"{network!r}.reaches({str(other)!r}) gave True: {look_alike.kind}",
                remedy="compare whole hosts, never parts of their text",
            )


@verifies(NET_12)
@given(listed=st.lists(hosts.entries, min_size=1, max_size=3))
@example(listed=list(hosts.MIXED_ENTRIES))
def test_networks_are_values(target: Target, listed: list[Entry]) -> None:
    """Networks are immutable, hashable, and equal exactly when mode and hosts are."""
    kind, texts = target.Network, [entry.text for entry in listed]
    passed = list(texts)
    network = values.listing(target, passed)
    before = tuple(network.hosts)
    passed.append("added-later.example")
    others = [
        kind.none(),
        kind.all(),
        values.listing(target, [*texts, _HOST]),
        values.listing(target, [_HOST]),
    ]
    fault = (
        "it holds the caller's list" * (tuple(network.hosts) != before)
        or values.emptied(network, ("hosts", "entries"))
        or values.not_equal_by_value(network, values.listing(target, texts), others)
        or values.changed(network, _FIELDS)
    )
    if fault:
        raise Violation(
            f"of Network.allow(hosts={texts!r}): {fault}",
            remedy="make it a frozen dataclass that holds tuples, as Network is",
        )
