"""The provider's API: apps, services, deployments and instances, as its own client uses them."""

from __future__ import annotations

import hmac
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from conformance.lab.cloud.definitions import INSTANCE_TYPES, REGIONS, wrong_fields
from conformance.lab.cloud.wire import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.lab.cloud.estate import App, Deployment, Estate, Service
    from conformance.lab.cloud.wire import Request

Json = dict[str, Any]

_PATH = re.compile(r"/v1/(apps|services|deployments|instances|catalog)(?:/([^/]+))?")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_MOST = 100
_SERVICE_STATUS = {"HEALTHY": "HEALTHY", "DEGRADED": "DEGRADED", "STOPPED": "DELETING"}
_IN_PROGRESS = ("PENDING", "PROVISIONING", "SCHEDULED", "ALLOCATING", "STARTING")


def refused(status: int, code: str, message: str, fields: dict[str, str] | None = None) -> Answer:
    """Give an error as the provider words it."""
    rows = [{"field": name, "description": text} for name, text in (fields or {}).items()]
    more = {"fields": rows} if rows else {}
    return Answer.of(status, status=status, code=code, message=message, **more)


_MISSING = refused(404, "not_found", "Resource not found")


class ControlPlane:
    """Answers what is asked of the API.

    Args:
        estate: what there is.
        token: what callers have to know.
        public_url: gives the address of an app's services.
    """

    def __init__(self, estate: Estate, token: str, public_url: Callable[[App], str]) -> None:
        self._estate = estate
        self._token = token
        self._public_url = public_url

    async def answer(self, request: Request) -> Answer:
        """Do what a request asks for."""
        said = request.headers.get("authorization", "")
        if not hmac.compare_digest(said.encode(), f"Bearer {self._token}".encode()):
            return refused(401, "unauthorized", "Invalid or missing token")
        found = _PATH.fullmatch(request.path)
        if found is None:
            return _MISSING
        kind, identifier = found.groups()
        query = parse_qs(urlsplit(request.target).query)
        if kind == "apps":
            return await self._apps(request, identifier, query)
        if kind == "services":
            return await self._services(request, identifier, query)
        if request.method != "GET":
            return refused(405, "method_not_allowed", "Method not allowed")
        if kind == "deployments":
            deployment = self._estate.deployments.get(identifier or "")
            return Answer.of(200, deployment=self._shown(deployment)) if deployment else _MISSING
        if kind == "instances":
            return self._instances(query)
        return self._catalog(identifier)

    # -- apps

    async def _apps(
        self, request: Request, identifier: str | None, query: dict[str, list[str]]
    ) -> Answer:
        if identifier is None:
            if request.method == "POST":
                return self._create_app(request.json())
            return _page("apps", [_app(app) for app in self._estate.apps.values()], query)
        app = self._estate.apps.get(identifier)
        if app is None:
            return _MISSING
        if request.method == "DELETE":
            await self._estate.remove_app(app)
            return Answer.of(200)
        return Answer.of(200, app=_app(app))

    def _create_app(self, body: Json) -> Answer:
        name = body.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            return _invalid({"name": "must be lower-case letters, digits and dashes, 63 at most"})
        if any(app.name == name for app in self._estate.apps.values()):
            return _invalid({"name": "already exists"})
        return Answer.of(200, app=_app(self._estate.add_app(name, body.get("life_cycle") or {})))

    # -- services

    async def _services(
        self, request: Request, identifier: str | None, query: dict[str, list[str]]
    ) -> Answer:
        if identifier is None:
            if request.method == "POST":
                return self._create_service(request.json())
            rows = [_service(service) for service in self._estate.services.values()]
            return _page("services", rows, query)
        service = self._estate.services.get(identifier)
        if service is None:
            return _MISSING
        if request.method == "DELETE":
            await self._estate.remove_service(service)
            return Answer.of(200)
        if request.method in ("PUT", "PATCH"):
            return self._change_service(service, request.json())
        return Answer.of(200, service=_service(service))

    def _create_service(self, body: Json) -> Answer:
        app = self._estate.apps.get(str(body.get("app_id")))
        if app is None:
            return refused(404, "not_found", "App not found")
        definition = body.get("definition") or {}
        wrong = wrong_fields(definition)
        if wrong:
            return _invalid(wrong)
        name = str(definition["name"])
        others = self._estate.services.values()
        if any(other.name == name and other.app_id == app.id for other in others):
            return _invalid({"definition.name": "already exists"})
        service = self._estate.add_service(app, name, body.get("life_cycle") or {}, definition)
        return Answer.of(200, service=_service(service))

    def _change_service(self, service: Service, body: Json) -> Answer:
        definition = body.get("definition") or service.latest.definition
        wrong = wrong_fields(definition)
        if wrong:
            return _invalid(wrong)
        if "life_cycle" in body:
            self._estate.change_life_cycle(service, body["life_cycle"] or {})
        self._estate.deploy(service, definition)
        return Answer.of(200, service=_service(service))

    # -- what is only shown

    def _shown(self, deployment: Deployment) -> Json:
        app = self._estate.apps.get(deployment.app_id)
        known = app is not None and deployment.status in ("HEALTHY", "DEGRADED", "SLEEPING")
        place = (
            {"public_url": self._public_url(app), "routing_key": deployment.routing_key}
            if known and app is not None
            else {}
        )
        return {
            "id": deployment.id,
            "app_id": deployment.app_id,
            "service_id": deployment.service_id,
            "created_at": deployment.created_at,
            "status": deployment.status,
            "messages": deployment.messages,
            "definition": deployment.definition,
            "metadata": {"sandbox": place} if place else {},
        }

    def _instances(self, query: dict[str, list[str]]) -> Answer:
        rows = [
            {
                "id": deployment.instance.order.identifier,
                "app_id": deployment.app_id,
                "service_id": deployment.service_id,
                "deployment_id": deployment.id,
                "status": deployment.status,
                "created_at": deployment.created_at,
            }
            for deployment in self._estate.deployments.values()
            if deployment.instance is not None
        ]
        return _page("instances", rows, query)

    @staticmethod
    def _catalog(what: str | None) -> Answer:
        names = {"regions": REGIONS, "instances": INSTANCE_TYPES}.get(what or "")
        if what is None or names is None:
            return _MISSING
        rows = [{"id": name, "name": name} for name in names]
        return Answer.of(200, **{what: rows}, limit=_MOST, offset=0, count=len(rows))


def _invalid(fields: dict[str, str]) -> Answer:
    return refused(400, "invalid_argument", "Validation error", fields)


def _page(kind: str, rows: list[Json], query: dict[str, list[str]]) -> Answer:
    """Give a page of those that fit the filters."""
    for name in ("name", "app_id", "service_id"):
        if name in query:
            rows = [row for row in rows if row.get(name) == query[name][0]]
    offset = int(query.get("offset", ["0"])[0])
    limit = min(int(query.get("limit", ["10"])[0]), _MOST)
    page = rows[offset : offset + limit]
    return Answer.of(200, **{kind: page}, limit=limit, offset=offset, count=len(rows))


def _app(app: App) -> Json:
    return {
        "id": app.id,
        "name": app.name,
        "organization_id": "organization",
        "life_cycle": app.life_cycle,
        "created_at": app.created_at,
        "status": "HEALTHY",
        "domains": [{"id": app.id, "name": app.domain, "app_id": app.id}],
    }


def _service(service: Service) -> Json:
    status = service.latest.status
    known = "STARTING" if status in _IN_PROGRESS else _SERVICE_STATUS.get(status, "UNHEALTHY")
    return {
        "id": service.id,
        "app_id": service.app_id,
        "name": service.name,
        "type": "SANDBOX",
        "life_cycle": service.life_cycle,
        "created_at": service.created_at,
        "status": known,
        "active_deployment_id": service.active.id if service.active else "",
        "latest_deployment_id": service.latest.id,
    }
