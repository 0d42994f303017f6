"""An agent without a sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sandboxes.contract import (
    AccessLevel,
    NetworkMode,
    OpenRequest,
    RunningSandbox,
    Sandbox,
    SandboxError,
    SandboxHook,
    messages,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager


class NoSandbox(Sandbox):
    """Run without a sandbox: no commands, no files, no sandbox tools.

    Args:
        hooks: Accepted so that an agent can switch sandboxes; they never run.
    """

    supported_access: ClassVar[AccessLevel] = "none"
    supported_network: ClassVar[frozenset[NetworkMode]] = frozenset({"none"})
    has_processes = False
    opens = False

    def __init__(self, *, hooks: Sequence[SandboxHook] = ()) -> None:
        super().__init__(hooks=hooks)

    def open(self, request: OpenRequest) -> AbstractAsyncContextManager[RunningSandbox]:
        """Refuse: there is nothing to open.

        Raises:
            SandboxError: Always.
        """
        raise SandboxError(messages.opens_nothing(type(self).__name__))
