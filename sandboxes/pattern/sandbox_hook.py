"""Ready-made sandbox hooks."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from sandboxes.contract import RefusedConfiguration, SandboxHook, SandboxStartError, messages

if TYPE_CHECKING:
    from sandboxes.contract import SandboxCallbackContext

__all__ = ["GitIdentity", "SandboxHook"]

_NOT_FOUND = 127


class GitIdentity(SandboxHook):
    """Set the sandbox's global git `user.name` and `user.email` when it is created.

    Args:
        name: The committer's name.
        email: The committer's address.

    Raises:
        RefusedConfiguration: One of them is no text, empty, or holds a NUL.
    """

    def __init__(self, *, name: str, email: str) -> None:
        for option, value in (("name", name), ("email", email)):
            if not isinstance(value, str) or not value.strip() or "\0" in value:
                raise RefusedConfiguration(messages.wrong_git_identity(option))
        self.name = name
        self.email = email

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        """Write both to the sandbox's global configuration.

        Raises:
            SandboxStartError: git is missing in the sandbox, or refuses.
        """
        for key, value in (("user.name", self.name), ("user.email", self.email)):
            command = f"git config --global --replace-all -- {key} {shlex.quote(value)}"
            result = await ctx.sandbox.execute(command)
            if result.exit_code == _NOT_FOUND:
                raise SandboxStartError(
                    "GitIdentity: git is not in this sandbox "
                    f"({result.stderr.strip() or result.stdout.strip()}); "
                    "use an image with git, or leave the hook out"
                )
            if result.exit_code != 0:
                raise SandboxStartError(
                    f"GitIdentity: git config {key} ended with exit code {result.exit_code} "
                    f"({result.stderr.strip() or result.stdout.strip()}); mend the sandbox's git"
                )
