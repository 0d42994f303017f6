from __future__ import annotations

import string
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxes import Network, RefusedConfiguration
from sandboxes.contract import HostEntry, InvalidHostEntry

if TYPE_CHECKING:
    import ipaddress

LABELS = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True).filter(
    lambda label: label[2:4] != "--"
)
NAMES = st.lists(LABELS, min_size=1, max_size=4).map(".".join)
PORTS = st.integers(1, 65535)
ADDRESSES = st.ip_addresses()


def literal(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    return f"[{address}]" if address.version == 6 else str(address)


HOSTS = NAMES | ADDRESSES.map(literal)


@given(NAMES, PORTS, st.data())
def test_comparison_is_on_the_normal_form(name: str, port: int, data: st.DataObject) -> None:
    cases = data.draw(st.lists(st.booleans(), min_size=len(name), max_size=len(name)))
    odd = "".join(c.upper() if up else c for c, up in zip(name, cases, strict=True))
    network = Network.allow(hosts=(f"{odd}.:{port}",))
    assert network.entries == (HostEntry(name, port),)
    assert network.reaches(f"{name}:{port}")


@given(HOSTS, PORTS)
def test_no_port_means_443_both_ways(host: str, port: int) -> None:
    assert Network.allow(hosts=(host,)).reaches(f"{host}:{port}") is (port == 443)
    assert Network.allow(hosts=(f"{host}:{port}",)).reaches(host) is (port == 443)


@given(HOSTS, HOSTS, PORTS, PORTS)
def test_only_the_listed_host_and_port_is_reached(
    listed: str, asked: str, port: int, asked_port: int
) -> None:
    network = Network.allow(hosts=(f"{listed}:{port}",))
    assert network.reaches(f"{asked}:{asked_port}") is ((listed, port) == (asked, asked_port))


@given(NAMES, LABELS)
def test_no_lookalike_is_reached(name: str, label: str) -> None:
    network = Network.allow(hosts=(name,))
    for lookalike in (f"{label}.{name}", f"{name}.{label}", f"{label}{name}", f"{name}{label}"):
        assert not network.reaches(lookalike)


@given(st.ip_addresses(v=6))
def test_an_ipv6_address_is_one_host_in_every_spelling(address: ipaddress.IPv6Address) -> None:
    network = Network.allow(hosts=(address.exploded,))
    assert network.reaches(f"[{address.compressed}]:443")
    assert network.entries[0].is_address
    assert str(network.entries[0]) == f"[{address.compressed}]"


@given(HOSTS, PORTS)
def test_what_an_entry_prints_is_the_same_entry(host: str, port: int) -> None:
    entry = HostEntry.parse(f"{host}:{port}")
    assert HostEntry.parse(str(entry)) == entry


def test_an_internationalized_name_is_its_a_labels() -> None:
    network = Network.allow(hosts=("BÜCHER.example",))
    assert network.entries == (HostEntry("xn--bcher-kva.example", 443),)
    assert network.reaches("xn--bcher-kva.example")


WRONG = [
    *("", ".", ":443", "a.test:", "a.test:0", "a.test:65536", "a.test:+1", "a.test:1:2"),
    *("https://a.test", "a.test/", "a.test/x", "*.test", "*", "u@a.test", "a.test?x", "a.test#x"),
    *(" a.test", "a.test ", "a.test\n", "a\t.test", "a\0.test", "a\\b", "a%2etest", "a\u00ad.test"),
    *("a..test", ".a.test", "a.test..", "-a.test", "a-.test", "l" * 64, f"{'a.' * 126}ab"),
    *("127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1", "256.1.1.1", "1.2.3.4.5", "1.2.3.0x4"),
    *("1:2:3:4:5:6:7:8:443", "::1%lo", "[::1", "::1]", "[::1]x", "[a.test]", "[1.2.3.4]:443"),
]


@pytest.mark.parametrize("entry", WRONG)
def test_what_is_no_entry_raises_in_lists_and_in_questions(entry: str) -> None:
    with pytest.raises(InvalidHostEntry) as raised:
        Network.allow(hosts=("a.test", entry))
    assert repr(entry) in str(raised.value)
    for network in (Network.none(), Network.all(), Network.allow(hosts=("a.test",))):
        with pytest.raises(InvalidHostEntry):
            network.reaches(entry)


HOST_ONLY = "write only the host, such as 'packages.example.org'"
LABELS_ARE = "use 1 to 63 letters, digits and hyphens"
PORTS_ARE = "write a port from 1 to 65535"
MESSAGES = [
    ("", "is empty", "write a host name or an IP address"),
    ("https://a.test", "has a scheme", HOST_ONLY),
    ("a.test/", "has a path", HOST_ONLY),
    ("a.test?x", "has a query", HOST_ONLY),
    ("a.test#x", "has a fragment", HOST_ONLY),
    ("u@a.test", "has user info", HOST_ONLY),
    ("a.test\\", "has a backslash", HOST_ONLY),
    ("*.test", "has a wildcard", "list each host by its full name"),
    ("::1%lo", "has a percent sign", "write the host without encoding and without a zone"),
    ("a\ttest", "has white space or a control character", "write the bare host"),
    ("[::1", "has misplaced brackets", "write '[2001:db8::1]:443'"),
    ("a.test:x", "has a port that is no number", PORTS_ARE),
    ("a.test:0", "has a port out of range", PORTS_ARE),
    ("1::2::3", "is no IPv6 address", "write '[2001:db8::1]:443' or '2001:db8::1'"),
    (":443", "has no host", "write a host name or an IP address"),
    (f"{'a.' * 127}ab", "is longer than 253 characters", "write a resolvable host name"),
    ("-a.test", "has the label '-a'", LABELS_ARE),
    ("127.1", "is no dotted decimal IPv4 address", "write four numbers from 0 to 255"),
    ("\uff41.test", "has a character that stands for an ASCII one", "write it in ASCII"),
    ("\u2260.test", "is no valid internationalized name", "write its xn-- form"),
]


@pytest.mark.parametrize(("entry", "fact", "remedy"), MESSAGES)
def test_the_error_says_what_is_wrong_and_what_to_write(entry: str, fact: str, remedy: str) -> None:
    with pytest.raises(InvalidHostEntry) as raised:
        HostEntry.parse(entry)
    assert str(raised.value) == f"{entry!r} is no host[:port] entry: it {fact}; {remedy}"


@given(
    st.text(string.printable, max_size=12), st.sampled_from("/*?#@\\ \t\n%"), st.text(max_size=5)
)
def test_no_text_with_a_forbidden_character_is_an_entry(before: str, bad: str, after: str) -> None:
    with pytest.raises(InvalidHostEntry):
        HostEntry.parse(before + bad + after)


NO_HOSTS = "Network.allow() without hosts opens nothing; pass network=Network.none()"
NO_TUPLE = "Network: hosts is of type str; pass a tuple, such as ('packages.example.org',)"
ALLOW_ONLY = "takes no hosts; pass Network.allow(hosts=...)"
NO_MODE = "does not exist; pass 'none', 'all' or 'allow'"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Network.allow(hosts=()), NO_HOSTS),
        (lambda: Network(mode="allow"), NO_HOSTS),
        (lambda: Network.allow(hosts="a.test"), NO_TUPLE),
        (lambda: Network(mode="allow", hosts="a.test"), NO_TUPLE),  # type: ignore[arg-type]  # that is the mistake
        (lambda: Network(mode="none", hosts=("a.test",)), f"Network.none() {ALLOW_ONLY}"),
        (lambda: Network(mode="all", hosts=("a.test",)), f"Network.all() {ALLOW_ONLY}"),
        (lambda: Network(mode="some"), f"Network: mode 'some' {NO_MODE}"),  # type: ignore[arg-type]  # that is the mistake
        (lambda: Network(mode=[]), f"Network: mode [] {NO_MODE}"),  # type: ignore[arg-type]  # that is the mistake
    ],
)
def test_hosts_go_with_allow_and_with_nothing_else(build: type[Network], message: str) -> None:
    with pytest.raises(RefusedConfiguration) as raised:
        build()
    assert str(raised.value) == message


def test_networks_are_values() -> None:
    assert Network() == Network.none()
    assert Network(mode="all") == Network.all()
    assert Network(mode="allow", hosts=("a.test",)) == Network.allow(hosts=["a.test"])
    assert hash(Network.all()) == hash(Network(mode="all"))
    assert not Network.none().reaches("a.test")
    assert Network.all().reaches("a.test:1")
    with pytest.raises(AttributeError):
        Network.all().mode = "none"  # type: ignore[misc]
