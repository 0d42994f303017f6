"""The outbound network of a sandbox, and the `host[:port]` entries of an allow list."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NoReturn

import idna

from sandboxes.contract import messages
from sandboxes.contract.errors import InvalidHostEntry, RefusedConfiguration
from sandboxes.contract.values import entry_tuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

NetworkMode = Literal["none", "all", "allow"]

_HOSTS, _SUCH_AS = "Network: hosts", "('packages.example.org',)"
HTTPS_PORT = 443
MAX_NAME_LENGTH = 253

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_DIGITS = re.compile(r"[0-9]+")
# What a resolver's inet_aton() takes for an address though it is no dotted decimal.
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
_FORBIDDEN = {
    "/": ("has a path", "write only the host, such as 'packages.example.org'"),
    "\\": ("has a backslash", "write only the host, such as 'packages.example.org'"),
    "?": ("has a query", "write only the host, such as 'packages.example.org'"),
    "#": ("has a fragment", "write only the host, such as 'packages.example.org'"),
    "@": ("has user info", "write only the host, such as 'packages.example.org'"),
    "*": ("has a wildcard", "list each host by its full name"),
    "%": ("has a percent sign", "write the host without encoding and without a zone"),
}


def _invalid(entry: str, fact: str, remedy: str) -> NoReturn:
    raise InvalidHostEntry(messages.invalid_entry(entry, fact, remedy))


@dataclass(frozen=True, slots=True)
class HostEntry:
    """One host and port that an allow list opens, in normal form.

    Attributes:
        host: Lower-case A-labels without a trailing dot, a dotted IPv4 address, or a
            compressed IPv6 address without brackets.
        port: TCP port, 1 to 65535; 443 where the entry names none.
    """

    host: str
    port: int = HTTPS_PORT

    @classmethod
    def parse(cls, entry: str) -> HostEntry:
        """Read a `host[:port]` entry.

        Args:
            entry: A host name or IP address, with an optional `:port`; an IPv6 address
                with a port stands in brackets.

        Raises:
            InvalidHostEntry: It is anything else: a URL, a wildcard, an IPv4 address in
                other than dotted decimal form, a port outside 1 to 65535, ...
        """
        if not isinstance(entry, str):
            raise InvalidHostEntry(messages.entry_of_type(entry))
        _refuse_url_parts(entry)
        host, port = _split_port(entry)
        return cls(_normal_host(entry, host), port)

    @property
    def is_address(self) -> bool:
        """Whether the host is an IP address and not a name."""
        return ":" in self.host or _DIGITS.fullmatch(self.host.rpartition(".")[2]) is not None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == HTTPS_PORT else f"{host}:{self.port}"


def _refuse_url_parts(entry: str) -> None:
    if not entry:
        _invalid(entry, "is empty", "write a host name or an IP address")
    if "://" in entry:
        _invalid(entry, "has a scheme", "write only the host, such as 'packages.example.org'")
    for character in entry:
        if character.isspace() or not character.isprintable():
            _invalid(entry, "has white space or a control character", "write the bare host")
        if character in _FORBIDDEN:
            _invalid(entry, *_FORBIDDEN[character])


def _split_port(entry: str) -> tuple[str, int]:
    if entry.startswith("["):
        host, bracket, rest = entry[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")) or ":" not in host:
            _invalid(entry, "has misplaced brackets", "write '[2001:db8::1]:443'")
        return host, _port(entry, rest[1:]) if rest else HTTPS_PORT
    if entry.count(":") > 1:
        return entry, HTTPS_PORT
    host, colon, port = entry.partition(":")
    return host, _port(entry, port) if colon else HTTPS_PORT


def _port(entry: str, text: str) -> int:
    if not (text.isascii() and _DIGITS.fullmatch(text)) or len(text) > 5:
        _invalid(entry, "has a port that is no number", "write a port from 1 to 65535")
    port = int(text)
    if not 1 <= port <= 65535:
        _invalid(entry, "has a port out of range", "write a port from 1 to 65535")
    return port


def _normal_host(entry: str, host: str) -> str:
    if ":" in host:
        try:
            return str(ipaddress.IPv6Address(host))
        except ValueError:
            _invalid(entry, "is no IPv6 address", "write '[2001:db8::1]:443' or '2001:db8::1'")
    name = host[:-1] if host.endswith(".") else host
    if not name:
        _invalid(entry, "has no host", "write a host name or an IP address")
    name = name.lower() if name.isascii() else _a_labels(entry, name)
    if len(name) > MAX_NAME_LENGTH:
        _invalid(entry, "is longer than 253 characters", "write a resolvable host name")
    labels = name.split(".")
    if _NUMERIC_LABEL.fullmatch(labels[-1]):
        return _dotted_decimal(entry, name)
    for label in labels:
        if not _LABEL.fullmatch(label):
            _invalid(entry, f"has the label {label!r}", "use 1 to 63 letters, digits and hyphens")
    return name


def _dotted_decimal(entry: str, name: str) -> str:
    try:
        return str(ipaddress.IPv4Address(name))
    except ValueError:
        _invalid(entry, "is no dotted decimal IPv4 address", "write four numbers from 0 to 255")


def _a_labels(entry: str, name: str) -> str:
    try:
        # Full-width digits, the Kelvin sign, zero-width joiners: what is dialled in the
        # end would be another name than the one that was read.
        if any(idna.uts46_remap(char).isascii() for char in name if not char.isascii()):
            _invalid(entry, "has a character that stands for an ASCII one", "write it in ASCII")
        return idna.encode(name, uts46=True, std3_rules=True).decode("ascii").lower()
    except idna.IDNAError:
        _invalid(entry, "is no valid internationalized name", "write its xn-- form")


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Outbound network of a sandbox. Build it with `none()`, `all()` or `allow(hosts=...)`.

    Attributes:
        mode: `"none"` opens nothing, `"all"` everything, `"allow"` only HTTPS
            connections to the entries of `hosts`.
        hosts: The `host[:port]` entries, as they were written.

    Raises:
        RefusedConfiguration: The mode is unknown, or hosts do not go with it.
        InvalidHostEntry: An entry is not `host[:port]`.
    """

    mode: NetworkMode = "none"
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.mode, str) or self.mode not in messages.NETWORK_SPELLINGS:
            raise RefusedConfiguration(messages.unknown_network_mode(self.mode))
        hosts = entry_tuple(_HOSTS, self.hosts, _SUCH_AS)
        object.__setattr__(self, "hosts", hosts)
        if self.mode == "allow" and not self.hosts:
            raise RefusedConfiguration(messages.no_hosts())
        if self.mode != "allow" and self.hosts:
            raise RefusedConfiguration(messages.hosts_out_of_place(self.mode))
        for entry in self.hosts:
            HostEntry.parse(entry)

    @classmethod
    def none(cls) -> Self:
        """No outbound connection."""
        return cls(mode="none")

    @classmethod
    def all(cls) -> Self:
        """Every outbound connection."""
        return cls(mode="all")

    @classmethod
    def allow(cls, *, hosts: Sequence[str]) -> Self:
        """Only HTTPS connections to the listed `host[:port]` entries."""
        return cls(mode="allow", hosts=entry_tuple(_HOSTS, hosts, _SUCH_AS))

    @property
    def entries(self) -> tuple[HostEntry, ...]:
        """The entries of `hosts` in normal form, in the order written."""
        return tuple(HostEntry.parse(entry) for entry in self.hosts)

    def reaches(self, host: str) -> bool:
        """Whether this network opens HTTPS connections to a `host[:port]` entry.

        Raises:
            InvalidHostEntry: `host` is not `host[:port]`, whatever the mode.
        """
        asked = HostEntry.parse(host)
        return self.mode == "all" or (self.mode == "allow" and asked in self.entries)
