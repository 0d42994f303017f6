"""Sessions: what a bootstrap hands out, and the egress proxy behind it."""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from conformance.lab.sandbox_proxy.as_the_user import MistralApiAuthorizer
from conformance.lab.sandbox_proxy.place import PROXY_HOST
from sandboxes.contract import HeaderBinding, Network
from sandboxes.egress import Denied, EgressProxy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.lab.sandbox_proxy.identities import Identity
    from sandboxes.egress import Authorizer

USER = "sandbox"
"""Before the session's credential in the proxy's URL."""

GITHUB_ENVIRONMENT = {
    # gh asks nothing without one; the proxy takes it out.
    "GH_TOKEN": "the-proxy-adds-it",
    "GH_NO_UPDATE_NOTIFIER": "1",
    "GH_PROMPT_DISABLED": "1",
    "GIT_TERMINAL_PROMPT": "0",
}
"""What git and gh need beside the proxy's own variables."""

# What a session's own clients have begun may go on for a moment.
_GRACE_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a bootstrap asks for.

    Args:
        repositories: for git and GitHub's API, or "all" that the user reaches; None where that
            is not asked for.
        mistral_api: whether requests to Mistral's API are to act as the user.
        secret_injection: whether the workspace's rules are to apply.
        seconds: how long what is handed out may live.
    """

    repositories: tuple[str, ...] | Literal["all"] | None = None
    mistral_api: bool = False
    secret_injection: bool = False
    seconds: float = 3600.0


@dataclass
class Session:
    """One that was handed out.

    Args:
        identity: whose it is.
        wanted: what it is for.
        seconds: how long it lives.
        path: where its egress proxy listens.
        credential: what its clients show the gate.
        api_key: what it has in the place of the user's key.
    """

    identity: Identity
    wanted: Wanted
    seconds: float
    path: Path
    name: str = field(default_factory=lambda: secrets.token_hex(8))
    credential: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    api_key: str = field(default_factory=lambda: f"sandbox-{secrets.token_urlsafe(24)}", repr=False)
    began: float = field(default_factory=time.monotonic)

    @property
    def is_over(self) -> bool:
        """Whether its time is up."""
        return time.monotonic() >= self.began + self.seconds

    def environment(self) -> dict[str, str]:
        """Give the variables for commands inside."""
        url = f"https://{USER}:{self.credential}@{PROXY_HOST}"
        names = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
        found = dict.fromkeys(names, url)
        found |= dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1")
        found["NODE_USE_ENV_PROXY"] = "1"
        if self.wanted.repositories is not None:
            found |= GITHUB_ENVIRONMENT
        if self.wanted.mistral_api:
            found["MISTRAL_API_KEY"] = self.api_key
            found["MISTRAL_API_HTTP_PROXY"] = url
        return found

    def proxy(self, bundle: Path) -> EgressProxy:
        """Make its egress proxy.

        Args:
            bundle: certificates to trust.

        Raises:
            RefusedConfiguration: a rule cannot be applied.
        """
        bindings, values = self._rules()
        return EgressProxy(
            Network.all(),
            listen=self.path,
            bindings=bindings,
            secrets=values,
            authorizers=self._authorizers(),
            ca_bundle=bundle,
        )

    def _rules(self) -> tuple[list[HeaderBinding], dict[str, str]]:
        rules = self.identity.rules if self.wanted.secret_injection else ()
        values = {f"rule {number}": rule.value for number, rule in enumerate(rules)}
        bindings = [
            HeaderBinding(
                host=rule.host,
                header=rule.header,
                secret_name=name,
                path_prefix=rule.path_prefix,
                prefix=rule.prefix,
                suffix=rule.suffix,
            )
            for name, rule in zip(values, rules, strict=True)
        ]
        return bindings, values

    def _authorizers(self) -> list[Authorizer]:
        found: list[Authorizer] = []
        if self.wanted.mistral_api:
            found.append(MistralApiAuthorizer(self.api_key, self.identity.credential))
        if self.wanted.repositories is not None:
            # Only here: it needs a package of its own.
            from sandboxes.egress.github import GitHubAuthorizer

            found.append(GitHubAuthorizer(self.wanted.repositories, self._github_token))
        return found

    async def _github_token(self) -> str:
        if not self.identity.github_token:
            raise Denied(403, "the user has no GitHub connector; connect one")
        return self.identity.github_token


class Sessions:
    """All that were handed out, each with an egress proxy while it lives.

    Args:
        folder: where their proxies listen.
        bundle: certificates to trust.
    """

    def __init__(self, folder: Path, bundle: Path) -> None:
        self._folder = folder
        self._bundle = bundle
        self._bundle_bytes = bundle.read_bytes()
        self._all: dict[str, Session] = {}
        self._serving: set[asyncio.Task[None]] = set()

    async def begin(
        self, identity: Identity, wanted: Wanted, seconds: float
    ) -> tuple[Session, bytes]:
        """Hand one out, and give it with the certificate of its authority."""
        path = self._folder / secrets.token_hex(8)
        session = Session(identity, wanted, seconds, path)
        proxy = session.proxy(self._bundle)
        ready = asyncio.Event()
        task = asyncio.ensure_future(self._serve(session, proxy, ready))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        waiting = asyncio.ensure_future(ready.wait())
        await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if task.done():
            task.result()
        # The rest is the bundle, which whoever trusts us has.
        return session, proxy.ca_pem.removesuffix(self._bundle_bytes)

    async def _serve(self, session: Session, proxy: EgressProxy, ready: asyncio.Event) -> None:
        async with proxy:
            self._all[session.credential] = session
            ready.set()
            try:
                await asyncio.sleep(session.seconds + _GRACE_SECONDS)
            finally:
                del self._all[session.credential]

    def bearing(self, credential: str) -> Session | None:
        """Give the session of a credential, unless its time is up."""
        session = self._all.get(credential)
        return None if session is None or session.is_over else session

    def end(self, identity: Identity) -> None:
        """Let the time of all of an identity's sessions be up."""
        for session in self._all.values():
            if session.identity is identity:
                session.seconds = 0.0

    def end_one(self, identity: Identity, name: str) -> bool:
        """Let the time of one session of an identity's be up; False where there is none."""
        for session in self._all.values():
            if session.identity is identity and session.name == name:
                session.seconds = 0.0
                return True
        return False

    def handed_out(self) -> Sequence[dict[str, Any]]:
        """Give a row for each that lives."""
        return [
            {"session": one.name, "identity": one.identity.name}
            for one in self._all.values()
            if not one.is_over
        ]

    async def close(self) -> None:
        """End them all."""
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
