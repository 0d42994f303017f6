"""Who may ask for a session, and what goes wrong for whom."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from conformance.lab.errors import LabError

Kind = Literal["refuse", "slow", "cut", "rubbish", "gate_down", "short_life"]


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One header that a workspace admin stored.

    Args:
        host: where, as `host[:port]`.
        header: its name.
        value: the workspace's secret.
        path_prefix: under which path.
        prefix: text before the secret.
        suffix: text after it.
    """

    host: str
    header: str
    value: str = field(repr=False)
    path_prefix: str = "/"
    prefix: str = ""
    suffix: str = ""

    def to_wire(self) -> dict[str, Any]:
        """Give what JSON can carry."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One way to go wrong, for one identity.

    Args:
        kind: of bootstraps, "refuse" (answered with `status`), "slow" (the answer waits for
            `seconds`), "cut" (hung up on), "rubbish" (an answer that cannot be read) and
            "short_life" (what is handed out lives for `seconds`); "gate_down": the proxy hangs
            up on whoever comes with this identity's credential.
        status: for "refuse".
        seconds: for "slow" and "short_life".
        times: how often it happens; for ever by default.
    """

    kind: Kind
    status: int = 503
    seconds: float = 0.0
    times: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises:
            LabError: the kind is unknown.
        """
        if self.kind not in get_args(Kind):
            raise LabError(f"the sandbox proxy knows no fault {self.kind!r}")

    def to_wire(self) -> dict[str, Any]:
        """Give what JSON can carry."""
        return asdict(self)


@dataclass
class Identity:
    """A user of Mistral's API.

    Args:
        name: the user's.
        credential: the API key.
        repositories: what the user's GitHub connector reaches; None for all.
        rules: those of the user's workspace.
        github_token: what the user's connector has.
        faults: what goes wrong.
    """

    name: str
    credential: str = field(default_factory=lambda: f"key-{secrets.token_urlsafe(24)}", repr=False)
    repositories: tuple[str, ...] | None = ()
    rules: tuple[Rule, ...] = ()
    github_token: str = field(default="", repr=False)
    faults: list[Fault] = field(default_factory=list)

    def goes_wrong(self, kind: Kind) -> Fault | None:
        """Give a fault of a kind if it happens now, and count it."""
        for place, fault in enumerate(self.faults):
            if fault.kind == kind and fault.times != 0:
                if fault.times is not None:
                    self.faults[place] = replace(fault, times=fault.times - 1)
                return fault
        return None

    def unreached(self, wanted: tuple[str, ...] | Literal["all"] | None) -> list[str]:
        """Give the repositories that the connector does not reach."""
        if self.repositories is None or wanted is None or wanted == "all":
            return []
        reached = {repository.lower() for repository in self.repositories}
        return [one for one in wanted if one.lower() not in reached]


class Identities:
    """All that there are; each has a credential and a name of its own."""

    def __init__(self) -> None:
        self._by_name: dict[str, Identity] = {}

    def add(self, identity: Identity) -> None:
        """Take one in, or put it in the place of its namesake."""
        self._by_name[identity.name] = identity

    def workspaces(self) -> list[dict[str, Any]]:
        """Give a row for each: whose it is, and the rules that are stored for it."""
        return [
            {"credential": one.credential, "rules": [rule.to_wire() for rule in one.rules]}
            for one in self._by_name.values()
        ]

    def named(self, name: str) -> Identity:
        """Give one.

        Raises:
            LabError: there is none of that name.
        """
        if name not in self._by_name:
            raise LabError(f"the sandbox proxy knows no identity {name!r}")
        return self._by_name[name]

    def bearing(self, authorization: str) -> Identity | None:
        """Give whose credential an Authorization header bears."""
        scheme, _, credential = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        for identity in self._by_name.values():
            if secrets.compare_digest(identity.credential.encode(), credential.strip().encode()):
                return identity
        return None
