"""The lab's resolver answers whatever a check has it say."""

from __future__ import annotations

from unittest import mock

import dns.message
import pytest

from conformance.lab.servers.doors import Doors
from conformance.lab.servers.names import Resolver
from conformance.lab.servers.records import Journal
from conformance.lab.servers.registry import Registry

SAID = ("192.0.2.1", "127.1", "not an address", "fe80::1%lo", "2001:db8::1", "::ffff:192.0.2.2")


@pytest.mark.parametrize(
    ("kind", "given"),
    [("A", ["192.0.2.1"]), ("AAAA", ["2001:db8::1", "::ffff:192.0.2.2"]), ("TXT", [])],
)
def test_what_no_record_can_hold_is_left_out(kind: str, given: list[str]) -> None:
    registry = Registry()
    registry.add(
        own_name=True,
        nonce="n",
        worker="main",
        name="odd.site.test",
        addresses=("192.0.2.1",),
        ports={},
        certificate="good",
        behaviour="answer",
        redirect=None,
        schedule={"answers": [SAID], "delay": 0.0, "silent": False},
        shared=False,
        created=0,
    )
    query = dns.message.make_query("odd.site.test", kind)
    journal = mock.create_autospec(Journal, instance=True)
    resolver = Resolver(registry, journal, Doors())

    answered = resolver.answer(query.to_wire(), ("192.0.2.53", 53), ("192.0.2.9", 999), "udp")

    assert answered is not None
    response = dns.message.from_wire(answered[0])
    assert [record.to_text() for part in response.answer for record in part] == given
