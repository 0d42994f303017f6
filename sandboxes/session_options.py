"""What an agent gives each of its sessions beside the sandbox."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sandboxes.contract import RefusedConfiguration, messages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When a session closes by itself.

    Attributes:
        max_turns: After this many turns; never if None.
        max_seconds: So many seconds after it became ready, whatever runs; never if None.

    Raises:
        RefusedConfiguration: A limit is not above 0, not finite, or no number.
    """

    max_turns: int | None = None
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        for name, kinds in (("max_turns", int), ("max_seconds", (int, float))):
            value = getattr(self, name)
            if value is None:
                continue
            right = isinstance(value, kinds) and not isinstance(value, bool)
            if not right or not 0 < value < math.inf:
                raise RefusedConfiguration(messages.wrong_session_limit(name))


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """How one session differs from a bare sandbox.

    Attributes:
        inputs: The session's inputs, by their `input_id`.
        tools: The agent's own tools, by name.
        disabled_tools: Patterns of the names of tools that it does not get.
        limits: When it closes by itself.
        deployed: Whether its hooks are rebuilt at each point, and replay.
        hardened: Whether a deployed session acts as its caller alone, and never as who
            deployed it.
    """

    inputs: Mapping[str, object] | None = None
    tools: Mapping[str, Callable[..., Any]] = field(default_factory=lambda: MappingProxyType({}))
    disabled_tools: tuple[str, ...] = ()
    limits: Limits = NO_LIMITS
    deployed: bool = False
    hardened: bool = True
