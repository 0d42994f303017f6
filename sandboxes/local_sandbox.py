"""Commands directly on the user's machine: for development, never in production."""

from __future__ import annotations

import asyncio
import os
import shutil
import warnings
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from sandboxes.contract import (
    AccessLevel,
    Network,
    NetworkMode,
    OpenRequest,
    RefusedConfiguration,
    RunningSandbox,
    Sandbox,
    SandboxHook,
    SandboxStartError,
    messages,
)
from sandboxes.limits import accepted_limit
from sandboxes.local_running import LocalRunning
from sandboxes.pattern.sandbox_hook import GitIdentity
from sandboxes.threads import in_thread, made_or_undone, to_the_end
from sandboxes.timeouts import Commands
from sandboxes.trust import check_trust
from sandboxes.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

ALLOW_VARIABLE = "ALLOW_DANGEROUS_LOCAL_HOST"
DEFAULT_TIMEOUT_SECONDS = 600.0
WORKSPACES = ".cache/mistral-vibe-harness-local-host"
"""Below the home folder: where sessions without a `workspace` get one."""

# From warn() past the constructor and the metaclass, to the line that builds the sandbox.
_STACK_LEVEL = 3


class DangerousLocalHostWarning(UserWarning):
    """A sandbox was built that has no isolation."""


class DangerousLocalSandbox(Sandbox):
    """Runs commands on this machine, as the user and in the environment of this process.

    There is no isolation at all: a command can read, change and delete whatever the user
    can, and reaches every network that the machine reaches. It is refused unless the
    environment variable `ALLOW_DANGEROUS_LOCAL_HOST` is `1`.

    Each command is a shell of its own. What it starts in the background goes on until the
    session closes; then, at a time limit and at a cancellation processes get SIGTERM, and
    SIGKILL 5 seconds later. A process that some other service of the machine starts for a
    command, such as a container, is not among these.

    Args:
        shell: `"bash"` if None, or `"sh"`.
        default_exec_timeout_seconds: The limit of a command that brings none, in seconds;
            600 if None.
        workspace: The folder where commands run; a relative one begins at this process's
            working folder, and a missing one is made. If None, a new private folder below
            `~/.cache/mistral-vibe-harness-local-host/`.
        delete_on_cleanup: Delete the workspace when the session closes. If None, one that
            was named is kept, and one that was not is deleted. A session does not start
            where the workspace to delete is relative, or contains the home or the working
            folder.
        hooks: Run in this order when the sandbox is ready, in reverse when it closes.
        access: `"full"` if None.

    Raises:
        RefusedConfiguration: It was not allowed, an option is unusable, or a hook would
            change the user's own settings.
    """

    supported_access: ClassVar[AccessLevel] = "full"
    supported_network: ClassVar[frozenset[NetworkMode]] = frozenset({"all"})
    supports_background_processes = True
    has_processes = True
    isolated = False
    commands_type: ClassVar[type[Commands]] = Commands

    def __init__(
        self,
        *,
        shell: Literal["bash", "sh"] | None = None,
        default_exec_timeout_seconds: int | None = None,
        workspace: str | None = None,
        delete_on_cleanup: bool | None = None,
        hooks: Sequence[SandboxHook] = (),
        access: AccessLevel | None = None,
    ) -> None:
        name = type(self).__name__
        if os.environ.get(ALLOW_VARIABLE) != "1":
            raise RefusedConfiguration(messages.local_host_not_allowed(name, ALLOW_VARIABLE))
        super().__init__(network=Network.all(), hooks=hooks, access=access)
        self._refuse_git_identity()
        if shell not in (None, "bash", "sh"):
            self._wrong("shell", shell, 'pass "bash" or "sh"')
        if not isinstance(delete_on_cleanup, bool | None):
            self._wrong("delete_on_cleanup", delete_on_cleanup, "pass True or False")
        self.shell = shell or "bash"
        self.workspace = self._accept_workspace(workspace)
        self.delete_on_cleanup = (
            workspace is None if delete_on_cleanup is None else delete_on_cleanup
        )
        self.default_exec_timeout_seconds = accepted_limit(
            type(self).__name__,
            "default_exec_timeout_seconds",
            default_exec_timeout_seconds,
            DEFAULT_TIMEOUT_SECONDS,
        )
        warnings.warn(messages.local_host(name), DangerousLocalHostWarning, stacklevel=_STACK_LEVEL)

    def _refuse_git_identity(self) -> None:
        for hook in self.hooks:
            if isinstance(hook, GitIdentity):
                reason = "it would overwrite your own ~/.gitconfig"
                remedy = "set your git up yourself, or use a sandbox with isolation"
                raise RefusedConfiguration(
                    messages.unsupported_hook(
                        type(self).__name__, type(hook).__name__, reason, remedy
                    )
                )

    def _accept_workspace(self, workspace: str | None) -> str | None:
        if workspace is None:
            return None
        remedy = "pass the path of a folder, such as './work'"
        if not isinstance(workspace, str):
            self._wrong("workspace", workspace, remedy)
        fact = ""
        if not workspace.strip() or "\0" in workspace:
            fact = "is empty or has a NUL"
        elif workspace.startswith("~"):
            fact = "begins with '~', which only a shell expands"
        if fact:
            raise RefusedConfiguration(
                messages.unusable_option(type(self).__name__, "workspace", fact, remedy)
            )
        return workspace

    @asynccontextmanager
    async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
        """Find or make the workspace, and run commands in it.

        Raises:
            SandboxStartError: The shell is missing, the workspace cannot be had or must
                not be deleted, or `ca_bundle` is not what this process trusts.
        """
        check_trust(type(self).__name__, request.ca_bundle)
        shell = self._find_shell()
        workspace = await made_or_undone(self._workspace, Workspace.release)
        running = None
        try:
            running = LocalRunning(
                shell, workspace, self.default_exec_timeout_seconds, self.commands_type()
            )
            yield running
        finally:
            await to_the_end(asyncio.ensure_future(self._close(running, workspace)))

    def _find_shell(self) -> str:
        found = shutil.which(self.shell)
        if found is None:
            raise SandboxStartError(
                f"{type(self).__name__}: there is no {self.shell} on PATH; "
                'install it, or pass shell="sh" or shell="bash", whichever there is'
            )
        return os.path.abspath(found)

    def _workspace(self) -> Workspace:
        if self.workspace is not None:
            return Workspace.given(self.workspace, delete=self.delete_on_cleanup)
        base = Path(os.path.expanduser("~"), WORKSPACES)
        return Workspace.new(base, delete=self.delete_on_cleanup)

    async def _close(self, running: LocalRunning | None, workspace: Workspace) -> None:
        try:
            if running is not None:
                await running.close()
        finally:
            await in_thread(workspace.release)
