"""The lists and targets of the differential check: each spelling means what it is said to mean."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

import pytest
from hypothesis import given

from conformance.oracle import Origin, is_private
from conformance.strategies import policies
from conformance.strategies.policies import CANONICAL, CASES, MOST_ENTRIES, Case, Spot, name_of
from sandboxes.contract import HostEntry, Network

ADDRESSES = {"IPv4": "11.96.0.{}", "IPv6": "2a11:78::{}"}


def origin_of(spot: Spot) -> Origin:
    host = name_of(spot.kin, f"host{spot.host}.test")
    if spot.by != "name":
        host = ADDRESSES[spot.by].format(spot.host + 1)
    return Origin(host, spot.port)


@given(case=policies.cases)
def test_an_entry_names_its_spot_however_it_is_spelled(case: Case) -> None:
    for entries in case.lists:
        for entry in entries:
            origin = origin_of(entry.spot)
            assert HostEntry.parse(entry.text(origin)) == HostEntry(origin.host, origin.port)


@given(case=policies.cases)
def test_the_url_of_a_target_goes_to_its_spot(case: Case) -> None:
    for target in case.targets:
        origin = origin_of(target.spot)
        parts = urlsplit(f"{target.scheme}://{target.authority(origin)}/")
        assert (parts.port or {"https": 443, "http": 80}[target.scheme]) == origin.port
        if target.spelling in CANONICAL:
            assert parts.hostname == origin.host


@given(case=policies.cases)
def test_a_list_has_1_to_50_entries(case: Case) -> None:
    for entries in case.lists:
        texts = case.texts([entry.text(origin_of(entry.spot)) for entry in entries])
        assert 1 <= len(texts) <= MOST_ENTRIES
        assert len(Network.allow(hosts=texts).entries) == len(texts)


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_what_nobody_goes_to_is_no_target(case: Case) -> None:
    names = {HostEntry.parse(text).host for text in case.texts([])}
    assert names.isdisjoint({origin_of(spot).host for spot in case.spots()})


def test_the_examples_hold_what_arrives_and_what_does_not() -> None:
    told = {
        origin_of(target.spot) in {origin_of(entry.spot) for entry in case.lists[target.session]}
        for case in CASES
        for target in case.targets
    }
    assert told == {True, False}
    assert max(len(case.lists[0]) + case.others for case in CASES) == MOST_ENTRIES


def test_addresses_beside_private_ranges_are_public_by_the_library_too() -> None:
    assert all(ipaddress.ip_address(text).is_global for text in policies.PUBLIC)
    assert not any(is_private(text) for text in policies.PUBLIC)
    assert all(is_private(text) for text in policies.PRIVATE)
