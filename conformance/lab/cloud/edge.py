"""Where all calls arrive: faults happen here, and each call goes on to whom it is for."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import h11

from conformance.lab.cloud.wire import Answer, Hangup

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from conformance.lab.cloud.control_plane import ControlPlane
    from conformance.lab.cloud.estate import Estate
    from conformance.lab.cloud.faults import Fault, Faults
    from conformance.lab.cloud.instance import Instance
    from conformance.lab.cloud.wire import Caller, Request

_CALLS = "/koyeb-sandbox"
_API = "/v1/"
_KEPT_REQUESTS = 5000
_CHUNK = 65536
_HOP = ("connection", "keep-alive", "host", "transfer-encoding", "content-length", "upgrade",
        "x-routing-key")  # fmt: skip
_CODES = {401: "unauthorized", 403: "permission_denied", 429: "too_many_requests"}


@dataclass(frozen=True)
class _How:
    """What goes wrong with a call that is passed on: nobody hears its answer, or it kills."""

    deaf: bool
    dying: Fault | None


class Edge:
    """Takes the connections of the cloud.

    Args:
        estate: what there is.
        plane: who answers for the API.
        faults: what is to go wrong.
    """

    def __init__(self, estate: Estate, plane: ControlPlane, faults: Faults) -> None:
        self._estate = estate
        self._plane = plane
        self._faults = faults
        self.requests: deque[dict[str, Any]] = deque(maxlen=_KEPT_REQUESTS)
        self.last_request = 0

    async def handle(self, request: Request, caller: Caller) -> Answer | None:
        """Answer one request, with what is to go wrong with it.

        Raises:
            Hangup: the connection is to end.
        """
        self.last_request += 1
        record = {"number": self.last_request, **_recorded(request)}
        self.requests.append(record)
        faults = self._faults.of_request(request.method, request.path)
        for fault in faults:
            if fault.kind == "slow":
                await asyncio.sleep(fault.seconds)
            elif fault.kind == "reset":
                raise Hangup
            elif fault.kind == "status":
                record["status"] = fault.status
                return _error(fault.status)
        deaf = any(fault.kind == "lose_reply" for fault in faults)
        dying = next((fault for fault in faults if fault.kind == "dies"), None)
        if request.path.startswith(_API):
            answer = await self._plane.answer(request)
        else:
            key = request.headers.get("x-routing-key", "")
            host = request.headers.get("host", "").partition(":")[0].lower()
            async with self._estate.called(key, host) as instance:
                how = _How(deaf=deaf, dying=dying)
                found = await self._pass_on(request, caller, record, instance, how)
            if found is None:
                return None
            answer = found
        record["status"] = answer.status
        if deaf:
            raise Hangup
        return answer

    async def _pass_on(
        self,
        request: Request,
        caller: Caller,
        record: dict[str, Any],
        instance: Instance | None,
        how: _How,
    ) -> Answer | None:
        if instance is None:
            return Answer.text(404, "no route\n")
        inside = request.path == _CALLS or request.path.startswith(f"{_CALLS}/")
        target = request.target.removeprefix(_CALLS) if inside else request.target
        answer = _Relayed(instance.calls if inside else instance.public, request, target or "/")
        relaying = asyncio.ensure_future(self._relay(answer, caller, record, deaf=how.deaf))
        leaving = asyncio.ensure_future(caller.left())
        death = asyncio.ensure_future(_kill(instance, how.dying)) if how.dying else None
        try:
            await asyncio.wait((relaying, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in filter(None, (relaying, leaving, death)):
                task.cancel()
            with suppress(asyncio.CancelledError):
                await answer.close()
        if relaying.cancelled() or not relaying.done():
            raise Hangup  # the caller left: the server inside learns it by the end of its own
        if relaying.exception() is not None:
            if answer.has_begun:
                raise Hangup
            return Answer.text(502, "no healthy upstream\n")
        return None

    @staticmethod
    async def _relay(
        answer: _Relayed, caller: Caller, record: dict[str, Any], *, deaf: bool
    ) -> None:
        status, headers = await answer.head()
        record["status"] = status
        if not deaf:
            await caller.begin(status, headers)
        async for data in answer.body():
            if not deaf:
                await caller.go_on(data)
        if deaf:
            raise Hangup
        await caller.finish()


class _Relayed:
    """A request that is passed on to the inside of an instance, and its answer."""

    def __init__(self, path: Path, request: Request, target: str) -> None:
        self._path = path
        self._request = request
        self._target = target
        self._http = h11.Connection(h11.CLIENT)
        self._writer: asyncio.StreamWriter | None = None
        self.has_begun = False

    async def head(self) -> tuple[int, list[tuple[str, str]]]:
        """Send the request, and give the head of the answer.

        Raises:
            OSError: nobody answers inside.
            h11.ProtocolError: what answers is no HTTP.
        """
        self._reader, self._writer = await asyncio.open_unix_connection(self._path)
        request, http = self._request, self._http
        headers = [(name, text) for name, text in request.headers.items() if name not in _HOP]
        own = [("host", "instance"), ("connection", "close")]
        size = [("content-length", str(len(request.body)))]
        head = h11.Request(
            method=request.method, target=self._target, headers=[*own, *size, *headers]
        )
        data = [http.send(head), http.send(h11.Data(data=request.body)), http.send(_END)]
        self._writer.write(b"".join(part or b"" for part in data))
        await self._writer.drain()
        while True:
            event = await self._event()
            if isinstance(event, h11.Response):
                break
            if not isinstance(event, h11.InformationalResponse):
                raise ConnectionError("the server inside hung up")
        self.has_begun = True
        fields = [(name.decode("latin-1"), text.decode("latin-1")) for name, text in event.headers]
        dropped = ("connection", "keep-alive")
        return event.status_code, [field for field in fields if field[0] not in dropped]

    async def body(self) -> AsyncIterator[bytes]:
        """Give the body as it comes."""
        while True:
            event = await self._event()
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return
            else:
                raise ConnectionError("the server inside hung up")

    async def _event(self) -> Any:  # noqa: ANN401 - h11's own kinds
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(_CHUNK))
        return event

    async def close(self) -> None:
        """Hang up."""
        if self._writer is not None:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()


_END = h11.EndOfMessage()


async def _kill(instance: Instance, fault: Fault) -> None:
    await asyncio.sleep(fault.seconds)
    instance.kill()


def _recorded(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(request.body) if request.body else None
    except ValueError:
        body = request.body.decode("utf-8", "replace")
    return {
        "method": request.method,
        "target": request.target,
        "headers": dict(request.headers),
        "body": body,
        "status": None,
    }


def _error(status: int) -> Answer:
    code = _CODES.get(status, "internal" if status >= 500 else "invalid_argument")
    message = {
        401: "Invalid or missing token",
        403: "You do not have the permission to do this",
        429: "Too many requests",
    }.get(status, "Something went wrong")
    more = {"retry-after": "1"} if status == 429 else {}
    body = {"status": status, "code": code, "message": message}
    return Answer(status, json.dumps(body).encode(), headers=more)
