"""A cloud on loopback for the tests, and a client that knows nothing of it but HTTP."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from conformance.lab.cloud.client import CloudClient
from tests.lab.accounts import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SECRET = "the secret of the executor"
_SECONDS = 20.0


@dataclass(frozen=True)
class RunningCloud:
    """A cloud process: where it is, who may call it, and its process id."""

    url: str
    client: CloudClient
    token: str
    pid: int

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Call the API, or with `x_routing_key` and `authorization` an executor."""
        sent = {"authorization": f"Bearer {self.token}", **_spelled(headers)}
        parts = urlsplit(self.url)
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        connection = kind(parts.netloc, timeout=_SECONDS)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            raw = answer.read()
        finally:
            connection.close()
        try:
            return answer.status, json.loads(raw)
        except ValueError:
            return answer.status, raw.decode()

    def create(self, name: str = "one", **changes: Any) -> tuple[str, str]:
        """Make an app and a service in it, and give their ids."""
        _, app = self.call("POST", "/v1/apps", {"name": f"app-{name}", "life_cycle": {}})
        body = service_body(app["app"]["id"], name, **changes)
        status, made = self.call("POST", "/v1/services", body)
        assert status == 200, made
        return app["app"]["id"], made["service"]["id"]

    def deployment(self, service: str) -> Any:
        """Give the newest deployment of a service."""
        found = self.call("GET", f"/v1/services/{service}")[1]["service"]
        path = f"/v1/deployments/{found['latest_deployment_id']}"
        return self.call("GET", path)[1]["deployment"]

    def await_status(self, service: str, wanted: str) -> Any:
        """Wait until the newest deployment of a service has a status."""
        deadline = time.monotonic() + _SECONDS
        while (found := self.deployment(service))["status"] != wanted:
            assert time.monotonic() < deadline, found
            time.sleep(0.02)
        return found

    def ready(self, **changes: Any) -> dict[str, str]:
        """Make a sandbox, wait for it, and give the headers that its executor takes."""
        _, service = self.create(**changes)
        found = self.await_status(service, "HEALTHY")
        key = found["metadata"]["sandbox"]["routing_key"]
        return {"x_routing_key": key, "authorization": f"Bearer {SECRET}"}

    def run(self, headers: Mapping[str, str], command: str, **more: Any) -> Any:
        """Run a command in a sandbox, and give the executor's answer."""
        status, body = self.call("POST", "/koyeb-sandbox/run", {"cmd": command, **more}, **headers)
        assert status == 200, body
        return body

    def kinds(self) -> list[str]:
        """Give the kind of each thing in the inventory."""
        return sorted(row["kind"] for row in self.client.inventory())

    def await_kinds(self, *wanted: str) -> None:
        """Wait until the inventory holds these kinds and no more."""
        deadline = time.monotonic() + _SECONDS
        while self.kinds() != sorted(wanted):
            assert time.monotonic() < deadline, self.client.inventory()
            time.sleep(0.02)


def service_body(app: str, name: str, **changes: Any) -> dict[str, Any]:
    """Give the least body that makes a service, with changes to its definition."""
    life_cycle = changes.pop("life_cycle", {})
    definition = {
        "name": name,
        "type": "SANDBOX",
        "docker": {"image": "koyeb/sandbox"},
        "env": [{"key": "SANDBOX_SECRET", "value": SECRET}],
        "regions": ["na"],
        "instance_types": [{"type": "micro"}],
        "mesh": "DEPLOYMENT_MESH_DISABLED",
        **changes,
    }
    return {"app_id": app, "name": name, "life_cycle": life_cycle, "definition": definition}


def forget_connections(koyeb: Any) -> None:
    """Close what the provider's own client keeps open for the life of a process."""
    kept = koyeb.sandbox.clients._api_clients_cache
    while kept:
        kept.popitem()[1].apps.api_client.rest_client.pool_manager.clear()


def _spelled(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): text for name, text in headers.items()}


@contextmanager
def running(folder: Path) -> Iterator[RunningCloud]:
    """Run a cloud on loopback within a block; at its end nothing of it is left."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "conformance.lab.cloud", str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        told = json.loads(process.stdout.readline())
        client = CloudClient(told["control"])
        yield RunningCloud(told["url"], client, client.token(), process.pid)
    finally:
        process.stdin.close()
        try:
            process.wait(_SECONDS)
        finally:
            process.kill()
            process.stdout.close()
