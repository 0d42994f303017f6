"""Commands and files of one open Bubblewrap sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandboxes.bubblewrap_space import WORKSPACE
from sandboxes.process_running import ProcessRunning

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sandboxes.bubblewrap_server import SpaceServer
    from sandboxes.timeouts import Commands


class BubblewrapRunning(ProcessRunning):
    """Commands run inside, and somebody inside reads and writes files."""

    def __init__(
        self,
        server: SpaceServer,
        commands: Commands,
        environ: Mapping[str, str],
        folder: Path,
        default_timeout_seconds: float,
    ) -> None:
        super().__init__(
            # After -- a text that begins with a dash is a command too.
            ["/bin/bash", "-c", "--"],
            WORKSPACE,
            environ,
            default_timeout_seconds=default_timeout_seconds,
            commands=commands,
            called="the Bubblewrap sandbox",
        )
        self._server = server
        self._own = folder

    def _read(self, path: str) -> bytes:
        return self._server.read_file(path)

    def _write(self, path: str, data: bytes) -> None:
        self._server.write_file(path, data)

    async def inventory(self) -> Sequence[str]:
        """Name the session's folder, and the process that holds its namespaces."""
        folder = [f"folder {self._own}"] if self._own.exists() else []
        return (*folder, *([f"process {self._server.pid}"] if self._server.alive() else []))
