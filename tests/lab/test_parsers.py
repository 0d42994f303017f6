"""The witnesses' own parsers survive whatever a peer sends."""

from __future__ import annotations

import ssl
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.lab.servers import hello, sniffer


def _client_hello(name: str) -> bytes:
    outgoing = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


_HELLO = _client_hello("name.test")


@given(st.binary(max_size=400) | st.binary(max_size=400).map(lambda end: _HELLO[:60] + end))
def test_a_hello_is_read_or_refused(data: bytes) -> None:
    with suppress(ValueError, hello.Incomplete):
        assert isinstance(hello.parse(data).name, str)


@given(st.integers(min_value=0, max_value=len(_HELLO) - 1))
def test_a_hello_cut_short_is_incomplete(size: int) -> None:
    with pytest.raises(hello.Incomplete):
        hello.parse(_HELLO[:size])


def test_a_hello_over_several_records_is_read() -> None:
    body = _HELLO[5:]
    records = [body[at : at + 50] for at in range(0, len(body), 50)]
    split = b"".join(_HELLO[:3] + len(part).to_bytes(2, "big") + part for part in records)
    assert hello.parse(split).name == "name.test"


@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda rest: b"\x45" + rest)
       | st.binary(max_size=200).map(lambda rest: b"\x60" + rest))  # fmt: skip
def test_a_packet_is_read_or_left_out(data: bytes) -> None:
    packet = sniffer.parse(data)
    assert packet is None or len(packet.payload) <= len(data)


def test_extension_headers_hide_no_datagram() -> None:
    datagram = b"\x30\x39\x13\x8d\0\x0b\0\0out"
    options = b"\x11\0" + bytes(6)
    head = b"\x60\0\0\0\0\x13\x3c\x40" + bytes(15) + b"\1" + bytes(15) + b"\2"
    packet = sniffer.parse(head + options + datagram)
    assert packet == sniffer.Packet("udp", ("::1", 12345), ("::2", 5005), b"out")
