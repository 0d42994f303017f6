"""The provider's protocol without a provider: its calls answered here, its commands run here."""

from __future__ import annotations

import asyncio
import base64
import json
import marshal
import os
import re
import signal
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import httpx

import sandboxes as agents
from sandboxes import OpenRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    import respx

API = "https://app.koyeb.com/v1"
PLACE = "https://instance.example.org/koyeb-sandbox"
TOKEN = "token-canary-5f2c"
ROUTING_KEY = "route-1"
REQUEST = OpenRequest(session_id="s")
Json = dict[str, Any]
Answer = httpx.Response | Exception


class Cloud:
    """One organization's apps, at most one service, and its executor.

    Attributes:
        calls: Method and path of every call, in order.
        apps: By id, those that are there.
        lines: What the executor was told to run.
        faults: Answers that come instead, by method and path, first those that came first.
    """

    def __init__(self, router: respx.MockRouter, folder: Path) -> None:
        self.folder = folder
        self.calls: list[str] = []
        self.apps: dict[str, Json] = {}
        self.services: dict[str, Json] = {}
        self.statuses = ["STARTING", "HEALTHY"]
        self.lines: list[str] = []
        self.faults: dict[str, list[Answer]] = {}
        self.lost: set[str] = set()
        self.opened: list[list[str]] = []
        self.running: set[asyncio.Task[httpx.Response]] = set()
        router.route().mock(side_effect=self.answer)

    async def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer one call."""
        path = request.url.path.removeprefix("/v1").removeprefix("/koyeb-sandbox")
        call = f"{request.method} {path}"
        self.calls.append(call)
        faults = self.faults.get(call, [])
        if faults:
            fault = faults.pop(0)
            if isinstance(fault, Exception):
                raise fault
            return fault
        body = json.loads(request.content or b"{}")
        if request.url.host == "app.koyeb.com":
            assert request.headers["Authorization"] == f"Bearer {TOKEN}"
            answer = self.control(request, body)
        else:
            answer = await self.execute(request, path, body)
        if call in self.lost:
            self.lost.discard(call)
            raise httpx.ReadError("the answer was lost")
        return answer

    def control(self, request: httpx.Request, body: Json) -> httpx.Response:
        """The control plane."""
        _, _, kind, *rest = request.url.path.split("/")
        things = {"apps": self.apps, "services": self.services}.get(kind, {})
        if request.method == "POST":
            if any(one["name"] == body["name"] for one in things.values()):
                return httpx.Response(400, json={"message": "name already exists"})
            identifier = f"{kind}-{len(things) + 1}"
            things[identifier] = {"id": identifier, **body}
            return httpx.Response(200, json={kind[:-1]: {"id": identifier}})
        if request.method == "DELETE":
            found = things.pop(rest[0], None)
            return httpx.Response(200 if found else 404, json={})
        if not rest:
            name = request.url.params["name"]
            return httpx.Response(
                200, json={kind: [one for one in things.values() if one["name"] == name]}
            )
        if kind == "deployments":
            return httpx.Response(200, json={"deployment": self.deployment()})
        if rest[0] not in things:
            return httpx.Response(404, json={"message": "not found"})
        shown = {**things[rest[0]], "latest_deployment_id": "d-1"}
        return httpx.Response(200, json={kind[:-1]: shown})

    def deployment(self) -> Json:
        """The one deployment, a step further each time it is looked at."""
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        service = next(iter(self.services.values()))
        where = {"public_url": PLACE.removesuffix("/koyeb-sandbox"), "routing_key": ROUTING_KEY}
        return {
            "status": status,
            "definition": service["definition"],
            "metadata": {"sandbox": where},
        }

    @property
    def secret(self) -> str:
        """The executor's."""
        service = next(iter(self.services.values()))
        return str(service["definition"]["env"][0]["value"])

    async def execute(self, request: httpx.Request, path: str, body: Json) -> httpx.Response:
        """The executor inside."""
        assert request.headers["X-Routing-Key"] == ROUTING_KEY
        if path == "/health":
            return httpx.Response(200, json={"status": "ok"})
        assert request.headers["Authorization"] == f"Bearer {self.secret}"
        if path == "/write_file":
            await asyncio.to_thread(Path(body["path"]).write_text, body["content"])
            return httpx.Response(200, json={"success": True})
        self.lines.append(body["cmd"])
        line = body["cmd"]
        if self.opened:  # what is open, at which nobody may knock from here
            if found := self.opened.pop(0):
                said = f"sandbox-cloud:{json.dumps({'open': found})}\n"
                return httpx.Response(200, json={"stdout": said, "code": 0})
            line = without_knocking(line)
        # As at the provider's, a command goes on when nobody listens any more.
        running = asyncio.ensure_future(self._run(line))
        self.running.add(running)
        running.add_done_callback(self.running.discard)
        return await asyncio.shield(running)

    async def _run(self, line: str) -> httpx.Response:
        process = await asyncio.create_subprocess_exec(
            *("sh", "-c", line),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "SANDBOX_SECRET": self.secret},
            start_new_session=True,
        )
        try:
            out, err = await process.communicate()
        finally:
            if process.returncode is None:  # the test has ended
                os.killpg(process.pid, signal.SIGKILL)
                await process.communicate()
        answer = {"stdout": out.decode(), "stderr": err.decode(), "code": process.returncode}
        return httpx.Response(200, json=answer)


def without_knocking(line: str) -> str:
    """A line that has a sandbox made ready, without its proof."""
    (word,) = re.findall(r"sys\.argv\.append\('([^']*)'\)", line)
    asked = marshal.loads(zlib.decompress(base64.b64decode(word)))
    assert asked["knock"]["targets"]
    packed = zlib.compress(marshal.dumps({**asked, "knock": None}, 2))
    return line.replace(word, base64.b64encode(packed).decode())


def sandbox_in(folder: Path) -> Callable[..., agents.MistralSandbox]:
    """A sandbox whose workspace is a folder of this machine."""

    class InAFolder(agents.MistralSandbox):
        workspaces: ClassVar[tuple[str, ...]] = (str(folder / "workspace"),)

    return InAFolder
