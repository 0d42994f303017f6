"""A sandbox that Mistral Cloud runs for each session."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import asynccontextmanager, contextmanager, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from sandboxes.contract import (
    AccessLevel,
    AnyBinding,
    EgressPolicy,
    GitHubBinding,
    MistralApiBinding,
    Network,
    NetworkMode,
    OpenRequest,
    RefusedConfiguration,
    RunningSandbox,
    Sandbox,
    SandboxError,
    SandboxHook,
    SandboxProxy,
    SandboxStartError,
    WorkspaceHeaderBindings,
    messages,
)
from sandboxes.mistral import decisions
from sandboxes.mistral.definition import Plan
from sandboxes.mistral.options import accepted
from sandboxes.setup_script import run_setup_script
from sandboxes.threads import in_thread, to_the_end
from sandboxes.trust import CA_FILE_VARIABLES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
    from typing import NoReturn

    from sandboxes.mistral.control_plane import ControlPlane
    from sandboxes.mistral.definition import Json
    from sandboxes.mistral.programs import Programs
    from sandboxes.mistral.provisioning import Provisioned
    from sandboxes.mistral.proxy_environment import ProxyEnvironment
    from sandboxes.mistral.running import MistralRunning, Place
    from sandboxes.mistral.sandbox_proxy import SandboxProxy as ProxyService
    from sandboxes.mistral.sandbox_proxy import Setup
    from sandboxes.mistral.transport import Transport


class MistralSandbox(Sandbox):
    """Runs commands in a sandbox on Mistral Cloud, one for each session.

    The API token's user needs the cloud_user role. The token comes from one of
    AGENTS_SDK_KOYEB_SANDBOX_API_TOKEN, NUAGE_KOYEB_SANDBOX_API_TOKEN and KOYEB_API_KEY, when a
    session starts; KOYEB_API_HOST names another cloud than the provider's.

    An option that is left out, except supports_background_processes, network, egress,
    header_bindings, hooks and access, comes from the variable
    AGENTS_SDK_KOYEB_SANDBOX_<OPTION>, such as AGENTS_SDK_KOYEB_SANDBOX_INSTANCE_TYPE.

    Header bindings act as the session's caller, or without one as the user of MISTRAL_API_KEY:
    Sandbox Proxy, at the origin in MISTRAL_API_URL, is asked before anything is created.

    Outbound traffic is filtered by address, outside of the sandbox, and nothing runs inside
    before that is proven to be in force. Each command is a bash of its own, or sh where the
    image has no bash, as the image's user. What it starts in the background goes on until the
    session closes. At a time limit and at a cancellation all that came of the command gets
    SIGTERM, and SIGKILL 5 seconds later.

    Args:
        image: What the sandbox is made of; `koyeb/sandbox` if None, and with a Docker daemon
            `koyeb/sandbox:dind`. It runs the provider's executor and has python3 3.9 or later.
        supports_background_processes: Whether the image has `python3 -I` with socket and
            subprocess; if None, only the default image counts as one that has.
        instance_type: Size of the machine; `micro` if None.
        region: Where it is; `nl-north-1` if None. Not every region filters outbound traffic.
        name_prefix: Before the name in the cloud; `sandbox` if None.
        ttl_seconds: When the cloud deletes it if nobody else did; 86,400 if None.
        idle_timeout_seconds: After how long without a call it sleeps, and loses what it
            holds; 3600 if None.
        default_exec_timeout_seconds: The limit of a command that brings none, in seconds;
            600 if None.
        privileged: Whether it may run a Docker daemon; if None, when it is to run one.
        docker_daemon_enabled: Whether it runs a Docker daemon; False if None.
        docker_daemon_network_mode: `"bridge"` if None; `"host"` or `"none"` leave the daemon
            without a network of its own.
        enable_light_sleep: Whether it first sleeps with its memory kept; False if None.
        setup_script: Text for the shell, run once before the hooks. A session whose script
            fails does not start.
        setup_script_timeout_seconds: The script's own limit, in seconds; 600 if None.
        readiness_max_retries: How often its executor is asked again whether it is ready;
            120 if None.
        readiness_interval_seconds: Between two such questions; 0.5 if None.
        readiness_probe_timeout_seconds: How long one may take; 5 if None.
        wait_ready_timeout_seconds: From the beginning until it is ready and its policy is in
            force; 300 if None.
        enable_mesh: Whether it joins the private network of the organization's services,
            which is a way out: only under `Network.all()`. False if None.
        network: `Network.none()` if None, or `Network.all()`.
        egress: Addresses that are open on top of `Network.none()`.
        header_bindings: Credentials, which Sandbox Proxy adds; they need `Network.all()`.
        sandbox_proxy: The older spelling of `header_bindings`; with it, `network` is
            `Network.all()` if None.
        pre_provisioned_sandbox_id: The service of a sandbox that was made before: it is used
            and not deleted. One whose policy opens more than what is written is refused.
        hooks: Run in this order when the sandbox is ready, in reverse when it closes.
        access: `"full"` if None.

    Raises:
        MissingExtra: The package httpx is not installed.
        RefusedConfiguration: An option is unusable.
    """

    supported_access: ClassVar[AccessLevel] = "full"
    needs_cloud: ClassVar[bool] = True
    supported_network: ClassVar[frozenset[NetworkMode]] = frozenset({"none", "all"})
    supported_header_bindings: ClassVar[frozenset[type[AnyBinding]]] = frozenset(
        {GitHubBinding, MistralApiBinding, WorkspaceHeaderBindings}
    )
    sandbox_proxy_type: ClassVar[type[SandboxProxy]] = SandboxProxy
    has_processes = True
    isolated = True
    optional_packages: ClassVar[Mapping[str, str]] = MappingProxyType({"httpx": "mistral"})
    workspaces: ClassVar[tuple[str, ...]] = ("/workspace", "~/workspace")

    image: str
    instance_type: str
    region: str
    name_prefix: str
    ttl_seconds: float
    idle_timeout_seconds: float
    default_exec_timeout_seconds: float
    privileged: bool
    docker_daemon_enabled: bool
    docker_daemon_network_mode: str | None
    enable_light_sleep: bool
    setup_script: str | None
    setup_script_timeout_seconds: float
    readiness_max_retries: int
    readiness_interval_seconds: float
    readiness_probe_timeout_seconds: float
    wait_ready_timeout_seconds: float
    enable_mesh: bool
    pre_provisioned_sandbox_id: str | None

    def __init__(
        self,
        *,
        image: str | None = None,
        supports_background_processes: bool | None = None,
        instance_type: str | None = None,
        region: str | None = None,
        name_prefix: str | None = None,
        ttl_seconds: int | None = None,
        idle_timeout_seconds: int | None = None,
        default_exec_timeout_seconds: int | None = None,
        privileged: bool | None = None,
        docker_daemon_enabled: bool | None = None,
        docker_daemon_network_mode: str | None = None,
        enable_light_sleep: bool | None = None,
        setup_script: str | None = None,
        setup_script_timeout_seconds: int | None = None,
        readiness_max_retries: int | None = None,
        readiness_interval_seconds: float | None = None,
        readiness_probe_timeout_seconds: int | None = None,
        wait_ready_timeout_seconds: int | None = None,
        enable_mesh: bool | None = None,
        network: Network | None = None,
        egress: EgressPolicy | None = None,
        header_bindings: Sequence[AnyBinding] = (),
        sandbox_proxy: SandboxProxy | None = None,
        pre_provisioned_sandbox_id: str | None = None,
        hooks: Sequence[SandboxHook] = (),
        access: AccessLevel | None = None,
    ) -> None:
        given = dict(locals())
        if sandbox_proxy is not None:
            header_bindings = self._accept_proxy(sandbox_proxy, header_bindings)
            network = self.network_type.all() if network is None else network
        super().__init__(
            network=network, header_bindings=header_bindings, hooks=hooks, access=access
        )
        name = type(self).__name__
        self.egress_policy = self._accept_egress(egress)
        chosen = accepted(name, given)
        decisions.decide(name, chosen, given, self)
        for option, value in chosen.items():
            setattr(self, option, value)
        self._check_packages()

    def _accept_proxy(
        self, sandbox_proxy: SandboxProxy, header_bindings: Sequence[AnyBinding]
    ) -> tuple[AnyBinding, ...]:
        """Read the older spelling, which had no `network` beside it."""
        if not isinstance(sandbox_proxy, self.sandbox_proxy_type):
            self._wrong("sandbox_proxy", sandbox_proxy, "pass SandboxProxy(integrations=...)")
        if header_bindings != ():
            self._refuse(
                "sandbox_proxy",
                "says what header_bindings says too",
                "leave one of the two out",
            )
        return sandbox_proxy.header_bindings

    def _accept_egress(self, egress: EgressPolicy | None) -> EgressPolicy:
        kind = self.egress_policy_type
        if egress is None:
            return kind.block_all() if self.network.mode == "none" else kind.allow_all()
        remedy = "pass EgressPolicy.custom(allow_cidrs=...), or leave it out"
        if not isinstance(egress, kind):
            self._wrong("egress", egress, remedy)
        if egress.mode != "custom":
            self._refuse("egress", f"is EgressPolicy.{egress.mode}()", remedy)
        if self.network.mode != "none":
            self._refuse(
                "egress",
                "opens addresses on top of Network.none(), and network is Network.all()",
                "leave one of the two out",
            )
        return egress

    def _refuse(self, option: str, fact: str, remedy: str) -> NoReturn:
        raise RefusedConfiguration(
            messages.unusable_option(type(self).__name__, option, fact, remedy)
        )

    @asynccontextmanager
    async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
        """Make a sandbox in the cloud, or find the one that was named, and prove its policy.

        It is deleted on every way out, unless it was named.

        Raises:
            SandboxStartError: There is no API token, or nobody that header bindings act for;
                the cloud or Sandbox Proxy refused or did not answer, the sandbox did not
                become ready or its policy is not in force, or the setup script failed.
        """
        from sandboxes.mistral.transport import Transport

        name = type(self).__name__
        certificates = await self._certificates(request)
        api_token = self._api_token()
        async with (
            Transport(name, (api_token,)) as transport,
            self._proxied(request, certificates) as proxied,
            self._provisioned(transport, api_token) as provisioned,
        ):
            running = await self._started(provisioned, certificates, proxied)
            try:
                if self.setup_script is not None:
                    await run_setup_script(
                        name,
                        running,
                        self.setup_script,
                        timeout_seconds=self.setup_script_timeout_seconds,
                    )
                yield running
            finally:
                await to_the_end(asyncio.ensure_future(self._close(running)))

    @asynccontextmanager
    async def _proxied(
        self, request: OpenRequest, certificates: bytes
    ) -> AsyncIterator[ProxyEnvironment | None]:
        """What Sandbox Proxy gives for the bindings, asked for before anything is created."""
        if not self.header_bindings:
            yield None
            return
        from sandboxes.mistral.proxy_environment import first_setup
        from sandboxes.mistral.sandbox_proxy import credential_of
        from sandboxes.mistral.transport import Transport

        name = type(self).__name__
        credential = credential_of(name, request.identity)
        async with Transport(name, (credential,), peer="Sandbox Proxy") as transport:
            with _as_a_failed_start():
                proxy = self._sandbox_proxy(transport, credential)
                setup = await first_setup(proxy)
            environment = self._proxy_environment(proxy, setup, certificates)
            try:
                yield environment
            except BaseException:
                with suppress(SandboxError):  # what went wrong before tells more
                    await to_the_end(asyncio.ensure_future(environment.revoke()))
                raise
            await to_the_end(asyncio.ensure_future(environment.revoke()))

    def _sandbox_proxy(self, transport: Transport, credential: str) -> ProxyService:
        from sandboxes.mistral.sandbox_proxy import SandboxProxy as ProxyService

        return ProxyService(transport, credential, self.header_bindings)

    def _proxy_environment(
        self, proxy: ProxyService, setup: Setup, certificates: bytes
    ) -> ProxyEnvironment:
        from sandboxes.mistral.proxy_environment import ProxyEnvironment

        return ProxyEnvironment(type(self).__name__, proxy, setup, certificates)

    def _api_token(self) -> str:
        from sandboxes.mistral.control_plane import token

        return token(type(self).__name__)

    def _life(self, transport: Transport, control: ControlPlane) -> Provisioned:
        from sandboxes.mistral.provisioning import Provisioned

        return Provisioned(transport, control, self)

    async def _begin(self, programs: Programs, request: Json, deadline: float) -> Json:
        from sandboxes.mistral.proof import begin

        name = type(self).__name__
        return await begin(name, programs, self.egress_policy, request, deadline=deadline)

    async def _certificates(self, request: OpenRequest) -> bytes:
        bundle = request.ca_bundle
        if bundle is None:
            return b""
        try:
            return await in_thread(bundle.read_bytes)
        except OSError as error:
            raise SandboxStartError(
                f"{type(self).__name__}: ca_bundle {bundle} cannot be read "
                f"({error.strerror or error}); name a file of certificates"
            ) from error

    @asynccontextmanager
    async def _provisioned(
        self, transport: Transport, api_token: str
    ) -> AsyncIterator[Provisioned]:
        """What there is in the cloud for a session, deleted on every way out."""
        from sandboxes.mistral.control_plane import ControlPlane

        with _as_a_failed_start():
            provisioned = self._life(transport, ControlPlane(transport, api_token))
        try:
            yield provisioned
        finally:
            await to_the_end(asyncio.ensure_future(provisioned.delete()))

    async def _started(
        self,
        provisioned: Provisioned,
        certificates: bytes,
        proxied: ProxyEnvironment | None,
    ) -> MistralRunning:
        from sandboxes.mistral.programs import Programs
        from sandboxes.mistral.running import MistralRunning

        name, adopted = type(self).__name__, self.pre_provisioned_sandbox_id
        with _as_a_failed_start():
            if adopted is None:
                executor = await provisioned.make(self._plan())
            else:
                executor = await provisioned.adopt(adopted, self.egress_policy)
            programs = Programs(executor, name)
            place = await self._place(programs, certificates, provisioned.deadline)
            if proxied is not None:
                await proxied.begin(programs, place.instance)
        return MistralRunning(
            programs, place, self.default_exec_timeout_seconds, provisioned.inventory, proxied
        )

    def _plan(self) -> Plan:
        return Plan(
            name=f"{self.name_prefix}-{uuid.uuid4().hex[:16]}",
            image=self.image,
            instance_type=self.instance_type,
            region=self.region,
            ttl_seconds=self.ttl_seconds,
            idle_timeout_seconds=self.idle_timeout_seconds,
            light_sleep=self.enable_light_sleep,
            privileged=self.privileged,
            docker_network=self.docker_daemon_network_mode,
            mesh=self.enable_mesh,
            policy=self.egress_policy,
        )

    async def _place(self, programs: Programs, certificates: bytes, deadline: float) -> Place:
        from sandboxes.mistral.programs import compressed
        from sandboxes.mistral.running import Place

        request = {"folders": [*self.workspaces], "certificates": compressed(certificates)}
        found = await self._begin(programs, request, deadline)
        programs.speak(str(found["magic"]))
        bundle = str(found["bundle"])
        return Place(
            folder=str(found["folder"]),
            instance=str(found["instance"]),
            shell=str(found["bash"]) or "/bin/sh",
            environ=dict.fromkeys(CA_FILE_VARIABLES, bundle) if bundle else {},
        )

    async def _close(self, running: MistralRunning) -> None:
        if self.pre_provisioned_sandbox_id is None:
            running.shut()
            await running.settled()
            return
        try:
            await running.leave()
        finally:
            running.shut()
            await running.settled()


@contextmanager
def _as_a_failed_start() -> Iterator[None]:
    """Let what the cloud did not do be why the session does not start."""
    try:
        yield
    except SandboxStartError:
        raise
    except SandboxError as error:
        raise SandboxStartError(str(error)) from error
