"""HTTP calls to the cloud: TLS, time limits, and what is repeated.

What is safe to do twice is repeated after a pause that grows and has jitter. What is not is
sent once: again only where no connection was made, so that nothing of it can have arrived.
"""

from __future__ import annotations

import asyncio
import os
import random
import ssl
import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import certifi
import httpx

from sandboxes.mistral import errors
from sandboxes.mistral.errors import CloudError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

    from sandboxes.mistral.definition import Json

CONNECT_SECONDS = 10.0
CALL_SECONDS = 30.0
ATTEMPTS = 5
"""How often a call is made that is safe to repeat."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 8.0
_LEAST_SECONDS = 0.1
_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_SHOWN = 300
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_jitter = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Attributes:
        method: Of HTTP.
        url: Where.
        action: What errors call it.
        headers: With whatever says who we are.
        body: Sent as JSON.
        query: Added to the address.
    """

    method: str
    url: str
    action: str
    headers: Mapping[str, str] = field(repr=False)
    body: Json | None = field(default=None, repr=False)
    query: Mapping[str, str] | None = None


class Transport:
    """One session's connections.

    Args:
        sandbox: What errors call the sandbox.
        secrets: Texts that no error may show, in what a server says.
        peer: What errors call the other side.
    """

    def __init__(
        self, sandbox: str, secrets: tuple[str, ...] = (), *, peer: str = "the cloud"
    ) -> None:
        self.sandbox = sandbox
        self._peer = peer
        self._secrets = list(secrets)
        self._client = httpx.AsyncClient(
            verify=_trusted(),
            timeout=httpx.Timeout(CALL_SECONDS, connect=CONNECT_SECONDS),
            # Every command that runs holds one.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=8),
            follow_redirects=False,
        )

    def keep_secret(self, secret: str) -> None:
        """Let no error show this text either."""
        if secret:
            self._secrets.append(secret)

    async def __aenter__(self) -> Self:
        """Be closed at the end of the block."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connections."""
        await self._client.aclose()

    def check_address(self, url: str) -> str:
        """Give an address back, if a secret may be sent there.

        Raises:
            CloudError: It is plain HTTP to another machine, or no address.
        """
        parts = urlsplit(url)
        local = parts.scheme == "http" and parts.hostname in _LOOPBACK
        if not parts.hostname or (parts.scheme != "https" and not local):
            raise CloudError(errors.plain_address(self.sandbox, repr(url[:_SHOWN])))
        return url.rstrip("/")

    async def once(
        self,
        call: Call,
        *,
        seconds: float,
        deadline: float | None = None,
        attempts: int = ATTEMPTS,
    ) -> httpx.Response:
        """Make a call that may not be repeated.

        Args:
            call: What to send.
            seconds: How long an answer may take.
            deadline: When nobody wants its answer any more, on `time.monotonic`.
            attempts: How often to try to get a connection.

        Raises:
            CloudError: No answer came.
        """
        for attempt in range(attempts):
            wait = _pause(attempt)
            try:
                return await self._sent(call, _bound(seconds, deadline))
            except CloudError as error:
                last = attempt + 1 == attempts or _over(deadline, wait)
                if error.may_have_happened or last:
                    raise
            await asyncio.sleep(wait)
        raise AssertionError("unreachable")

    async def repeated(
        self, call: Call, *, deadline: float | None = None, seconds: float = CALL_SECONDS
    ) -> httpx.Response:
        """Make a call that is safe to do twice, again where it fails for a moment.

        Args:
            call: What to send.
            deadline: When nobody wants its answer any more, on `time.monotonic`.
            seconds: How long one answer may take.

        Raises:
            CloudError: No answer came.
        """
        for attempt in range(ATTEMPTS):
            last = attempt + 1 == ATTEMPTS
            wait = _pause(attempt)
            try:
                response = await self._sent(call, _bound(seconds, deadline))
            except CloudError:
                if last or _over(deadline, wait):
                    raise
            else:
                wait = max(wait, _asked_to_wait(response.headers))
                if response.status_code not in _BUSY or last or _over(deadline, wait):
                    return response
            await asyncio.sleep(wait)
        raise AssertionError("unreachable")

    async def _sent(self, call: Call, seconds: float) -> httpx.Response:
        limits = httpx.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))
        # Without the error of httpx, whose request carries the token.
        try:
            return await asyncio.wait_for(
                self._client.request(
                    call.method,
                    call.url,
                    headers=call.headers,
                    json=call.body,
                    params=call.query,
                    timeout=limits,
                ),
                seconds + min(seconds, CONNECT_SECONDS),
            )
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol) as error:
            fact, arrived = self._cleaned(error), False
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            fact, arrived = self._cleaned(error), True
        except TimeoutError:
            fact, arrived = f"no answer within {seconds:g} s", True
        raise CloudError(
            errors.unanswered(self.sandbox, call.action, fact, self._peer),
            may_have_happened=arrived,
        ) from None

    def _cleaned(self, error: Exception) -> str:
        text = self.cleaned(str(error))
        return f"{type(error).__name__}: {text}" if text else type(error).__name__

    def cleaned(self, text: str) -> str:
        """One line of what somebody said, without the secrets."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return " ".join(text.split())[:_SHOWN]

    def said(self, response: httpx.Response) -> str:
        """What an answer says is wrong."""
        try:
            body = response.json()
        except ValueError:
            return self.cleaned(response.text)
        if not isinstance(body, dict):
            return self.cleaned(response.text)
        parts = [str(body.get("message") or body.get("error") or body.get("code") or "")]
        fields = body.get("fields")
        parts += [
            f"{one.get('field')}: {one.get('description')}"
            for one in (fields if isinstance(fields, list) else ())
            if isinstance(one, dict)
        ]
        return self.cleaned("; ".join(filter(None, parts)))


def _trusted() -> ssl.SSLContext:
    """What the system trusts, with the variables that say otherwise, and certifi's beside it."""
    chosen = tuple(os.environ.get(name, "") for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    return _context(chosen, tuple(map(_version, chosen)))


def _version(path: str) -> tuple[int, ...]:
    try:
        facts = os.stat(path)
    except OSError:
        return ()
    return facts.st_mtime_ns, facts.st_size, facts.st_ino


# A bundle takes tens of milliseconds to read, in which no other session gets on.
@lru_cache(maxsize=4)
def _context(chosen: tuple[str, ...], _: tuple[tuple[int, ...], ...]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not any(chosen):
        context.load_verify_locations(certifi.where())
    return context


def _bound(seconds: float, deadline: float | None) -> float:
    if deadline is None:
        return seconds
    return max(_LEAST_SECONDS, min(seconds, deadline - time.monotonic()))


def _pause(attempt: int) -> float:
    return _jitter.uniform(0.5, 1.0) * min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**attempt)


def _over(deadline: float | None, wait: float) -> bool:
    return deadline is not None and time.monotonic() + wait >= deadline


def _asked_to_wait(headers: Mapping[str, str]) -> float:
    text = headers.get("Retry-After", "")
    return min(float(text), _LONGEST_PAUSE) if text.isascii() and text.isdigit() else 0.0


def json_object(
    response: httpx.Response, sandbox: str, action: str, variable: str = "KOYEB_API_HOST"
) -> Json:
    """Give what an answer that says all is well holds.

    Args:
        response: The answer.
        sandbox: What errors call the sandbox.
        action: What was asked for.
        variable: Which one says who is asked.

    Raises:
        CloudError: It is no JSON object.
    """
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise CloudError(
            errors.nonsense(sandbox, action, "it is no JSON object", variable),
            may_have_happened=True,
        )
    return body
