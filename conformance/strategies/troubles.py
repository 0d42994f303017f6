"""What can go wrong with a cloud, for good or for a moment."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from conformance.lab.cloud.faults import Kind

_CREATED = ("POST /v1/apps", "POST /v1/services")
_WHERE = (*_CREATED, "GET /v1/services", "GET /v1/deployments", "GET /koyeb", "POST /koyeb")
_STATUSES = (400, 401, 403, 404, 408, 409, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class Trouble:
    """One thing that goes wrong; see `conformance.lab.cloud.faults.Fault`."""

    kind: Kind
    where: str = ""
    status: int = 503
    seconds: float = 0.0
    times: int | None = None
    every: int = 1

    def __str__(self) -> str:
        told = [self.kind.replace("_", " "), self.where]
        told += [str(self.status)] * (self.kind == "status")
        told += [f"{self.seconds:g} s"] * bool(self.seconds)
        told += [f"{self.times} times"] * bool(self.times)
        return " ".join(filter(None, [*told, f"each {self.every}" * (self.every > 1)]))

    def how(self) -> dict[str, Any]:
        """What to inject."""
        return asdict(self)


LASTING = (
    Trouble("status", "POST /v1/apps", status=401),
    Trouble("status", "POST /v1/services", status=403),
    Trouble("reset", "POST /v1/services"),
    Trouble("slow", "POST /v1/apps", seconds=3.0),
    Trouble("never_ready"),
    Trouble("broken"),
    Trouble("status", "GET /v1/deployments", status=503),
    Trouble("status", "GET /koyeb", status=502),
    Trouble("dies", "POST /koyeb"),
)
"""One of each kind that does not end by itself."""

PASSING = (
    *(Trouble("lose_reply", where, times=1) for where in (*_CREATED, "DELETE /v1/")),
    Trouble("status", "DELETE /v1/", times=2),
    Trouble("status", "GET", every=2),
    Trouble("reset", "POST /koyeb", times=1),
)
"""Some that do."""

troubles = st.one_of(
    st.builds(
        Trouble,
        kind=st.sampled_from(("status", "reset", "lose_reply", "dies")),
        where=st.sampled_from(_WHERE),
        status=st.sampled_from(_STATUSES),
        times=st.sampled_from((None, 1, 2)),
        every=st.sampled_from((1, 2)),
    ),
    # Nobody can delete where the cloud says for good that it does not.
    st.builds(
        Trouble,
        kind=st.sampled_from(("status", "reset", "lose_reply")),
        where=st.just("DELETE /v1/"),
        status=st.sampled_from((429, 500, 502, 503)),
        times=st.sampled_from((1, 2)),
    ),
)
"""Requests that fail, once, now and then or always."""
