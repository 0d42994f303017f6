"""Entries of an egress policy, with the addresses at both sides of their ends."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from hypothesis import strategies as st

from conformance.oracle import block

# Public, and nobody's in the laboratory.
_IPV4, _IPV6 = "11.92.0.0", "2a11:92::"
_OTHERS = ("11.95.1.1", "2a11:95::/64")


@dataclass(frozen=True, slots=True)
class Opening:
    """An entry, with others beside it or alone."""

    entry: str
    others: tuple[str, ...] = ()

    @property
    def inner(self) -> tuple[str, ...]:
        """The first and the last address that it opens."""
        return self._at(0, 0)

    @property
    def outer(self) -> tuple[str, ...]:
        """The nearest ones that it does not open."""
        return self._at(-1, 1)

    def _at(self, before: int, behind: int) -> tuple[str, ...]:
        found = block(self.entry)
        kind = ipaddress.IPv4Address if found.bits == 32 else ipaddress.IPv6Address
        ends = (found.first + before, found.last + behind)
        return tuple(dict.fromkeys(str(kind(end)) for end in ends))


def _range(first: str, place: int, length: int) -> str:
    bits = 128 if ":" in first else 32
    number = int(ipaddress.ip_address(first)) + (place << bits - length)
    return str(ipaddress.ip_network((number, length)))


OPENINGS = (
    Opening("11.92.7.8"),
    Opening("11.93.8.0/22"),
    Opening("2a11:92::8/128", _OTHERS),
    Opening("2a11:93:0:8::/61", _OTHERS),
)
"""An address and a range of each family."""

openings = st.builds(
    Opening,
    st.one_of(
        st.builds(_range, st.just(_IPV4), st.integers(1, 60), st.integers(22, 32)),
        st.builds(_range, st.just(_IPV6), st.integers(1, 60), st.integers(40, 128)),
    ),
    st.sampled_from([(), _OTHERS]),
)
