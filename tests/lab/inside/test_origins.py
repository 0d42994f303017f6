"""Certificates, names, proxies and behaviours are what they say, and wrong in no other way."""

from __future__ import annotations

import json
import socket
import ssl
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from conformance.lab.errors import LabError
from conformance.lab.sites import Names
from tests.lab.inside import clients

if TYPE_CHECKING:
    from conformance.lab.client import Lab


@pytest.mark.parametrize(
    ("certificate", "wrong"),
    [
        ("good", ""),
        ("expired", "certificate has expired"),
        ("not-yet-valid", "certificate is not yet valid"),
        ("wrong-host", "Hostname mismatch"),
        ("unknown-ca", "unable to get local issuer certificate"),
        ("self-signed", "self-signed certificate"),
    ],
)
def test_a_certificate_is_wrong_in_the_way_it_says(
    any_lab: Lab, certificate: str, wrong: str
) -> None:
    site = any_lab.site(certificate=certificate)  # type: ignore[arg-type]
    message = clients.handshake(any_lab, site, site.name).replace("self signed", "self-signed")
    assert message.startswith(wrong) if wrong else message == ""


@pytest.mark.parametrize("family", [4, 6])
def test_a_certificate_is_good_for_the_address_too(lab: Lab, family: int) -> None:
    site = lab.site(family=family)  # type: ignore[arg-type]
    assert clients.handshake(lab, site, site.address) == ""
    assert clients.handshake(lab, site, "other.test").startswith("Hostname mismatch")


def test_tls_ends_with_a_goodbye(any_lab: Lab) -> None:
    site = any_lab.site()
    context = ssl.create_default_context(cafile=str(any_lab.ca_bundle))
    with (
        clients.dial(site.address, site.https_port) as connection,
        context.wrap_socket(
            connection, server_hostname=site.name, suppress_ragged_eofs=False
        ) as tls,
    ):
        request = f"GET /{site.nonce} HTTP/1.1\r\nhost: {site.name}\r\nconnection: close\r\n\r\n"
        tls.sendall(request.encode())
        assert site.token.encode() in clients.read_all(tls)


def test_a_name_resolves_to_its_address_and_a_stranger_to_none(lab: Lab) -> None:
    site = lab.site(family=46)
    assert clients.resolve(site.name) == [site.addresses[0]]
    assert clients.resolve(site.name.upper() + ".", socket.AF_INET6) == [site.addresses[1]]
    assert clients.resolve("nobody.test") == []


def test_a_schedule_moves_on_and_its_last_answer_stays(lab: Lab) -> None:
    site = lab.site(dns=[["11.70.0.1"], ["11.70.0.2", "127.0.0.1"]])
    answers = [clients.resolve(site.name) for _ in range(3)]
    assert answers[0] == ["11.70.0.1"]
    assert [sorted(answer) for answer in answers[1:]] == [["11.70.0.2", "127.0.0.1"]] * 2


def test_each_record_type_has_its_own_turn(lab: Lab) -> None:
    site = lab.site(dns=[["11.70.0.1", "2a11:99::1"], ["10.0.0.1", "fd00::1"]])
    assert clients.resolve(site.name, socket.AF_INET6) == ["2a11:99::1"]
    assert clients.resolve(site.name, socket.AF_INET) == ["11.70.0.1"]
    assert clients.resolve(site.name, socket.AF_INET6) == ["fd00::1"]


def test_a_silent_name_is_asked_and_not_answered(lab: Lab) -> None:
    site = lab.site(dns=Names([], silent=True))
    with pytest.raises(TimeoutError):
        clients.ask(site.name, seconds=0.2)
    assert [s.kind for s in lab.seen(site)] == ["packet", "dns"]


def test_a_late_answer_comes_late(lab: Lab) -> None:
    site = lab.site(dns=Names([["11.70.0.9"]], delay=0.3))
    begin = time.monotonic()
    assert socket.inet_aton("11.70.0.9") in clients.ask(site.name)
    assert time.monotonic() - begin >= 0.3


def test_questions_come_over_tcp_as_well(lab: Lab) -> None:
    site = lab.site()
    query = clients.question(site.name)
    with clients.dial("11.77.0.254", 53) as connection:
        connection.sendall(len(query).to_bytes(2, "big") + query)
        assert socket.inet_aton(site.address) in connection.recv(clients.BYTES)
    assert [(s.kind, s.protocol) for s in lab.seen(site)] == [("dns", "tcp")]


def test_what_is_no_question_is_survived(lab: Lab) -> None:
    mark = lab.mark()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        for junk in (b"", b"x", b"\xff" * 40, bytes(12)):
            client.sendto(junk, ("11.77.0.254", 53))
        assert [s.kind for s in lab.traffic(mark)].count("dns") == 4
    assert clients.resolve((site := lab.site()).name) == [site.address]


def _proxied(lab: Lab, kind: str, head: str) -> tuple[socket.socket, bytes]:
    place = urlsplit(lab.proxy(kind))  # type: ignore[arg-type]
    connection = clients.dial(str(place.hostname), place.port or 0)
    connection.sendall(f"{head}\r\n\r\n".encode())
    return connection, connection.recv(clients.BYTES)


def test_the_honest_proxy_tunnels(any_lab: Lab) -> None:
    site = any_lab.site()
    target = f"{site.address}:{site.https_port}"
    connection, answer = _proxied(any_lab, "honest", f"CONNECT {target} HTTP/1.1\r\nhost: x")
    assert answer.startswith(b"HTTP/1.1 200")
    context = ssl.create_default_context(cafile=str(any_lab.ca_bundle))
    with connection, context.wrap_socket(connection, server_hostname=site.name) as tls:
        tls.sendall(f"GET /{site.nonce} HTTP/1.1\r\nhost: {site.name}\r\n\r\n".encode())
        assert site.token.encode() in tls.recv(clients.BYTES)
    assert [s.kind for s in any_lab.seen(site)].count("request") == 1


def test_the_honest_proxy_knows_the_labs_names(lab: Lab) -> None:
    site = lab.site()
    head = f"GET http://{site.name}/{site.nonce} HTTP/1.1\r\nhost: {site.name}"
    connection, answer = _proxied(lab, "honest", head)
    connection.close()
    assert site.token.encode() in answer


def test_a_connect_is_seen_as_the_sites(lab: Lab) -> None:
    site = lab.site()
    connection, _ = _proxied(lab, "yes", f"CONNECT {site.name}:443 HTTP/1.1\r\nhost: x")
    connection.close()
    (connect,) = [s for s in lab.seen(site) if s.kind == "connect"]
    assert (connect.name, connect.path) == (site.name, f"{site.name}:443")


def test_the_yes_sayer_says_yes_and_opens_nothing(any_lab: Lab) -> None:
    site = any_lab.site()
    target = f"{site.address}:{site.https_port}"
    connection, answer = _proxied(any_lab, "yes", f"CONNECT {target} HTTP/1.1\r\nhost: x")
    connection.close()
    assert answer.startswith(b"HTTP/1.1 200")
    assert [s.kind for s in any_lab.seen(site) if s.port == site.https_port] == []


def test_a_redirect_is_told(any_lab: Lab) -> None:
    site = any_lab.site(redirect=(307, "http://elsewhere.test/"))
    answer = clients.get(site)
    assert answer.startswith(b"HTTP/1.1 307")
    assert b"location: http://elsewhere.test/" in answer.lower()


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [("answer", b" 200 "), ("status:404", b" 404 "), ("close", b""), ("loop", b" 302 ")],
)
def test_an_origin_behaves_as_it_is_told(any_lab: Lab, behaviour: str, expected: bytes) -> None:
    answer = clients.get(any_lab.site(behaviour=behaviour))
    assert expected in answer
    assert bool(answer) is bool(expected)


def test_an_echo_tells_what_came(any_lab: Lab) -> None:
    site = any_lab.site(behaviour="echo")
    told = json.loads(clients.get(site, headers="x-key: value\r\n").partition(b"\r\n\r\n")[2])
    assert told["token"] == site.token
    assert ["x-key", "value"] in told["headers"]


def test_a_large_answer_is_large_and_a_head_answer_has_no_body(any_lab: Lab) -> None:
    site = any_lab.site(behaviour="large:300000")
    assert len(clients.get(site).partition(b"\r\n\r\n")[2]) == 300_000
    assert clients.get(site, method="HEAD").endswith(b"\r\n\r\n")


def test_a_silent_site_takes_the_connection_and_says_nothing(any_lab: Lab) -> None:
    site = any_lab.site(behaviour="silent")
    with clients.dial(site.address, site.http_port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)
    assert "accept" in [s.kind for s in any_lab.seen(site)]


def test_a_reset_site_resets(any_lab: Lab) -> None:
    site = any_lab.site(behaviour="reset")
    with (
        pytest.raises(ConnectionResetError),
        clients.dial(site.address, site.http_port) as connection,
    ):
        connection.recv(1)


def test_an_unknown_behaviour_is_refused(any_lab: Lab) -> None:
    with pytest.raises(LabError, match="'dance' is none of"):
        any_lab.site(behaviour="dance")


def test_a_look_alike_is_a_site_of_its_own(lab: Lab) -> None:
    listed = lab.site()
    twin = lab.site(name=f"x{listed.name}")
    assert clients.resolve(twin.name) == [twin.address]
    lab.reach(twin, "https")
    clients.get(twin)
    assert [s for s in lab.seen(listed) if s.kind == "request"] == []
    assert [s.name for s in lab.seen(twin) if s.kind == "request"] == [twin.name]


def test_a_site_spells_its_urls(lab: Lab) -> None:
    site = lab.site(family=6)
    assert site.entry == site.name
    assert site.url() == f"https://{site.name}/{site.nonce}"
    assert site.url("http", port=8080, path="a") == f"http://{site.name}:8080/{site.nonce}/a"
    assert site.url(host=site.address) == f"https://[{site.address}]/{site.nonce}"


def test_tokens_differ(any_lab: Lab) -> None:
    assert len({any_lab.site().token for _ in range(3)}) == 3


def test_bad_tls_and_bad_http_are_survived(any_lab: Lab) -> None:
    site = any_lab.site()
    for port, junk in (
        (site.https_port, b"\x16\x03\x01\x00\x05junk!"),
        (site.https_port, b"\x16\x03\x01\xff\xff"),
        (site.http_port, b"\x00\xff\r\n\r\n"),
        (site.http_port, b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n"),
        (site.http_port, b"GET / HTTP/9.9\r\n\r\n"),
    ):
        with clients.dial(site.address, port) as connection:
            connection.sendall(junk)
            connection.shutdown(socket.SHUT_WR)
            clients.read_all(connection)
    any_lab.reach(site, "https")
    any_lab.reach(site, "http")
