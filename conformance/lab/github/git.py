"""git over HTTP: its own backend, run for each request."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from conformance.lab.cloud.wire import Answer
from conformance.lab.github.repositories import environment

if TYPE_CHECKING:
    from conformance.lab.cloud.wire import Request
    from conformance.lab.github.repositories import Repository

_SECONDS = 30.0


async def answer(request: Request, repository: Repository, rest: tuple[str, ...]) -> Answer:
    """Have git answer a request to a repository."""
    headers = request.headers
    told = {
        **environment(repository.path.parent),
        "GIT_PROJECT_ROOT": str(repository.path),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": "/" + "/".join(rest),
        "QUERY_STRING": request.target.partition("?")[2],
        "REQUEST_METHOD": request.method,
        "CONTENT_TYPE": headers.get("content-type", ""),
        "CONTENT_LENGTH": str(len(request.body)),
        "HTTP_CONTENT_ENCODING": headers.get("content-encoding", ""),
        "GIT_PROTOCOL": headers.get("git-protocol", ""),
        "REMOTE_USER": "lab",
        "REMOTE_ADDR": "127.0.0.1",
    }
    process = await asyncio.create_subprocess_exec(
        "git",
        "http-backend",
        env=told,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(_SECONDS):
            said, _ = await process.communicate(request.body)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    head, _, body = said.partition(b"\r\n\r\n")
    fields = dict(_field(line) for line in head.decode("latin-1").split("\r\n") if ":" in line)
    status = int(fields.pop("status", "200").split()[0])
    kind = fields.pop("content-type", "text/plain")
    fields.pop("content-length", None)
    return Answer(status, body, kind, fields)


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip().lower(), value.strip()
