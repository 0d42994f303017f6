"""What there is in the cloud: apps, services, deployments, and the instances behind them."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
import uuid
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from conformance.lab.cloud.definitions import (
    EVERYTHING,
    environ_of,
    idle_seconds,
    ranges_of,
    wrong_fields,
)
from conformance.lab.cloud.instance import Instance
from conformance.lab.cloud.nursery import Order
from conformance.lab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from pathlib import Path

    from conformance.lab.cloud.faults import Faults
    from conformance.lab.cloud.nursery import Nursery

Json = dict[str, Any]

_STEPS = ("PENDING", "PROVISIONING", "SCHEDULED", "ALLOCATING", "STARTING")
_STEP_SECONDS = 0.002
_HEALTH_SECONDS = 20.0
_PAUSE_SECONDS = 0.01
_READY = "HEALTHY"
_ASLEEP = "SLEEPING"


def now() -> str:
    """Give this moment as the provider writes it."""
    return datetime.now(tz=UTC).isoformat().replace("+00:00", "Z")


def new_id() -> str:
    """Give an id that nothing else has."""
    return str(uuid.uuid4())


@dataclass
class App:
    """An app: what services are in, and whose public name leads to them."""

    name: str
    life_cycle: Json
    domain: str
    id: str = field(default_factory=new_id)
    created_at: str = field(default_factory=now)


@dataclass
class Deployment:
    """One version of a service, with the instance that runs it."""

    service_id: str
    app_id: str
    definition: Json
    id: str = field(default_factory=new_id)
    created_at: str = field(default_factory=now)
    status: str = _STEPS[0]
    messages: list[str] = field(default_factory=list)
    routing_key: str = field(default_factory=lambda: secrets.token_hex(16))
    instance: Instance | None = None
    task: asyncio.Task[None] | None = None
    removal: asyncio.Task[None] | None = None
    waking: asyncio.Task[None] | None = None
    idle: asyncio.TimerHandle | None = None
    calls: int = 0


@dataclass
class Service:
    """A service: a name, a life cycle and the deployments it had."""

    app_id: str
    name: str
    life_cycle: Json
    id: str = field(default_factory=new_id)
    created_at: str = field(default_factory=now)
    deployments: list[Deployment] = field(default_factory=list)
    active: Deployment | None = None
    expiry: asyncio.TimerHandle | None = None

    @property
    def latest(self) -> Deployment:
        """Its newest deployment."""
        return self.deployments[-1]


class Estate:
    """Everything of one organization.

    Args:
        folder: where instances are put.
        faults: what is to go wrong.
        domain: gives the public name of an app.
        nursery: where instances come from.
    """

    def __init__(
        self, folder: Path, faults: Faults, domain: Callable[[str], str], nursery: Nursery
    ) -> None:
        self._folder = folder
        self._faults = faults
        self._domain = domain
        self._nursery = nursery
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._removals: set[asyncio.Task[None]] = set()
        self.apps: dict[str, App] = {}
        self.services: dict[str, Service] = {}
        self.deployments: dict[str, Deployment] = {}

    # -- made and changed

    def add_app(self, name: str, life_cycle: Json) -> App:
        """Make an app."""
        app = App(name, life_cycle, self._domain(name))
        self.apps[app.id] = app
        return app

    def add_service(self, app: App, name: str, life_cycle: Json, definition: Json) -> Service:
        """Make a service, and begin to bring it up."""
        service = Service(app.id, name, life_cycle)
        self.services[service.id] = service
        self._set_expiry(service)
        self.deploy(service, definition)
        return service

    async def provision(self, name: str, definition: Json) -> str:
        """Make an app with a service in it that nobody asked the API for, and give its id.

        Raises:
            LabError: the definition is wrong, or the service did not become ready.
        """
        if wrong := wrong_fields(definition):
            raise LabError(f"the definition is wrong: {wrong}")
        service = self.add_service(self.add_app(name, {}), name, {}, definition)
        if service.latest.task is not None:
            await asyncio.shield(service.latest.task)
        if service.latest.status != _READY:
            raise LabError(f"the service is {service.latest.status}: {service.latest.messages}")
        return service.id

    def change_life_cycle(self, service: Service, life_cycle: Json) -> None:
        """Give a service another life cycle."""
        service.life_cycle = life_cycle
        self._set_expiry(service)

    def deploy(self, service: Service, definition: Json) -> Deployment:
        """Begin to bring up another version of a service; the present one goes when it is up."""
        deployment = Deployment(service.id, service.app_id, definition)
        service.deployments.append(deployment)
        self.deployments[deployment.id] = deployment
        deployment.task = self._begin(self._bring_up(service, deployment))
        return deployment

    def _set_expiry(self, service: Service) -> None:
        if service.expiry is not None:
            service.expiry.cancel()
            service.expiry = None
        seconds = service.life_cycle.get("delete_after_create")
        if seconds:
            service.expiry = asyncio.get_running_loop().call_later(
                float(seconds), lambda: self._begin(self.remove_service(service))
            )

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # -- brought up

    async def _bring_up(self, service: Service, deployment: Deployment) -> None:
        for status in _STEPS:
            deployment.status = status
            await asyncio.sleep(_STEP_SECONDS)
        if self._faults.of_deployment("never_ready"):
            return
        if self._faults.of_deployment("broken"):
            self._end(deployment, "ERROR", "the image could not be pulled")
            return
        try:
            await self._start(deployment)
        except LabError as failure:
            self._end(deployment, "ERROR", failure.reason)
            return
        previous, service.active = service.active, deployment
        self._be_ready(deployment)
        if previous is not None:
            await self._stop(previous)

    async def _start(self, deployment: Deployment) -> None:
        ranges = ranges_of(deployment.definition)
        late = self._faults.of_deployment("late_policy")
        never = self._faults.of_deployment("no_policy")
        number = next(self._numbers)
        order = Order(
            number=number,
            identifier=deployment.id,
            environ=environ_of(deployment.definition),
            privileged=bool(deployment.definition["docker"].get("privileged")),
            ranges=EVERYTHING if late or never else ranges,
        )
        folder = self._folder / str(number)
        starting = asyncio.ensure_future(Instance.start(order, folder, self._nursery))
        try:
            deployment.instance = await asyncio.shield(starting)
        except asyncio.CancelledError:  # deleted meanwhile: what is half made goes as well
            with suppress(LabError):
                await (await starting).remove()
            raise
        await self._answers(deployment.instance)
        self._begin(self._watch(deployment, deployment.instance))
        if late:
            self._begin(self._enforce(deployment.instance, late[0].seconds, ranges))

    def _be_ready(self, deployment: Deployment) -> None:
        deployment.status = _READY
        seconds = idle_seconds(deployment.definition)
        if seconds is not None and not deployment.calls:
            deployment.idle = asyncio.get_running_loop().call_later(
                seconds, lambda: self._begin(self._fall_asleep(deployment))
            )

    async def _fall_asleep(self, deployment: Deployment) -> None:
        deployment.status = _ASLEEP
        await self._stop(deployment)
        deployment.removal = None

    async def _wake(self, deployment: Deployment) -> None:
        if deployment.removal is not None:
            await asyncio.shield(deployment.removal)
        deployment.removal = None
        try:
            await self._start(deployment)
        except LabError as failure:
            self._end(deployment, "ERROR", failure.reason)
        else:
            self._be_ready(deployment)
        finally:
            deployment.waking = None

    @asynccontextmanager
    async def called(self, key: str, host: str) -> AsyncIterator[Instance | None]:
        """Give the instance that a call is for, awake for as long as the call lasts.

        Args:
            key: the routing key of the call.
            host: the name that it was made to.
        """
        deployment = self._routed(key, host)
        if deployment is None:
            yield None
            return
        deployment.calls += 1
        if deployment.idle is not None:
            deployment.idle.cancel()
        try:
            if deployment.status == _ASLEEP:
                if deployment.waking is None:
                    deployment.waking = self._begin(self._wake(deployment))
                await asyncio.shield(deployment.waking)
            yield deployment.instance
        finally:
            deployment.calls -= 1
            if deployment.status == _READY:
                self._be_ready(deployment)

    @staticmethod
    async def _answers(instance: Instance) -> None:
        deadline = time.monotonic() + _HEALTH_SECONDS
        while time.monotonic() < deadline and instance.is_alive:
            reader, writer = await asyncio.open_unix_connection(instance.calls)
            try:
                writer.write(b"GET /health HTTP/1.0\r\n\r\n")
                if b" 200 " in await reader.readline():
                    return
            except OSError:
                pass  # it is not there yet
            finally:
                writer.close()
            await asyncio.sleep(_PAUSE_SECONDS)
        raise LabError("the instance does not answer")

    async def _watch(self, deployment: Deployment, instance: Instance) -> None:
        await instance.over()
        if deployment.removal is None:  # nobody wanted it to end
            self._end(deployment, "ERROR", "the instance ended")
            await self._stop(deployment)

    @staticmethod
    async def _enforce(instance: Instance, seconds: float, ranges: tuple[str, ...]) -> None:
        await asyncio.sleep(seconds)
        if instance.is_alive:
            with suppress(LabError):  # it has ended meanwhile
                await instance.enforce(ranges)

    @staticmethod
    def _end(deployment: Deployment, status: str, said: str) -> None:
        deployment.status = status
        deployment.messages.append(said)

    # -- deleted

    async def _stop(self, deployment: Deployment) -> None:
        if deployment.idle is not None:
            deployment.idle.cancel()
        for task in (deployment.task, deployment.waking):
            if task is not None and not task.done() and task is not asyncio.current_task():
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        if deployment.instance is not None:
            if deployment.removal is None:
                deployment.removal = self._begin(self._remove(deployment, deployment.instance))
                self._removals.add(deployment.removal)
                deployment.removal.add_done_callback(self._removals.discard)
            # Whoever waits for it may be cancelled, and the instance is to go all the same.
            await asyncio.shield(deployment.removal)
        if deployment.status not in ("ERROR", "STOPPED", _ASLEEP):
            deployment.status = "STOPPED"

    @staticmethod
    async def _remove(deployment: Deployment, instance: Instance) -> None:
        await instance.remove()
        deployment.instance = None

    async def remove_service(self, service: Service) -> None:
        """Delete a service with its instances, and its app where that is to go when empty."""
        if self.services.pop(service.id, None) is None:
            return
        if service.expiry is not None:
            service.expiry.cancel()
        for deployment in service.deployments:
            await self._stop(deployment)
        app = self.apps.get(service.app_id)
        others = any(other.app_id == service.app_id for other in self.services.values())
        if app is not None and app.life_cycle.get("delete_when_empty") and not others:
            del self.apps[app.id]

    async def remove_app(self, app: App) -> None:
        """Delete an app with all that is in it."""
        for service in [one for one in self.services.values() if one.app_id == app.id]:
            await self.remove_service(service)
        self.apps.pop(app.id, None)

    async def close(self) -> None:
        """Delete everything."""
        for app in list(self.apps.values()):
            await self.remove_app(app)
        await asyncio.gather(*self._removals)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._nursery.close()

    # -- found

    def _routed(self, key: str, host: str) -> Deployment | None:
        """Give the deployment that a call is for, by its routing key or else its host."""
        for service in self.services.values():
            active = service.active
            if active is None or active.status not in (_READY, _ASLEEP):
                continue
            app = self.apps.get(service.app_id)
            if key == active.routing_key or (not key and app is not None and host == app.domain):
                return active
        return None

    def inventory(self) -> list[dict[str, str]]:
        """Give a row for each thing that there is: `kind`, `id` and `name`."""
        rows = [{"kind": "app", "id": app.id, "name": app.name} for app in self.apps.values()]
        for service in self.services.values():
            rows.append({"kind": "service", "id": service.id, "name": service.name})
            rows.extend(
                {"kind": "instance", "id": deployment.id, "name": service.name}
                for deployment in service.deployments
                if deployment.instance is not None
            )
        return rows
