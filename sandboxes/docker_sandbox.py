"""Commands in a Docker container on the user's machine: for development."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal

from sandboxes.contract import (
    AccessLevel,
    Network,
    NetworkMode,
    OpenRequest,
    RefusedConfiguration,
    RunningSandbox,
    Sandbox,
    SandboxError,
    SandboxHook,
    messages,
)
from sandboxes.limits import accepted_limit
from sandboxes.setup_script import run_setup_script
from sandboxes.threads import in_thread, made_or_undone, to_the_end

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from sandboxes.docker_container import Container, Plan
    from sandboxes.docker_engine import Engine
    from sandboxes.docker_running import DockerRunning

DEFAULT_TIMEOUT_SECONDS = 600.0

# What the engine's own rules for references leave over, coarsely; it knows the rest.
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,254}")
_NETWORKS: Mapping[NetworkMode, str] = MappingProxyType({"none": "none", "all": "bridge"})
_RESOLVERS = (Path("/etc/resolv.conf"), Path("/run/systemd/resolve/resolv.conf"))

_log = logging.getLogger(__name__)


class LocalDockerSandbox(Sandbox):
    """Runs commands in a container of the Docker engine that `DOCKER_HOST` names.

    Each session has a container of its own with a workspace at `/workspace`, and both are
    removed when it closes. Under `Network.none()` the container has loopback alone, its
    setup script too; under `Network.all()` it is on the engine's default network. Where the
    engine is on this machine, and the machine asks only itself for names, which a container
    cannot, names stay unknown: the engine would ask public servers instead.

    Each command is a shell of its own, as the image's user. What it starts in the background
    goes on until the session closes. At a time limit and at a cancellation all that came of
    the command gets SIGTERM, and SIGKILL 5 seconds later.

    Args:
        image: What the container is made of; `python:3.12-bookworm` if None. It needs a
            setsid command (util-linux or BusyBox), sh, and the shell.
        supports_background_processes: Whether the image has `python3 -I` with socket and
            subprocess; if None, only the default image counts as one that has.
        shell: `"bash"` if None, or `"sh"`.
        default_exec_timeout_seconds: The limit of a command that brings none, in seconds;
            600 if None.
        setup_script: Text for the shell, run once before the hooks. A session whose script
            fails does not start.
        setup_script_timeout_seconds: The script's own limit, in seconds; 600 if None.
        network: `Network.none()` if None, or `Network.all()`.
        hooks: Run in this order when the sandbox is ready, in reverse when it closes.
        access: `"full"` if None.

    Raises:
        MissingExtra: The package docker is not installed.
        RefusedConfiguration: An option is unusable.
    """

    supported_access: ClassVar[AccessLevel] = "full"
    supported_network: ClassVar[frozenset[NetworkMode]] = frozenset({"none", "all"})
    has_processes = True
    isolated = True
    needs_container_engine: ClassVar[bool] = True
    optional_packages: ClassVar[Mapping[str, str]] = MappingProxyType({"docker": "docker"})
    default_image: ClassVar[str] = "python:3.12-bookworm"

    def __init__(
        self,
        *,
        image: str | None = None,
        supports_background_processes: bool | None = None,
        shell: Literal["bash", "sh"] | None = None,
        default_exec_timeout_seconds: int | None = None,
        setup_script: str | None = None,
        setup_script_timeout_seconds: int | None = None,
        network: Network | None = None,
        hooks: Sequence[SandboxHook] = (),
        access: AccessLevel | None = None,
    ) -> None:
        super().__init__(network=network, hooks=hooks, access=access)
        if not isinstance(supports_background_processes, bool | None):
            self._wrong(
                "supports_background_processes",
                supports_background_processes,
                "pass True or False",
            )
        if shell not in (None, "bash", "sh"):
            self._wrong("shell", shell, 'pass "bash" or "sh"')
        self.image = self._accept_image(image)
        # Of an image that somebody else made nothing is known.
        self.supports_background_processes = (
            image is None
            if supports_background_processes is None
            else supports_background_processes
        )
        self.shell = shell or "bash"
        self.setup_script = self._accept_script(setup_script)
        self.default_exec_timeout_seconds = self._accept_limit(
            "default_exec_timeout_seconds", default_exec_timeout_seconds
        )
        self.setup_script_timeout_seconds = self._accept_limit(
            "setup_script_timeout_seconds", setup_script_timeout_seconds
        )
        self._check_packages()

    def _accept_image(self, image: str | None) -> str:
        if image is None:
            return self.default_image
        remedy = f"pass the name of one, such as {self.default_image!r}"
        if not isinstance(image, str):
            self._wrong("image", image, remedy)
        if not _IMAGE.fullmatch(image):
            fact = "is no name of an image"
            raise RefusedConfiguration(
                messages.unusable_option(type(self).__name__, "image", fact, remedy)
            )
        return image

    def _accept_script(self, script: str | None) -> str | None:
        remedy = "pass the text of a script, or leave it out"
        if script is not None and not isinstance(script, str):
            self._wrong("setup_script", script, remedy)
        if script is not None and (not script.strip() or "\0" in script):
            fact = "is empty or has a NUL"
            raise RefusedConfiguration(
                messages.unusable_option(type(self).__name__, "setup_script", fact, remedy)
            )
        return script

    def _accept_limit(self, option: str, seconds: float | None) -> float:
        return accepted_limit(type(self).__name__, option, seconds, DEFAULT_TIMEOUT_SECONDS)

    @asynccontextmanager
    async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
        """Make a container, run the setup script in it, and remove it on every way out.

        Raises:
            SandboxStartError: The engine does not answer, the image cannot be had or lacks
                what it needs, or the setup script failed.
        """
        engine = await made_or_undone(self._connect, lambda made: made.close())
        try:
            container = await self._made(engine, request)
            running = self._running(container)
            try:
                if self.setup_script is not None:
                    await run_setup_script(
                        type(self).__name__,
                        running,
                        self.setup_script,
                        timeout_seconds=self.setup_script_timeout_seconds,
                    )
                yield running
            finally:
                await to_the_end(asyncio.ensure_future(self._close(running, container)))
        finally:
            await to_the_end(in_thread(engine.close))

    def _connect(self) -> Engine:
        from sandboxes.docker_engine import Engine

        return Engine(type(self).__name__)

    def _running(self, container: Container) -> DockerRunning:
        from sandboxes.docker_running import DockerRunning

        return DockerRunning(container, self.shell, self.default_exec_timeout_seconds)

    async def _made(self, engine: Engine, request: OpenRequest) -> Container:
        """Make the container; a cancelled caller waits for no image."""
        from sandboxes.docker_container import remove_leftovers

        container = self._container(engine, self._plan(engine, request))
        given_up = threading.Event()

        def make() -> Container:
            try:
                remove_leftovers(engine)
            except SandboxError:
                _log.exception("leftovers of earlier sessions could not be removed")
            return container.made(given_up)

        making = asyncio.ensure_future(made_or_undone(make, lambda made: made.remove()))
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            given_up.set()
            making.cancel()
            await to_the_end(asyncio.ensure_future(asyncio.wait({making})))
            # What it raised is not told: the cancellation is what the caller hears of.
            if not making.cancelled() and making.exception() is None:
                await to_the_end(in_thread(making.result().remove))
            raise

    def _container(self, engine: Engine, plan: Plan) -> Container:
        from sandboxes.docker_container import Container

        return Container(engine, plan)

    def _plan(self, engine: Engine, request: OpenRequest) -> Plan:
        from sandboxes.docker_container import Plan

        none = self.network.mode == "none"
        return Plan(
            sandbox=type(self).__name__,
            session_id=request.session_id,
            image=self.image,
            shell=self.shell,
            network_mode=self._network_mode(),
            # Nobody answers there, and so it is said at once that a name is unknown.
            name_servers=("127.0.0.1",) if none else (),
            no_names=not none and engine.is_local and asks_itself_for_names(),
            ca_bundle=request.ca_bundle,
        )

    def _network_mode(self) -> str:
        return _NETWORKS[self.network.mode]

    async def _close(self, running: DockerRunning, container: Container) -> None:
        running.shut()
        try:
            await in_thread(container.remove)
        finally:
            await running.settled()


def asks_itself_for_names(files: Sequence[Path] = _RESOLVERS) -> bool:
    """Whether this machine has servers for names on its loopback only, and has any."""
    servers = []
    for file in files:
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        lines = (line.split() for line in text.splitlines())
        servers += [words[1] for words in lines if words[:1] == ["nameserver"] and words[1:]]
    return bool(servers) and all(server.startswith("127.") or server == "::1" for server in servers)
