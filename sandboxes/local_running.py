"""Commands and files of one open local sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandboxes.process_running import ProcessRunning

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sandboxes.timeouts import Commands
    from sandboxes.workspace import Workspace


class LocalRunning(ProcessRunning):
    """Commands run on the host, in a workspace that a command may have deleted."""

    def __init__(
        self, shell: str, workspace: Workspace, default_timeout_seconds: float, commands: Commands
    ) -> None:
        super().__init__(
            # After -- a text that begins with a dash is a command too.
            [shell, "-c", "--"],
            workspace.path,
            default_timeout_seconds=default_timeout_seconds,
            commands=commands,
            called="the local sandbox",
        )
        self._workspace = workspace

    def _folder(self) -> Path:
        return self._workspace.ready()

    async def inventory(self) -> Sequence[str]:
        """Name the workspace, and what supervises each command that still runs."""
        running = [f"process {pid}" for pid in self._commands.background()]
        folder = [f"folder {self._workspace.path}"] if self._workspace.path.exists() else []
        return (*folder, *running)
