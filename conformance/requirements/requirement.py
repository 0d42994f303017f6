"""One requirement of the contract, and how binding it is for a given sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Level = Literal["M", "R", "S"]


class Declares(Protocol):
    """What a level depends on: the sandbox's class and the facts it declares."""

    @property
    def class_name(self) -> str:
        """The name of the sandbox's class, as the documents spell it."""

    def fact(self, name: str) -> bool:
        """Whether the sandbox declares a fact, such as `isolated`."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One clause of the contract. Its id is never reused and never renumbered.

    Attributes:
        id: Area and number, as `EGR-11`.
        level: `M` where the public documents say it, `R` for a rule of this suite, `S`
            for advice that gates nothing.
        sources: Where it is written; `SOURCES` spells the codes out.
        text: The rule, in one sentence.
        documented_for: The only sandbox classes that the documents say it of; empty for
            all of them. For others it is a rule of this suite.
        advice_unless: A fact without which it is mere advice to those others.
    """

    id: str
    level: Level
    sources: tuple[str, ...]
    text: str
    documented_for: tuple[str, ...] = ()
    advice_unless: str = ""

    @property
    def area(self) -> str:
        """The part of the id before the hyphen."""
        return self.id.partition("-")[0]

    def level_for(self, declared: Declares) -> Level:
        """How binding the requirement is for the sandbox that declares this."""
        if not self.documented_for or declared.class_name in self.documented_for:
            return self.level
        if self.advice_unless and not declared.fact(self.advice_unless):
            return "S"
        return "R"

    def __str__(self) -> str:
        return self.id
