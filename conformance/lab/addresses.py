"""The laboratory's numbers: its two ends, its ports, and the pool that sites are given from."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Globally routable ranges: tools exist that refuse private, loopback or documentation
# addresses, or any of the host's own, and would look safe whatever they let through.
SUBJECT_DEVICE = "v0"
INTERNET_DEVICE = "v1"
SUBJECT_IPV4 = "11.77.0.1"
GATEWAY_IPV4 = "11.77.0.254"
SUBJECT_IPV6 = "2a11:77::1"
GATEWAY_IPV6 = "2a11:77::fe"

# Services that the lab has of its own: each has an address for its names.
SANDBOX_PROXY_ADDRESS = "11.77.0.251"
MISTRAL_API_ADDRESS = "11.77.0.250"
GITHUB_ADDRESS = "11.77.0.249"

# The cloud: the provider's address, a router of its own behind the subject's host, and one
# address of each family for each instance. Its mesh is what an organization's services see of
# each other.
CLOUD_ADDRESS = "11.77.0.252"
CLOUD_DEVICE = "cloud0"
CLOUD_IPV4 = "11.77.0.253"
CLOUD_IPV6 = "2a11:77::fd"
INSTANCES_IPV4 = "11.78.0.0/16"
INSTANCES_IPV6 = "2a11:79::/64"
MESH = ("11.79.0.0/16", "2a11:7a::/64")

HTTPS_PORTS = (443, 8443)
HTTP_PORTS = (80, 8080)
TCP_PORTS = (22, 25, 5432)
SILENT_PORT = 7
DNS_PORT = 53
UDP_PORTS = (5005, 123, 4433)
HONEST_PROXY_PORT = 3128
YES_PROXY_PORT = 3129
MARKER_PORT = 9
OTHER_TCP_PORT = 5432
OTHER_UDP_PORT = 5005

# Services of the subject's own host: one of each for every worker of a run.
HOST_WORKERS = 32
HOST_HTTPS_PORT = 18443
HOST_HTTP_PORT = 18080
HOST_OTHER_PORT = 19000


def fresh_ipv4() -> Iterator[str]:
    """Give each address of the IPv4 pool once: 11.96.0.0/11."""
    first = int(IPv4Address("11.96.0.0"))
    for offset in range(1, 1 << 21):
        address = IPv4Address(first + offset)
        if address.packed[3] not in (0, 255):  # some resolvers distrust what looks like a network
            yield str(address)


def fresh_ipv6() -> Iterator[str]:
    """Give each address of the IPv6 pool once: the first 2**32 of 2a11:78::/32."""
    first = int(IPv6Address("2a11:78::"))
    for offset in range(1, 1 << 32):
        yield str(IPv6Address(first + offset))


def plain(address: str) -> str:
    """Give the normal form of a literal: compressed, no zone, IPv4-mapped as IPv4."""
    parsed = ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return str(mapped or parsed)


def is_loopback(address: str) -> bool:
    """Whether packets to `address`, in normal form, stay on the host's `lo`."""
    return address == "::1" or address.startswith("127.")


def bracketed(address: str) -> str:
    """Give `address` as it stands in a URL."""
    return f"[{address}]" if ":" in address else address
