"""A sandbox inside the agent's own process, through the Bashkit bash interpreter."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from sandboxes.bashkit_running import BashkitRunning
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
from sandboxes.session_folder import SessionFolder, folder_name, unusable_id
from sandboxes.threads import in_thread, made_or_undone, to_the_end
from sandboxes.trust import check_trust

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence


class BashkitSandbox(Sandbox):
    """Runs commands in the agent's process, with no container and no Python.

    Commands see a workspace at `/workspace` and a `/tmp`, both folders on the host;
    everything else of their file system is virtual and new for each command, and so
    are variables and the working directory. HTTP clients give each request 30 seconds,
    unless the command asks for more (`curl -m 120`).

    The interpreter trusts the certificates that the environment variable
    `SSL_CERT_FILE` names, or else the system's.

    Args:
        instance_id: Names the session's folders together with the session's id; they
            are kept when the session closes, and found again by the next one. Without
            it they are named after the session alone and deleted.
        network: `Network.none()` if None.
        block_private_ips: Refuse private and loopback addresses whatever the network
            allows.
        hooks: Run in this order when the sandbox is ready, in reverse when it closes.
        access: `"full"` if None.

    Raises:
        MissingExtra: The package bashkit is not installed.
        RefusedConfiguration: An option is unusable.
    """

    supported_access: ClassVar[AccessLevel] = "full"
    supported_network: ClassVar[frozenset[NetworkMode]] = frozenset({"none", "all", "allow"})
    has_processes = False
    isolated = True
    optional_packages: ClassVar[Mapping[str, str]] = MappingProxyType({"bashkit": "bashkit"})
    running_type: ClassVar[type[BashkitRunning]] = BashkitRunning

    def __init__(
        self,
        *,
        instance_id: str | None = None,
        network: Network | None = None,
        block_private_ips: bool = True,
        hooks: Sequence[SandboxHook] = (),
        access: AccessLevel | None = None,
    ) -> None:
        super().__init__(network=network, hooks=hooks, access=access)
        fact = "" if instance_id is None else unusable_id(instance_id)
        if fact:
            remedy = "pass a short name, such as 'build-1'"
            raise RefusedConfiguration(
                messages.unusable_option(type(self).__name__, "instance_id", fact, remedy)
            )
        if not isinstance(block_private_ips, bool):
            self._wrong("block_private_ips", block_private_ips, "pass True or False")
        self.instance_id = instance_id
        self.block_private_ips = block_private_ips
        self.blocks_private_addresses = block_private_ips
        self._check_packages()

    @asynccontextmanager
    async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
        """Open the session's folders and run commands in them.

        Raises:
            SandboxStartError: The session's id names no folder, another session holds
                it, it is not our own, or `ca_bundle` is not what this process trusts.
        """
        name = self._folder_name(request.session_id)
        check_trust(type(self).__name__, request.ca_bundle)
        folder = await self._open_folder(name)
        running = None
        try:
            running = self.running_type(folder.path, self._network_options())
            yield running
        finally:
            await to_the_end(asyncio.ensure_future(self._close(running, folder)))

    def _folder_name(self, session_id: str) -> str:
        fact = unusable_id(session_id)
        if fact:
            raise SandboxStartError(
                f"{type(self).__name__}: session_id {fact}; pass a short name, such as a UUID"
            )
        return folder_name("bashkit", (self.instance_id, session_id))

    async def _open_folder(self, name: str) -> SessionFolder:
        return await made_or_undone(
            lambda: SessionFolder(name, self.running_type.subfolders), self._release
        )

    async def _close(self, running: BashkitRunning | None, folder: SessionFolder) -> None:
        try:
            if running is not None:
                await running.close()
        finally:
            await in_thread(lambda: self._release(folder))

    def _release(self, folder: SessionFolder) -> None:
        folder.release(delete=self.instance_id is None)

    def _network_options(self) -> dict[str, Any] | None:
        """The interpreter's own network policy; None is no network at all."""
        if self.network.mode == "none":
            return None
        if self.network.mode == "all":
            return {"allow_all": True, "block_private_ips": self.block_private_ips}
        # The interpreter compares scheme, host and port; a port that is left out is 443.
        allowed = [f"https://{entry}" for entry in self.network.entries]
        return {"allow": allowed, "block_private_ips": self.block_private_ips}
