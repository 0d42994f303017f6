"""NET: the entries of an allow list, and what a network says it reaches."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from hypothesis import example, given, reject
from hypothesis import strategies as st

from conformance import oracle
from conformance.marks import verifies
from conformance.oracle import Origin
from conformance.requirements import NET_02, NET_05, NET_08
from conformance.strategies import hosts, look_alikes
from conformance.strategies.each import each
from conformance.verdicts import Violation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.strategies.hosts import Entry, WrongEntry
    from conformance.subject.targets import Target
    from sandboxes.contract import Network


@verifies(NET_02)
@given(entry=hosts.entries)
@each("entry", hosts.ENTRIES)
def test_a_host_with_an_optional_port_is_an_entry(target: Target, entry: Entry) -> None:
    """A host name or IP address, with an optional port, is accepted."""
    try:
        target.Network.allow(hosts=[entry.text])
    except ValueError as error:
        raise Violation(
            f"Network.allow(hosts=[{entry.text!r}]) raised {error!r}",
            remedy="accept host names and IP addresses with an optional :port",
        ) from error


@verifies(NET_02)
@given(wrong=hosts.wrong_entries, others=st.lists(hosts.entries, max_size=2))
def test_a_scheme_a_path_or_a_wildcard_is_no_entry(
    target: Target, wrong: WrongEntry, others: list[Entry]
) -> None:
    """An entry with a scheme, a path or `*` raises, alone and among right ones."""
    hosts = [*(entry.text for entry in others), wrong.text]
    try:
        network = target.Network.allow(hosts=hosts)
    except ValueError:
        return
    raise Violation(
        f"Network.allow(hosts={hosts!r}) gave {network!r} though an entry has a {wrong.fault}",
        remedy="raise a ValueError for every entry that is not host[:port]",
    )


def _allow(target: Target, entries: Sequence[Entry]) -> Network:
    try:
        return target.Network.allow(hosts=[entry.text for entry in entries])
    except ValueError:
        reject()  # NET-02 speaks of right entries that are refused


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
    networks = {
        "none": target.Network.none(),
        "all": target.Network.all(),
        "allow": _allow(target, listed),
    }
    origins = {entry.origin for entry in listed}
    # Each host with each port: what compares them apart takes one entry's for another's.
    ports = {port, *(origin.port for origin in origins)}
    crossed = {Origin(origin.host, other) for origin in origins for other in ports}
    for asked in (*sorted(crossed), stranger.origin):
        for mode in oracle.MODES:
            got, want = networks[mode].reaches(str(asked)), oracle.opens(mode, origins, asked)
            if got is not want:
                raise Violation(
                    f"{networks[mode]!r}.reaches({str(asked)!r}) gave {got!r}, not {want}",
                    remedy="compare host and port with each entry, and with nothing else",
                )


@verifies(NET_08)
@given(
    entries=st.lists(hosts.long_name_entries, min_size=1, max_size=3),
    word=hosts.plain_labels,
)
@example(entries=list(hosts.MIXED_ENTRIES), word="evil")
def test_no_entry_reaches_a_look_alike(target: Target, entries: list[Entry], word: str) -> None:
    """No entry reaches a host that only contains, begins or ends with it."""
    network = _allow(target, entries)
    listed = {entry.origin for entry in entries}
    others = look_alikes.look_alikes_with(word)
    for origin, look_alike in itertools.product(sorted(listed), others):
        other = Origin(look_alike.of(origin.host), origin.port)
        if other in listed:
            continue
        try:
            reached = network.reaches(str(other))
        except ValueError:
            continue  # what is no entry is reached by none
        if reached:
            raise Violation(
                f"{network!r}.reaches({str(other)!r}) gave {reached!r}: {look_alike.kind}",
                remedy="compare whole hosts, never parts of their text",
            )
