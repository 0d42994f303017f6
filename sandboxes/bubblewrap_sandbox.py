"""Commands in Linux namespaces of their own, made by bwrap: no root, no daemon, no image."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, ClassVar

from sandboxes.bubblewrap_running import BubblewrapRunning
from sandboxes.bubblewrap_server import SpaceServer
from sandboxes.bubblewrap_space import ENVIRONMENT, PATH, Space
from sandboxes.contract import (
    AccessLevel,
    Network,
    NetworkMode,
    OpenRequest,
    RefusedConfiguration,
    RunningSandbox,
    SandboxHook,
    SandboxStartError,
    messages,
)
from sandboxes.custom_sandbox import CustomSandbox
from sandboxes.limits import check_limit
from sandboxes.threads import in_thread, made_or_undone, to_the_end
from sandboxes.timeouts import Commands
from sandboxes.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

DEFAULT_TIMEOUT_SECONDS = 600.0


class BubblewrapSandbox(CustomSandbox):
    """Runs commands of this machine's programs, cut off from its files, processes and network.

    Each session has namespaces of its own, as root and as an ordinary user: `/usr` read-only,
    a workspace at `/workspace`, a home and a `/tmp` that go when it closes, processes that
    see none of the host's, and a loopback device. It is what its own certificate says, no
    virtual machine: the kernel is the host's.

    Each command is a bash of its own. What it starts in the background goes on until the
    session closes. At a time limit and at a cancellation all that came of the command gets
    SIGTERM, and SIGKILL 5 seconds later.

    Args:
        default_exec_timeout_seconds: The limit of a command that brings none, in seconds;
            600 if None.
        network: `Network.none()` if None.
        hooks: Run in this order when the sandbox is ready, in reverse when it closes.
        access: `"full"` if None.

    Raises:
        RefusedConfiguration: An option is unusable.
    """

    supported_access: ClassVar[AccessLevel] = "full"
    supported_network: ClassVar[frozenset[NetworkMode]] = frozenset({"none"})
    has_processes = True
    isolated = True
    commands_type: ClassVar[type[Commands]] = Commands

    def __init__(
        self,
        *,
        default_exec_timeout_seconds: int | None = None,
        network: Network | None = None,
        hooks: Sequence[SandboxHook] = (),
        access: AccessLevel | None = None,
    ) -> None:
        super().__init__(network=network, hooks=hooks, access=access)
        self.default_exec_timeout_seconds = self._accept_limit(default_exec_timeout_seconds)
        # The inside has the programs of this machine.
        self.supports_background_processes = shutil.which("python3", path=PATH) is not None

    def _accept_limit(self, seconds: float | None) -> float:
        try:
            return check_limit(seconds, DEFAULT_TIMEOUT_SECONDS)
        except ValueError as error:
            fact = str(error).replace("timeout_seconds", "default_exec_timeout_seconds", 1)
            raise RefusedConfiguration(messages.of_a_part(type(self).__name__, fact)) from error

    @asynccontextmanager
    async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
        """Make the namespaces with a folder of their own, and end them on every way out.

        Raises:
            SandboxStartError: bwrap is missing, may make no namespaces, or `ca_bundle`
                cannot be read.
        """
        bwrap = self._find_bwrap()
        further = self._certificates(request.ca_bundle)
        workspace = await made_or_undone(_new_folder, Workspace.release)
        running = None
        try:
            space = Space(workspace.path, port=0)
            await in_thread(space.prepare)
            space.trust(*further)
            server = SpaceServer(type(self).__name__, bwrap, space)
            running = BubblewrapRunning(
                server,
                self.commands_type(server=server.same),
                ENVIRONMENT,
                workspace.path,
                self.default_exec_timeout_seconds,
            )
            await server.ready()
            yield running
        finally:
            await to_the_end(asyncio.ensure_future(_close(running, workspace)))

    def _find_bwrap(self) -> str:
        found = shutil.which("bwrap")
        if found is None:
            raise SandboxStartError(
                f"{type(self).__name__}: there is no bwrap on PATH; install bubblewrap "
                "(apt-get install bubblewrap), which only Linux has"
            )
        return os.path.abspath(found)

    def _certificates(self, ca_bundle: Path | None) -> Sequence[bytes]:
        try:
            return () if ca_bundle is None else (ca_bundle.read_bytes(),)
        except OSError as error:
            raise SandboxStartError(
                f"{type(self).__name__}: ca_bundle {ca_bundle} cannot be read "
                f"({error.strerror}); pass a PEM file, or leave it out"
            ) from error


def _new_folder() -> Workspace:
    try:
        path = tempfile.mkdtemp(prefix="sandbox-bubblewrap-")
    except OSError as error:
        raise SandboxStartError(
            f"no folder can be made in {tempfile.gettempdir()} ({error.strerror}); "
            "set TMPDIR to one that may be written to"
        ) from error
    return Workspace.given(path, delete=True)


async def _close(running: BubblewrapRunning | None, workspace: Workspace) -> None:
    try:
        if running is not None:
            await running.close()
    finally:
        await in_thread(workspace.release)
