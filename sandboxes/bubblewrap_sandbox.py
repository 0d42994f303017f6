"""Commands in Linux namespaces of their own, made by bwrap: no root, no daemon, no image."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from sandboxes.bubblewrap_running import BubblewrapRunning
from sandboxes.bubblewrap_server import SpaceServer
from sandboxes.bubblewrap_space import BUNDLE, ENVIRONMENT, PATH, Space
from sandboxes.contract import (
    AccessLevel,
    AnyBinding,
    HeaderBinding,
    Network,
    NetworkMode,
    OpenRequest,
    RunningSandbox,
    SandboxHook,
    SandboxStartError,
)
from sandboxes.custom_sandbox import CustomSandbox
from sandboxes.limits import accepted_limit
from sandboxes.threads import in_thread, made_or_undone, to_the_end
from sandboxes.timeouts import Commands
from sandboxes.workspace import Workspace

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Mapping, Sequence

    from sandboxes.egress import EgressProxy

DEFAULT_TIMEOUT_SECONDS = 600.0
PROXY_PORT = 3128
"""On the loopback of the inside, where its proxy is."""


class BubblewrapSandbox(CustomSandbox):
    """Runs this machine's programs, cut off from its files, processes and network.

    Each session has namespaces of its own, as root and as an ordinary user: `/usr` read-only,
    a workspace at `/workspace`, a home and a `/tmp` that go when it closes, processes that
    see none of the host's, and a loopback device. Under `Network.allow()` a proxy on that
    loopback is the only way out, as variables inside tell programs; it runs in the process
    of the sandbox, and adds the header bindings. Private addresses stay refused. The kernel
    is the host's, and there is no bound on memory and processes.

    Each command is a bash of its own. What it starts in the background goes on until the
    session closes. At a time limit and at a cancellation all that came of the command gets
    SIGTERM, and SIGKILL 5 seconds later.

    Args:
        default_exec_timeout_seconds: The limit of a command that brings none, in seconds;
            600 if None.
        network: `Network.none()` if None, or `Network.allow()`.
        header_bindings: Of the type `HeaderBinding`.
        hooks: Run in this order when the sandbox is ready, in reverse when it closes.
        access: `"full"` if None.

    Raises:
        MissingExtra: A package of the extra `bubblewrap` is not installed.
        RefusedConfiguration: An option is unusable.
    """

    supported_access: ClassVar[AccessLevel] = "full"
    supported_network: ClassVar[frozenset[NetworkMode]] = frozenset({"none", "allow"})
    supported_header_bindings: ClassVar[frozenset[type[AnyBinding]]] = frozenset({HeaderBinding})
    has_processes = True
    isolated = True
    blocks_private_addresses = True
    optional_packages: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"cryptography": "bubblewrap", "h11": "bubblewrap"}
    )
    commands_type: ClassVar[type[Commands]] = Commands
    space_type: ClassVar[type[Space]] = Space
    environment: ClassVar[Mapping[str, str]] = ENVIRONMENT

    def __init__(
        self,
        *,
        default_exec_timeout_seconds: int | None = None,
        network: Network | None = None,
        header_bindings: Sequence[AnyBinding] = (),
        hooks: Sequence[SandboxHook] = (),
        access: AccessLevel | None = None,
    ) -> None:
        super().__init__(
            network=network, header_bindings=header_bindings, hooks=hooks, access=access
        )
        self.default_exec_timeout_seconds = accepted_limit(
            type(self).__name__,
            "default_exec_timeout_seconds",
            default_exec_timeout_seconds,
            DEFAULT_TIMEOUT_SECONDS,
        )
        # The inside has the programs of this machine.
        self.supports_background_processes = shutil.which("python3", path=PATH) is not None
        self._check_packages()

    @asynccontextmanager
    async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
        """Make the namespaces with a folder of their own, and end them on every way out.

        Raises:
            SandboxStartError: bwrap is missing, may make no namespaces, `ca_bundle` cannot
                be read, or a secret is missing or unusable.
        """
        bwrap = self._find_bwrap()
        self._check_secrets(request)
        further = self._certificates(request)
        async with (
            _folder() as workspace,
            self._server(bwrap, workspace, further) as (server, space),
            self._proxy(request, server, space) as environ,
        ):
            running = BubblewrapRunning(
                server,
                self.commands_type(server=server.same),
                {**self.environment, **environ},
                workspace.path,
                self.default_exec_timeout_seconds,
            )
            try:
                yield running
            finally:
                await to_the_end(asyncio.ensure_future(running.close()))

    def _find_bwrap(self) -> str:
        found = shutil.which("bwrap")
        if found is None:
            raise SandboxStartError(
                f"{type(self).__name__}: there is no bwrap on PATH; install bubblewrap "
                "(apt-get install bubblewrap), which only Linux has"
            )
        return os.path.abspath(found)

    def _check_secrets(self, request: OpenRequest) -> None:
        """Raise what the proxy would, before anything is made."""
        if self.header_bindings:
            from sandboxes.egress.rules import rules_of

            rules_of(self.network, self.header_bindings, request.secrets)

    def _certificates(self, request: OpenRequest) -> bytes:
        try:
            return b"" if request.ca_bundle is None else request.ca_bundle.read_bytes()
        except OSError as error:
            raise self._no_certificates(request, error) from error

    def _no_certificates(self, request: OpenRequest, error: OSError) -> SandboxStartError:
        return SandboxStartError(
            f"{type(self).__name__}: ca_bundle {request.ca_bundle} gives no certificates "
            f"({error.strerror or error}); pass a PEM file, or leave it out"
        )

    @asynccontextmanager
    async def _server(
        self, bwrap: str, workspace: Workspace, certificates: bytes
    ) -> AsyncIterator[tuple[SpaceServer, Space]]:
        space = self.space_type(workspace.path, PROXY_PORT if self.network.mode == "allow" else 0)
        await to_the_end(in_thread(lambda: space.prepare(certificates)))
        # Not in a thread: its end would be that of what it started.
        server = SpaceServer(type(self).__name__, bwrap, space)
        try:
            await server.ready()
            yield server, space
        finally:
            if server.listener is not None:
                server.listener.close()
            await to_the_end(asyncio.ensure_future(server.close()))

    @asynccontextmanager
    async def _proxy(
        self, request: OpenRequest, server: SpaceServer, space: Space
    ) -> AsyncIterator[dict[str, str]]:
        """Let the inside out through a proxy, and give the variables that tell it so."""
        if server.listener is None:
            yield {}
            return
        try:
            proxy = self._new_proxy(request, server.listener)
        except OSError as error:
            raise self._no_certificates(request, error) from error
        space.trust(proxy.ca_pem)
        await proxy.__aenter__()
        try:
            yield proxy.environ(f"127.0.0.1:{PROXY_PORT}", BUNDLE)
        finally:
            await to_the_end(asyncio.ensure_future(proxy.__aexit__(None, None, None)))

    def _new_proxy(self, request: OpenRequest, listener: socket.socket) -> EgressProxy:
        from sandboxes.egress import EgressProxy

        return EgressProxy(self.network, **self._proxy_options(request, listener))

    def _proxy_options(self, request: OpenRequest, listener: socket.socket) -> dict[str, Any]:
        return {
            "listen": listener,
            "bindings": self.header_bindings,
            "secrets": request.secrets,
            "ca_bundle": request.ca_bundle,
        }


@asynccontextmanager
async def _folder() -> AsyncIterator[Workspace]:
    workspace = await made_or_undone(_new_folder, Workspace.release)
    try:
        yield workspace
    finally:
        await to_the_end(in_thread(workspace.release))


def _new_folder() -> Workspace:
    try:
        path = tempfile.mkdtemp(prefix="sandbox-bubblewrap-")
    except OSError as error:
        raise SandboxStartError(
            f"no folder can be made in {tempfile.gettempdir()} ({error.strerror}); "
            "set TMPDIR to one that may be written to"
        ) from error
    return Workspace.given(path, delete=True)
