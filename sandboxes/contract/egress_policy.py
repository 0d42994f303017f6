"""The addresses that a sandbox which filters by IP address opens."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sandboxes.contract import messages
from sandboxes.contract.errors import RefusedConfiguration
from sandboxes.contract.values import entry_tuple

if TYPE_CHECKING:
    from collections.abc import Sequence

EgressMode = Literal["block_all", "allow_all", "custom"]
_Range = ipaddress.IPv4Network | ipaddress.IPv6Network
_MAPPED_IPV4 = ipaddress.IPv6Network("::ffff:0:0/96")


def _parse(entry: str) -> _Range:
    if not isinstance(entry, str):
        raise RefusedConfiguration(messages.range_of_type(entry))
    try:
        interface = ipaddress.ip_interface(entry)
    except ValueError:
        raise RefusedConfiguration(messages.no_range(entry)) from None
    if "%" in entry or entry != entry.strip():
        raise RefusedConfiguration(messages.no_bare_range(entry))
    network = interface.network
    if network.prefixlen == 0:
        raise RefusedConfiguration(messages.every_address(entry))
    if interface.ip != network.network_address:
        raise RefusedConfiguration(messages.host_bits(entry, str(network)))
    if network.is_unspecified:
        raise RefusedConfiguration(messages.unspecified_address(entry))
    return network


def _covers_a_family(ranges: Sequence[_Range]) -> bool:
    ipv4 = [range_ for range_ in ranges if isinstance(range_, ipaddress.IPv4Network)]
    ipv6 = [range_ for range_ in ranges if isinstance(range_, ipaddress.IPv6Network)]
    for range_ in ipv6:
        if range_.supernet_of(_MAPPED_IPV4):
            return True
        if range_.subnet_of(_MAPPED_IPV4):
            low = int(range_.network_address) & 0xFFFFFFFF
            ipv4.append(ipaddress.IPv4Network((low, range_.prefixlen - 96)))
    families = (ipaddress.collapse_addresses(ipv4), ipaddress.collapse_addresses(ipv6))
    return any(range_.prefixlen == 0 for family in families for range_ in family)


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressPolicy:
    """The IP addresses that a `MistralSandbox` opens connections to, on top of its network.

    Attributes:
        mode: `"block_all"` and `"allow_all"` describe a sandbox's own policy;
            `"custom"` is what a user passes as `egress=`.
        allow_cidrs: IPv4 or IPv6 addresses and CIDR ranges, as written; only with
            `"custom"`.

    Raises:
        RefusedConfiguration: An entry is no address or range, has host bits set, or the
            entries together cover a whole address family.
    """

    mode: EgressMode = "block_all"
    allow_cidrs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.mode not in ("block_all", "allow_all", "custom"):
            raise RefusedConfiguration(messages.unknown_egress_mode(self.mode))
        entries = entry_tuple("EgressPolicy: allow_cidrs", self.allow_cidrs, "('203.0.113.10',)")
        object.__setattr__(self, "allow_cidrs", entries)
        if self.mode != "custom":
            if self.allow_cidrs:
                raise RefusedConfiguration(messages.ranges_out_of_place(self.mode))
            return
        if not self.allow_cidrs:
            raise RefusedConfiguration(messages.no_ranges())
        if _covers_a_family([_parse(entry) for entry in self.allow_cidrs]):
            raise RefusedConfiguration(messages.every_address_together())

    @classmethod
    def block_all(cls) -> EgressPolicy:
        """Block every outbound connection: the policy under `Network.none()`."""
        return cls(mode="block_all")

    @classmethod
    def allow_all(cls) -> EgressPolicy:
        """Allow every outbound connection: the policy under `Network.all()`."""
        return cls(mode="allow_all")

    @classmethod
    def custom(cls, *, allow_cidrs: Sequence[str]) -> EgressPolicy:
        """Open the listed addresses on top of `Network.none()`."""
        entries = entry_tuple("EgressPolicy: allow_cidrs", allow_cidrs, "('203.0.113.10',)")
        return cls(mode="custom", allow_cidrs=entries)

    @property
    def ranges(self) -> tuple[_Range, ...]:
        """The entries as networks, in the order written."""
        return tuple(_parse(entry) for entry in self.allow_cidrs)
