"""Sandbox Proxy's environment in one open sandbox: installed, and renewed before it ends.

It is a file inside that our own program reads before each command: see
`sandboxes.inside.cloud_environment`.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from sandboxes.contract import SandboxError
from sandboxes.mistral import errors
from sandboxes.mistral.errors import CloudError
from sandboxes.mistral.programs import compressed
from sandboxes.trust import CA_FILE_VARIABLES

if TYPE_CHECKING:
    from sandboxes.mistral.definition import Json
    from sandboxes.mistral.programs import Programs
    from sandboxes.mistral.sandbox_proxy import SandboxProxy, Setup

START_SECONDS = 60.0
"""How long a session that starts waits for its first one."""

_CALL_SECONDS = 30.0
# A command waits for it beside its own limit.
_RENEWAL_SECONDS = 5.0
_ANSWER_SECONDS = 4.0
_INSTALL_SECONDS = 30.0
_FIFTH = 0.2
# A command that has just begun must have some of it left, unless it never lives so long.
_LEAST_SECONDS = 5.0


async def first_setup(proxy: SandboxProxy) -> Setup:
    """Ask for the setup that a session starts with.

    Raises:
        CloudError: It was refused, or no answer came.
    """
    deadline = time.monotonic() + START_SECONDS
    return await proxy.bootstrap(seconds=_CALL_SECONDS, deadline=deadline)


class ProxyEnvironment:
    """What a session holds of Sandbox Proxy.

    Args:
        sandbox: What errors call the sandbox.
        proxy: Renews it.
        setup: The first one.
        certificates: What programs inside trust beside it, as PEM.
    """

    def __init__(
        self, sandbox: str, proxy: SandboxProxy, setup: Setup, certificates: bytes
    ) -> None:
        self._sandbox = sandbox
        self._proxy = proxy
        self._setup = setup
        # What runs since before a renewal still has the one of then.
        self._handed_out = [setup]
        self._certificates = certificates
        self._programs: Programs | None = None
        self._instance = ""
        self._place: Json = {}
        self._broken = ""
        self._one_at_a_time = asyncio.Lock()

    async def begin(self, programs: Programs, instance: str) -> None:
        """Put it inside for the first time.

        Args:
            programs: Of the sandbox.
            instance: What differs once it was started anew.

        Raises:
            CloudError: It is not there.
        """
        self._programs, self._instance = programs, instance
        await self._install(self._setup)

    async def _install(self, setup: Setup) -> None:
        assert self._programs is not None
        # What runs since before a renewal still meets the authority of then.
        trusted = "\n".join(dict.fromkeys((self._setup.certificate, setup.certificate))).encode()
        request = {
            "instance": self._instance,
            "bundle_variables": CA_FILE_VARIABLES,
            "folder": self._place.get("folder", ""),
            "environment": dict(setup.environment),
            "certificates": compressed(self._certificates + b"\n" + trusted),
        }
        answer = await self._programs.ask("install", request, seconds=_INSTALL_SECONDS)
        if answer["fact"]:
            raise CloudError(errors.not_installed(self._sandbox, str(answer["fact"])))
        # Only now: where this was cut short, the earlier one counts and is put back.
        self._setup = setup
        self._place = {name: str(answer[name]) for name in ("folder", "file", "digest")}

    async def ready(self) -> Json:
        """Give where it is inside, renewed if it is about to end.

        Raises:
            SandboxError: It could not be renewed, now or before: the session is of no more use.
        """
        self.check()
        if self._is_ending():
            async with self._one_at_a_time:
                self.check()
                if self._is_ending():
                    await self._renew()
        return {name: self._place[name] for name in ("file", "digest")}

    def check(self) -> None:
        """Refuse further use of a session whose environment could not be kept up.

        Raises:
            SandboxError: It could not.
        """
        if self._broken:
            raise SandboxError(self._broken)

    def _is_ending(self) -> bool:
        life = self._setup.seconds
        return self._setup.left <= max(life * _FIFTH, min(_LEAST_SECONDS, life / 2))

    async def _renew(self) -> None:
        deadline = time.monotonic() + _RENEWAL_SECONDS
        try:
            setup = await self._proxy.bootstrap(seconds=_ANSWER_SECONDS, deadline=deadline)
            self._handed_out.append(setup)
            await self._install(setup)
        except SandboxError as error:
            self._broken = errors.not_renewed(self._sandbox, str(error))
            raise SandboxError(self._broken) from None

    async def restore(self, found: Json) -> None:
        """Put it inside once more, where a command removed or changed it.

        Args:
            found: What `ready` gave, and was not so.

        Raises:
            SandboxError: That failed: the session is of no more use.
        """
        async with self._one_at_a_time:
            self.check()
            if found["digest"] != self._place["digest"]:
                return  # it was renewed meanwhile
            try:
                await self._install(self._setup)
            except SandboxError as error:
                raise self.broken_off(str(error)) from None

    def broken_off(self, fact: str) -> SandboxError:
        """End the use of the session, and give the error that says so."""
        self._broken = errors.not_kept(self._sandbox, fact)
        return SandboxError(self._broken)

    async def revoke(self) -> None:
        """Have all that was handed out refused from now on.

        Raises:
            CloudError: Some of it is accepted until its life ends.
        """
        deadline = time.monotonic() + _RENEWAL_SECONDS
        found = [self._proxy.revoke(one, deadline=deadline) for one in self._handed_out]
        for outcome in await asyncio.gather(*found, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def remove(self) -> None:
        """Take it away from a sandbox that stays.

        Raises:
            CloudError: Nobody knows whether it is gone.
        """
        if self._programs is not None and self._place:
            request = {"remove": self._place["folder"]}
            await self._programs.ask("install", request, seconds=_INSTALL_SECONDS)
