"""Addresses that show where a private range was cut: each bit below its prefix, one at a time."""

from __future__ import annotations

import ipaddress
from itertools import chain, zip_longest

from conformance import oracle

# A range is cut near its prefix; a half of what is left each time.
_HIGHEST_BITS = 8
_NOT_ELSEWHERE = ("127.0.0.0", "::1", "::")  # the host's own, which never leave it


def _cuts(first: str, last: str) -> list[str]:
    """The first address of a range, with each of its highest free bits set, and the last."""
    kind = ipaddress.IPv6Address if ":" in first else ipaddress.IPv4Address
    low, high = int(kind(first)), int(kind(last))
    free = (low ^ high).bit_length()
    bits = [1 << place for place in range(free - 1, max(free - _HIGHEST_BITS, 0) - 1, -1)]
    # The last of all IPv4 addresses is everybody's, to which nothing connects.
    numbers = [*(low | bit for bit in bits), high - 1]
    return [str(kind(number)) for number in numbers if low <= number <= high]


_RANGES = (*oracle.PRIVATE_IPV4, *oracle.PRIVATE_IPV6)
_EACH = [_cuts(*ends) for ends in _RANGES if ends[0] not in _NOT_ELSEWHERE]

# The wide scopes of multicast, which no single bit shows.
_WIDE = ("ff05::1", "ff08::1", "ff0e::1")

CUTS = tuple(one for one in (*chain.from_iterable(zip_longest(*_EACH)), *_WIDE) if one is not None)
"""One of each range in turn, so that the first of them are of every range."""
