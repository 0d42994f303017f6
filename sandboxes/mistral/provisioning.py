"""The life of one sandbox in the cloud: made or found, waited for, and deleted if it is ours."""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import TYPE_CHECKING, Protocol

from sandboxes.contract import SandboxStartError
from sandboxes.mistral import errors
from sandboxes.mistral.definition import (
    ASLEEP,
    IN_PROGRESS,
    READY,
    app_body,
    service_body,
    weaker,
)
from sandboxes.mistral.errors import CloudError
from sandboxes.mistral.executor import Executor
from sandboxes.threads import to_the_end

if TYPE_CHECKING:
    from sandboxes.contract import EgressPolicy
    from sandboxes.mistral.control_plane import ControlPlane
    from sandboxes.mistral.definition import Deployment, Json, Plan
    from sandboxes.mistral.transport import Transport

_FIRST_LOOK, _LONGEST_LOOK = 0.05, 1.0
_AGAIN_SECONDS = 0.5
# An app whose creation was given up may appear a while later: each look waits twice as long.
_LOOKS_FOR_LOST = 4
# A cloud that does not answer keeps nobody from leaving.
_DELETE_SECONDS = 60.0
_TOO_MANY = 429


class Waiting(Protocol):
    """The options that say how long to wait, and how often to ask."""

    wait_ready_timeout_seconds: float
    readiness_max_retries: int
    readiness_interval_seconds: float
    readiness_probe_timeout_seconds: float


class Provisioned:
    """A sandbox in the cloud.

    Args:
        transport: Of the session.
        control: The control plane.
        waiting: How long to wait.

    Attributes:
        deadline: When it has to be ready, on `time.monotonic`.
    """

    def __init__(self, transport: Transport, control: ControlPlane, waiting: Waiting) -> None:
        self._transport = transport
        self._control = control
        self._waiting = waiting
        self._sandbox = transport.sandbox
        self._app: str | None = None
        self._name: str | None = None
        self._unsure = False
        self.deadline = time.monotonic() + waiting.wait_ready_timeout_seconds

    async def make(self, plan: Plan) -> Executor:
        """Make one, and wait until it answers; the caller deletes it on every way out.

        Raises:
            CloudError: The cloud refused, or does not answer.
            SandboxStartError: It did not become ready.
        """
        secret = secrets.token_urlsafe(32)
        self._transport.keep_secret(secret)
        self._name = plan.name
        try:
            self._app = await self._created("app", plan.name, app_body(plan))
        except CloudError:
            if not self._unsure:
                self._name = None  # it was refused, so that there is nothing to look for
            raise
        service = await self._created(
            "service", plan.name, service_body(plan, self._app, secret), app_id=self._app
        )
        deployment = await self._deployed(service, READY)
        return await self._answering(deployment, self._app, secret)

    async def adopt(self, identifier: str, policy: EgressPolicy) -> Executor:
        """Use one that is there; it is never deleted.

        Raises:
            CloudError: There is none, or the cloud does not answer.
            SandboxStartError: It opens more than the policy, or cannot be used.
        """
        deployment = await self._deployed(identifier, READY | ASLEEP)
        if not deployment.secret:
            raise SandboxStartError(errors.no_secret(self._sandbox, identifier))
        self._transport.keep_secret(deployment.secret)
        fact = weaker(deployment.definition, policy)
        if fact:
            raise SandboxStartError(errors.weaker_policy(self._sandbox, identifier, fact))
        service = await self._control.service(identifier, self.deadline)
        return await self._answering(
            deployment, str(service.get("app_id") or ""), deployment.secret
        )

    async def _created(self, kind: str, name: str, body: Json, **filters: str) -> str:
        """Make a thing once: where an answer was lost, it is looked for before it is made again.

        Its name is like no other, so what bears it is ours.
        """
        while True:
            # To its end: a request that is cut off may still make something.
            creating = asyncio.ensure_future(self._control.create(kind, body, self.deadline))
            try:
                return await to_the_end(creating)
            except CloudError as error:
                again = error.may_have_happened or error.status == _TOO_MANY
                self._unsure = self._unsure or error.may_have_happened
                if not again or time.monotonic() + _AGAIN_SECONDS >= self.deadline:
                    raise
            await asyncio.sleep(_AGAIN_SECONDS)
            found = await self._control.find(kind, name, deadline=self.deadline, **filters)
            if found is not None:
                return found

    async def _deployed(self, service: str, enough: frozenset[str]) -> Deployment:
        """Wait for a service's newest deployment, as it is when this begins."""
        pause, status = _FIRST_LOOK, "no deployment"
        newest: object = None
        while True:
            if not newest:
                shown = await self._control.service(service, self.deadline)
                newest = shown.get("latest_deployment_id") or shown.get("active_deployment_id")
            if newest:
                deployment = await self._control.deployment(str(newest), self.deadline)
                status = deployment.status
                if status in enough:
                    return deployment
                if status not in IN_PROGRESS:
                    raise SandboxStartError(
                        errors.ended_early(self._sandbox, status, deployment.said)
                    )
            if time.monotonic() + pause >= self.deadline:
                raise SandboxStartError(self._too_late(f"its deployment was {status}"))
            await asyncio.sleep(pause)
            pause = min(1.3 * pause, _LONGEST_LOOK)

    async def _answering(self, deployment: Deployment, app: str, secret: str) -> Executor:
        """Wait until the executor inside answers."""
        url = deployment.public_url
        if not url:
            domain = await self._control.domain(app, self.deadline)
            url = f"https://{domain}"
        executor = Executor(self._transport, url, deployment.routing_key, secret)
        waiting = self._waiting
        for _ in range(waiting.readiness_max_retries + 1):
            left = self.deadline - time.monotonic()
            if left <= 0:
                raise SandboxStartError(self._too_late("its executor did not answer"))
            if await executor.is_healthy(min(left, waiting.readiness_probe_timeout_seconds)):
                return executor
            await asyncio.sleep(min(waiting.readiness_interval_seconds, max(left, 0)))
        tries = waiting.readiness_max_retries + 1
        fact = f"its executor did not answer any of {tries} probes"
        bound = str(waiting.readiness_max_retries)
        raise SandboxStartError(
            errors.not_ready(self._sandbox, "readiness_max_retries", bound, fact)
        )

    def _too_late(self, fact: str) -> str:
        bound = f"{self._waiting.wait_ready_timeout_seconds:g}"
        return errors.not_ready(self._sandbox, "wait_ready_timeout_seconds", bound, fact)

    async def delete(self) -> None:
        """Delete what was made, also where nobody was told of it.

        Raises:
            CloudError: Something may be left.
        """
        if self._name is None:
            return
        deadline = time.monotonic() + _DELETE_SECONDS
        try:
            looks = 1 if self._app is not None else _LOOKS_FOR_LOST
            for look in range(looks):
                if look:
                    await asyncio.sleep(_AGAIN_SECONDS * 2 ** (look - 1))
                app = self._app or await self._control.find("app", self._name, deadline=deadline)
                if app is not None:
                    await self._control.delete_app(app, deadline)
                    break
        except CloudError as error:
            raise CloudError(
                errors.left_behind(self._sandbox, self._name, str(error)), status=error.status
            ) from None
        self._name = None

    def inventory(self) -> tuple[str, ...]:
        """What there is in the cloud because of us."""
        return () if self._name is None else (f"cloud app {self._name}",)
