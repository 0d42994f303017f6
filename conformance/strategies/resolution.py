"""How a name may resolve that is to lead a client to a private address after all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Role = Literal["public", "private", "public IPv6", "private IPv6"]
Answer = tuple[Role, ...]

PRIVATE: Mapping[Role, str] = {"private": "10.0.0.1", "private IPv6": "fd00::1"}
LOOPBACK: Mapping[Role, str] = {"private": "127.0.0.1", "private IPv6": "::1"}


@dataclass(frozen=True, slots=True)
class Trick:
    """Answers to each question for a name in turn; the last one repeats.

    Attributes:
        answers: What each answer holds; a question for IPv4 gets the IPv4 part of it.
        loopback: Whether its private addresses are those of the host's own loopback.
        client: Which of the clients inside is tried.
    """

    answers: tuple[Answer, ...]
    loopback: bool = False
    client: int = 0

    @property
    def private(self) -> Mapping[Role, str]:
        """Its private addresses."""
        return LOOPBACK if self.loopback else PRIVATE

    def schedule(self, public: Sequence[str]) -> list[list[str]]:
        """Give the addresses of each answer.

        Args:
            public: An IPv4 and an IPv6 address that everybody may go to.
        """
        places = {**self.private, "public": public[0], "public IPv6": public[1]}
        return [[places[role] for role in answer] for answer in self.answers]


_REBINDS: tuple[Answer, ...] = (("public",), ("private",))

TRICKS = (
    Trick(_REBINDS),
    Trick((("public",), *_REBINDS)),
    Trick((("public",), ("public",), *_REBINDS)),
    Trick((("public", "private"),)),
    Trick((("private", "public"),)),
    Trick((("public", "private IPv6"),)),
    Trick((("private", "public IPv6"),)),
    Trick(_REBINDS, loopback=True),
    Trick((("public", "private"),), loopback=True),
    *(Trick(_REBINDS, client=number) for number in (1, 2, 3)),
)
"""Rebinding after some questions, mixed answers in either order, and each client."""

_roles: st.SearchStrategy[Role] = st.sampled_from(
    ("public", "private", "public IPv6", "private IPv6")
)
_answers = st.lists(_roles, min_size=1, max_size=3, unique=True).map(tuple)

tricks = st.builds(
    Trick,
    st.lists(_answers, min_size=1, max_size=5)
    .map(tuple)
    .filter(lambda answers: any("private" in role for answer in answers for role in answer)),
    st.booleans(),
    st.integers(0, 3),
)
