"""Header bindings with their secrets: where a header goes, and where it must not come from."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sandboxes.contract import (
    HeaderBinding,
    HostEntry,
    RefusedConfiguration,
    SandboxStartError,
    messages,
)
from sandboxes.egress.denied import Denied
from sandboxes.egress.paths import is_plain, is_under, readings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sandboxes.contract import AnyBinding, Network

HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""Headers that are of one connection, and end there."""

FRAMING = frozenset({b"host", b"content-length", b"transfer-encoding"})
"""Headers that say where a request goes and ends."""

# These steer what the proxy itself asks of an origin.
_RESERVED = HOP_BY_HOP | FRAMING | {b"expect", b"accept-encoding", b"range", b"if-range"}
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?")


def folded(name: bytes) -> bytes:
    """A header's name as a server may see it that takes `_` for `-`."""
    return name.lower().replace(b"_", b"-")


@dataclass(frozen=True, slots=True)
class Rule:
    """One header for one part of one host.

    Attributes:
        host: Where.
        header: The header's name, as it is written.
        path_prefix: Under which path.
        value: The whole value, secret included.
        secret: The secret alone.
    """

    host: HostEntry
    header: bytes
    path_prefix: bytes
    value: bytes = field(repr=False)
    secret: bytes = field(repr=False)

    @property
    def place(self) -> tuple[HostEntry, bytes, bytes]:
        """What no other rule may claim."""
        return self.host, folded(self.header), self.path_prefix.rstrip(b"/")


def rules_of(
    network: Network, bindings: Iterable[AnyBinding], secrets: Mapping[str, str]
) -> tuple[Rule, ...]:
    """Join header bindings with the secrets that they name.

    Raises:
        RefusedConfiguration: A binding is of another type, out of the network's reach,
            claims another's place, or could not be applied without doubt.
        SandboxStartError: A secret is missing or unusable; the message names it.
    """
    rules: dict[tuple[HostEntry, bytes, bytes], Rule] = {}
    for binding in bindings:
        if not isinstance(binding, HeaderBinding):
            raise RefusedConfiguration(messages.binding_without_proxy(type(binding).__name__))
        if not network.reaches(binding.host):
            raise RefusedConfiguration(
                messages.unreachable_binding(
                    "EgressProxy", "HeaderBinding", [binding.host], network.mode
                )
            )
        rule = _rule(binding, secrets)
        if rule.place in rules:
            raise RefusedConfiguration(
                messages.bindings_in_conflict(binding.host, binding.header, binding.path_prefix)
            )
        rules[rule.place] = rule
    return tuple(rules.values())


def _rule(binding: HeaderBinding, secrets: Mapping[str, str]) -> Rule:
    if not is_plain(binding.path_prefix):
        raise RefusedConfiguration(messages.ambiguous_path_prefix())
    header = binding.header.encode("ascii")
    if folded(header) in _RESERVED:
        raise RefusedConfiguration(messages.header_of_the_connection(binding.header))
    name = binding.secret_name
    if name not in secrets:
        raise SandboxStartError(
            f"EgressProxy: the secret {name!r} of {binding.host} is missing; "
            "declare it in Agent(secrets=...)"
        )
    secret = secrets[name]
    value = f"{binding.prefix}{secret}{binding.suffix}"
    if not isinstance(secret, str) or not secret or not _VALUE.fullmatch(value):
        raise SandboxStartError(
            f"EgressProxy: the secret {name!r} of {binding.host} is no header value; "
            "pass printable ASCII without white space around it"
        )
    return Rule(
        HostEntry.parse(binding.host),
        header,
        binding.path_prefix.encode("ascii"),
        value.encode("ascii"),
        secret.encode("ascii"),
    )


class HostRules:
    """The rules of one host.

    Args:
        rules: All of that host.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        # The longest prefix first: it wins.
        self._rules = sorted(rules, key=lambda rule: -len(rule.place[2]))
        self.bound = frozenset(folded(rule.header) for rule in self._rules)
        self.secrets = frozenset(rule.secret for rule in self._rules)

    def headers_for(self, path: bytes) -> list[tuple[bytes, bytes]]:
        """Give the headers that join a request.

        Raises:
            Denied: Servers may disagree on whether the path lies under a prefix.
        """
        possible = readings(path)
        chosen = {self._choose(reading) for reading in possible or ()}
        if len(chosen) != 1:
            raise Denied(
                400, "the path can be read in several ways; send it without encodings and dots"
            )
        return [(rule.header, rule.value) for rule in chosen.pop()]

    def _choose(self, path: bytes) -> tuple[Rule, ...]:
        best: dict[bytes, Rule] = {}
        for rule in self._rules:
            if is_under(path, rule.path_prefix):
                best.setdefault(folded(rule.header), rule)
        return tuple(best.values())


NO_RULES = HostRules(())
"""Of a host that has none."""


def by_host(rules: Iterable[Rule]) -> dict[HostEntry, HostRules]:
    """Sort rules by the host that they are of."""
    sorted_rules: dict[HostEntry, list[Rule]] = {}
    for rule in rules:
        sorted_rules.setdefault(rule.host, []).append(rule)
    return {host: HostRules(rules) for host, rules in sorted_rules.items()}
