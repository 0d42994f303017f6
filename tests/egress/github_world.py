"""GitHub's hosts as origins that record what comes, behind a proxy with an authorizer."""

from __future__ import annotations

import base64
import contextlib
from typing import TYPE_CHECKING, Any, Literal

from sandboxes.contract import Network
from sandboxes.egress.github import HOSTS, GitHubAuthorizer
from tests.egress.world import World, world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

GITHUB, API, UPLOADS, CODELOAD = (*HOSTS, "codeload.github.com")
TOKEN = "ghs_16C7e42F292c6912E7710c838347Ae178B4a"
BASIC = b"Basic " + base64.b64encode(f"x-access-token:{TOKEN}".encode())
BEARER = f"Bearer {TOKEN}".encode()
REPOS = ("Octo/Tools", "octo/second.lib")
NUMBERS = {"/repos/Octo/Tools": 42, "/repos/octo/second.lib": 7}


async def token() -> str:
    return TOKEN


def found(number: int) -> bytes:
    body = b'{"id": %d}' % number
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@contextlib.asynccontextmanager
async def github(
    repos: Sequence[str] | Literal["all"] = REPOS, network: Network | None = None, **options: Any
) -> AsyncIterator[World]:
    """Start GitHub's hosts and one that gets no credential, and a proxy for some repositories."""
    options.setdefault("authorizers", [GitHubAuthorizer(repos, options.pop("token", token))])
    options.setdefault("bindings", ())
    hosts = (GITHUB, API, UPLOADS, CODELOAD)
    async with world(network or Network.all(), hosts=hosts, **options) as here:
        here.opened = set(HOSTS)
        # With the name as it is listed, so that a client's own question is told from this one.
        for path, number in NUMBERS.items():
            here.origins[API].answers[path.encode()] = found(number)
        yield here
