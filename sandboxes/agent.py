"""An agent: what it is called, where it works, and the secrets it declares."""

from __future__ import annotations

import uuid
from types import MappingProxyType
from typing import TYPE_CHECKING

from sandboxes.contract import (
    HeaderBinding,
    OpenRequest,
    RefusedConfiguration,
    Sandbox,
    SandboxStartError,
)
from sandboxes.no_sandbox import NoSandbox
from sandboxes.session import Session

if TYPE_CHECKING:
    from collections.abc import Mapping


class Agent:
    """Starts sessions in one environment.

    Attributes:
        model: Name of the language model.
        name: Name of the agent.
        environment: The sandbox of each session; `NoSandbox()` if None.
        secrets: Values that header bindings pick by `secret_name`.

    Raises:
        RefusedConfiguration: An option is unusable.
    """

    def __init__(
        self,
        model: str | None = None,
        name: str | None = None,
        environment: Sandbox | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        environment = NoSandbox() if environment is None else environment
        if not isinstance(environment, Sandbox):
            raise RefusedConfiguration(
                f"Agent: environment is of type {type(environment).__name__}; "
                "pass a sandbox, such as BashkitSandbox()"
            )
        self.model = model
        self.name = name
        self.environment = environment
        self.secrets: Mapping[str, str] = MappingProxyType(dict(secrets or {}))

    async def start_session(self, *, session_id: str | None = None) -> Session:
        """Create the sandbox of a new session, ready to use.

        Args:
            session_id: Names the session; a new UUID if None.

        Raises:
            SandboxStartError: A secret that a binding names is missing or no header
                value, or the sandbox could not be created.
            Exception: Whatever a hook's `on_create` raised.
        """
        request = OpenRequest(
            session_id=uuid.uuid4().hex if session_id is None else session_id,
            secrets=self._bound_secrets(),
        )
        return await Session.start(self.environment, request)

    def _bound_secrets(self) -> Mapping[str, str]:
        """Only what the environment's bindings name, so that nothing else can leak."""
        bound: dict[str, str] = {}
        for binding in self.environment.header_bindings:
            if not isinstance(binding, HeaderBinding):
                continue
            value = self.secrets.get(binding.secret_name)
            if value is None:
                raise SandboxStartError(
                    f"Agent: secret {binding.secret_name!r} is missing; pass it in secrets="
                )
            if not isinstance(value, str) or any(character in value for character in "\r\n\0"):
                raise SandboxStartError(
                    f"Agent: secret {binding.secret_name!r} is no single line of text; "
                    "leave CR, LF and NUL out"
                )
            bound[binding.secret_name] = value
        return MappingProxyType(bound)
