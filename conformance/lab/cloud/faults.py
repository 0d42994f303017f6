"""What the cloud is told to do wrong."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from conformance.lab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Iterable

RequestKind = Literal["slow", "status", "reset", "lose_reply", "dies"]
DeploymentKind = Literal["never_ready", "broken", "late_policy", "no_policy"]
Kind = Literal[RequestKind, DeploymentKind]
OF_REQUESTS = frozenset(get_args(RequestKind))


@dataclass
class Fault:
    """One way to go wrong.

    Args:
        kind: of requests, "slow" (the answer waits for `seconds`), "status" (answered with
            `status`, and nothing done), "reset" (hung up on, and nothing done), "lose_reply"
            (done, and then hung up on), "dies" (the instance that is called ends); of
            deployments, "never_ready", "broken" (it ends as ERROR), "late_policy" (its egress
            policy holds `seconds` after it is ready), "no_policy" (its policy never holds).
        where: for faults of requests, a pattern that is sought in "METHOD PATH".
        status: for "status".
        seconds: for "slow" and "late_policy".
        times: how often it happens; for ever by default.
        every: it happens at each n-th that fits: 2 is a cloud that flaps.
    """

    kind: Kind
    where: str = ""
    status: int = 503
    seconds: float = 0.0
    times: int | None = None
    every: int = 1
    met: int = 0
    done: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises:
            LabError: the kind is unknown, or the pattern is none.
        """
        if self.kind not in (*OF_REQUESTS, *get_args(DeploymentKind)):
            raise LabError(f"the cloud knows no fault {self.kind!r}")
        try:
            re.compile(self.where)
        except re.error as cause:
            raise LabError(f"the fault's {self.where!r} is no pattern: {cause}") from cause

    def to_wire(self) -> dict[str, Any]:
        """Give what JSON can carry."""
        return asdict(self)

    def happens(self, text: str) -> bool:
        """Count one more to which it may happen, and tell whether it does."""
        if not re.search(self.where, text) or self.done == self.times:
            return False
        self.met += 1
        if (self.met - 1) % self.every:
            return False
        self.done += 1
        return True


class Faults:
    """All that is wrong at present."""

    def __init__(self) -> None:
        self._all: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Have one more happen."""
        self._all.append(fault)

    def clear(self) -> None:
        """Have no more happen."""
        self._all.clear()

    def of_request(self, method: str, path: str) -> list[Fault]:
        """Give those that happen to a request."""
        return self._those(OF_REQUESTS, f"{method} {path}")

    def of_deployment(self, *kinds: DeploymentKind) -> list[Fault]:
        """Give those of these kinds that happen to a deployment."""
        return self._those(kinds, "")

    def _those(self, kinds: Iterable[str], text: str) -> list[Fault]:
        return [fault for fault in self._all if fault.kind in kinds and fault.happens(text)]
