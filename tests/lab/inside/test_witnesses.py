"""Every way out is seen by a witness, and nothing else is."""

from __future__ import annotations

import errno
import socket
import ssl
from typing import TYPE_CHECKING

import pytest

from conformance.lab import addresses
from conformance.lab.errors import LabError
from tests.lab.inside import clients

if TYPE_CHECKING:
    from conformance.lab.client import Lab


def kinds(sightings: list) -> list[str]:  # type: ignore[type-arg]
    return [sighting.kind for sighting in sightings]


def test_a_quiet_lab_has_seen_nothing(any_lab: Lab) -> None:
    site, mark = any_lab.site(), any_lab.mark()
    assert any_lab.seen(site) == []
    assert any_lab.traffic(mark) == []


def test_a_connection_that_never_speaks_is_seen(lab: Lab) -> None:
    site = lab.site()
    with clients.dial(site.address, site.https_port):
        seen = lab.seen(site)
    assert kinds(seen) == ["packet", "accept"]
    assert {(s.address, s.port, s.protocol, s.site) for s in seen} == {
        (site.address, 443, "tcp", site.nonce)
    }


def test_a_hello_is_seen_with_its_name_and_protocols(lab: Lab) -> None:
    site = lab.site()
    context = ssl.create_default_context(cafile=str(lab.ca_bundle))
    context.set_alpn_protocols(["h2", "http/1.1"])
    with clients.dial(site.address, 443) as connection:
        context.wrap_socket(connection, server_hostname=site.name).close()
    hello = next(s for s in lab.seen(site) if s.kind == "hello")
    assert (hello.name, hello.alpn) == (site.name, ("h2", "http/1.1"))


def test_a_hello_in_pieces_is_read_whole(lab: Lab) -> None:
    site = lab.site()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=site.name)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    hello = outgoing.read()
    with clients.dial(site.address, 443) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(hello), 100):
            connection.sendall(hello[at : at + 100])
        assert connection.recv(1) == b"\x16"  # it answers with its own hello
    assert [s.name for s in lab.seen(site) if s.kind == "hello"] == [site.name]


def test_a_request_is_seen_as_it_was_sent(any_lab: Lab) -> None:
    site = any_lab.site()
    body = "with a body"
    fields = f"X-Key: one\r\nx-key: two\r\ncontent-length: {len(body)}\r\n"
    with clients.dial(site.address, site.http_port) as connection:
        head = f"POST /{site.nonce}/a/../b HTTP/1.1\r\nHost: {site.name.upper()}\r\n{fields}\r\n"
        connection.sendall((head + body).encode())
        answer = connection.recv(clients.BYTES)
    assert site.token.encode() in answer
    (request,) = [s for s in any_lab.seen(site) if s.kind == "request"]
    assert (request.method, request.path) == ("POST", f"/{site.nonce}/a/../b")
    assert (request.name, request.payload, request.tls) == (site.name, body.encode(), False)
    assert [value for name, value in request.headers if name == "x-key"] == ["one", "two"]


def test_what_is_no_tls_is_seen_with_its_bytes(any_lab: Lab) -> None:
    site = any_lab.site()
    with clients.dial(site.address, site.https_port) as connection:
        connection.sendall(b"SSH-2.0-out\r\n")
        assert connection.recv(1) == b""
    assert [s.payload for s in any_lab.seen(site) if s.kind == "request"] == [b"SSH-2.0-out\r\n"]


def test_bytes_to_another_port_are_seen(any_lab: Lab) -> None:
    site = any_lab.site()
    with clients.dial(site.address, site.other_port) as connection:
        assert connection.recv(clients.BYTES).decode().strip() == site.token
        connection.sendall(b"secret")
        seen = any_lab.seen(site)
    assert [s.payload for s in seen if s.kind == "request"] == [b"secret"]


@pytest.mark.parametrize("port", [addresses.OTHER_UDP_PORT, 40404])
def test_a_datagram_is_seen_whether_or_not_anything_listens(lab: Lab, port: int) -> None:
    site = lab.site()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"out", (site.address, port))
        seen = lab.seen(site)
    assert {(s.protocol, s.port, s.payload) for s in seen} == {("udp", port, b"out")}


@pytest.mark.parametrize("family", [4, 6])
def test_a_datagram_is_answered_from_the_address_that_was_asked(lab: Lab, family: int) -> None:
    site = lab.site(family=family)  # type: ignore[arg-type]
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    with socket.socket(kind, socket.SOCK_DGRAM) as client:
        client.settimeout(clients.SECONDS)
        client.sendto(b"?", (site.address, site.udp_port))
        answer, peer = client.recvfrom(clients.BYTES)
    assert (answer.decode().strip(), peer[0]) == (site.token, site.address)


@pytest.mark.parametrize("family", [4, 6])
def test_a_try_at_a_port_that_nobody_listens_on_is_seen(lab: Lab, family: int) -> None:
    site = lab.site(family=family)  # type: ignore[arg-type]
    with pytest.raises(ConnectionRefusedError):
        clients.dial(site.address, 31337)
    assert [(s.kind, s.address, s.port) for s in lab.seen(site)] == [
        ("packet", site.address, 31337)
    ]


def test_a_question_is_seen_also_beneath_the_name(lab: Lab) -> None:
    site = lab.site()
    longer = f"leak.{site.name.upper()}.attacker.test"
    assert clients.resolve(longer) == []
    asked = {(s.name, s.method) for s in lab.seen(site) if s.kind == "dns"}
    assert asked == {(longer.lower(), "A")}


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8", "10.1.2.3", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1",
        "0.1.2.3", "192.0.0.5", "198.18.0.1", "240.0.0.1", "11.77.0.33",
        "2606:4700::1", "fd00::5", "fec0::1", "2a11:77::44", "64:ff9b::a01:203", "::a01:203",
        "2002:a01:203::1", "2001::1",
    ],
)  # fmt: skip
def test_any_address_answers_and_is_seen(lab: Lab, address: str) -> None:
    site = lab.site(addresses=[address])
    lab.reach(site, "http")
    with clients.dial(address, 443):
        seen = lab.seen(site)
    assert {(s.kind, s.address) for s in seen} == {("packet", address), ("accept", address)}


def test_a_mapped_address_is_seen_as_the_one_it_means(lab: Lab) -> None:
    site = lab.site()
    with clients.dial(f"::ffff:{site.address}", 443):
        assert {s.address for s in lab.seen(site)} == {site.address}


def test_a_multicast_datagram_is_seen(lab: Lab) -> None:
    mark = lab.mark()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"who", ("224.0.0.251", 5353))
    assert [(s.address, s.port, s.payload) for s in lab.traffic(mark)] == [
        ("224.0.0.251", 5353, b"who")
    ]


def test_a_ping_is_seen(lab: Lab, as_root: None) -> None:
    site = lab.site()
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as client:
        client.sendto(b"\x08\0\xf7\xff\0\0\0\0", (site.address, 0))
    assert [(s.kind, s.protocol) for s in lab.seen(site)] == [("packet", "icmp")]


def test_the_own_loopback_services_are_witnessed(any_lab: Lab) -> None:
    site = any_lab.loopback_site()
    for address in ("127.0.0.1", "::1"):
        with clients.dial(address, site.https_port):
            pass
    accepted = [s.address for s in any_lab.seen(site) if s.kind == "accept"]
    assert accepted == ["127.0.0.1", "::1"]


def test_events_before_a_site_are_not_the_sites(lab: Lab) -> None:
    with clients.dial("10.9.9.9", 443):
        pass
    lab.mark()
    assert lab.seen(lab.site(addresses=["10.9.9.9"])) == []


def test_a_nonce_in_a_path_tells_where_a_request_belongs(lab: Lab) -> None:
    meant, found = lab.site(), lab.site()
    with clients.dial(found.address, 80) as connection:
        connection.sendall(f"GET /{meant.nonce} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        connection.recv(clients.BYTES)
    (request,) = [s for s in lab.seen(meant) if s.kind == "request"]
    assert request.address == found.address


def test_no_quick_connection_is_missed(lab: Lab) -> None:
    mark = lab.mark()
    for number in range(200):
        address = f"11.65.{number}.1"
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
            client.setblocking(False)
            assert client.connect_ex((address, 31337)) in (0, errno.EINPROGRESS)
        assert [s.address for s in lab.traffic(mark)][number:] == [address]


def test_a_burst_is_seen_whole(lab: Lab) -> None:
    mark = lab.mark()
    expected = [f"11.66.{number}.1" for number in range(200)]
    for address in expected:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
            client.setblocking(False)
            client.connect_ex((address, 31337))
    assert [s.address for s in lab.traffic(mark)] == expected


def test_a_payload_that_just_left_is_on_record(any_lab: Lab) -> None:
    for _ in range(50):
        site = any_lab.site()
        with clients.dial(site.address, site.other_port) as connection:
            connection.sendall(site.nonce.encode())
            seen = any_lab.seen(site)
        assert site.nonce.encode() in [s.payload for s in seen if s.kind == "request"]


@pytest.mark.parametrize("scheme", ["https", "http", "tcp", "udp"])
def test_a_control_arrives_and_is_left_out(any_lab: Lab, scheme: str) -> None:
    site = any_lab.site()
    assert any_lab.reach(site, scheme)  # type: ignore[arg-type]
    assert any_lab.seen(site) == []


def test_a_control_that_does_not_arrive_is_the_labs_error(any_lab: Lab) -> None:
    site = any_lab.site(behaviour="reset")
    with pytest.raises(LabError, match=r"did not reach|did not see"):
        any_lab.reach(site, "https")


def test_judgments_are_counted(any_lab: Lab) -> None:
    site, before = any_lab.site(), any_lab.judged
    any_lab.seen(site)
    any_lab.reach(site, "http")
    assert any_lab.judged == before + 1


def test_an_interrupted_question_does_not_shift_the_answers(any_lab: Lab) -> None:
    site = any_lab.site()
    any_lab._socket.sendall(b'{"do": "ping", "id": -1}\n')  # asked, its answer never fetched
    with clients.dial(site.address, site.http_port):
        assert "accept" in kinds(any_lab.seen(site))
