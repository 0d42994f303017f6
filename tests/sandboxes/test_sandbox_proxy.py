"""What a session has of Sandbox Proxy: asked for, kept inside, renewed, and given up in time."""

from __future__ import annotations

import asyncio
import json
import os
import time
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import respx

from sandboxes import (
    GitHubBinding,
    MistralApiBinding,
    OpenRequest,
    SandboxError,
    SandboxStartError,
    WorkspaceHeaderBindings,
)
from sandboxes.inside import cloud_bundle, cloud_environment, cloud_install
from sandboxes.mistral import transport
from sandboxes.mistral.errors import CloudError
from sandboxes.mistral.proxy_environment import ProxyEnvironment
from sandboxes.mistral.sandbox_proxy import SandboxProxy, Setup, credential_of
from sandboxes.mistral.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sandboxes.mistral.definition import Json

KEY = "key-canary-77aa"
BOOTSTRAP = "https://api.mistral.ai/v1/sandbox-proxy/bootstrap"
PEM = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
ANSWER: dict[str, Any] = {
    "environment": {"HTTPS_PROXY": "https://sandbox:credential-canary@proxy.example"},
    "certificate": PEM,
    "expires_in_seconds": 60,
    "session": "s",
}


@pytest.fixture
def router(monkeypatch: pytest.MonkeyPatch) -> Iterator[respx.MockRouter]:
    monkeypatch.setattr(transport, "_FIRST_PAUSE", 0.01)
    monkeypatch.delenv("MISTRAL_API_URL", raising=False)
    with respx.mock as router:
        yield router


def asked(*bindings: Any, seconds: float = 30) -> Setup:
    async def ask() -> Setup:
        async with Transport("Box", (KEY,), peer="Sandbox Proxy") as calls:
            proxy = SandboxProxy(calls, KEY, bindings)
            return await proxy.bootstrap(seconds=5, deadline=time.monotonic() + seconds)

    return asyncio.run(ask())


def test_each_binding_is_asked_for_as_it_is_written(router: respx.MockRouter) -> None:
    route = router.post(BOOTSTRAP).respond(json=ANSWER)
    setup = asked(
        GitHubBinding(repos=("acme/site",), ttl_seconds=90),
        MistralApiBinding(ttl_seconds=70),
        WorkspaceHeaderBindings(),
    )
    request = route.calls.last.request
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert json.loads(request.content)["integrations"] == [
        {"type": "github", "repos": ["acme/site"], "ttl_seconds": 90, "host": "github.com"},
        {"type": "mistral_api", "ttl_seconds": 70, "run_as": "auto"},
        {"type": "secret_injection"},
    ]
    assert dict(setup.environment) == ANSWER["environment"]
    assert 50 < setup.left <= 60
    assert "credential-canary" not in repr(setup)


def test_every_repository_is_asked_for_by_a_word(router: respx.MockRouter) -> None:
    route = router.post(BOOTSTRAP).respond(json=ANSWER)
    asked(GitHubBinding(repos="all"))
    assert json.loads(route.calls.last.request.content)["integrations"][0]["repos"] == "all"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"environment": {}}, "no environment"),
        ({"environment": {"A B": "x"}}, "'A B'"),
        ({"environment": {"A": 1}}, "'A'"),
        ({"environment": {"A": "x\0"}}, "'A'"),
        ({"certificate": "rubbish"}, "certificate"),
        ({"certificate": None}, "certificate"),
        ({"expires_in_seconds": 0}, "expires_in_seconds"),
        ({"expires_in_seconds": True}, "expires_in_seconds"),
        ({"expires_in_seconds": "60"}, "expires_in_seconds"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused(
    router: respx.MockRouter, changes: dict[str, Any], words: str
) -> None:
    router.post(BOOTSTRAP).respond(json={**ANSWER, **changes})
    with pytest.raises(CloudError, match="MISTRAL_API_URL") as caught:
        asked(MistralApiBinding())
    assert words in str(caught.value)
    assert "canary" not in str(caught.value)


def test_what_fails_for_a_moment_is_asked_again(router: respx.MockRouter) -> None:
    lost = httpx.ReadError("cut")
    answers: list[httpx.Response | Exception] = [
        lost,
        httpx.Response(503),
        httpx.Response(200, json=ANSWER),
    ]
    route = router.post(BOOTSTRAP).mock(side_effect=answers)
    assert asked(MistralApiBinding()).seconds == 60
    assert route.call_count == 3


SESSIONS = "https://api.mistral.ai/v1/sandbox-proxy/sessions"


def revoked(setup: Setup) -> None:
    async def revoke() -> None:
        async with Transport("Box", (KEY,), peer="Sandbox Proxy") as calls:
            proxy = SandboxProxy(calls, KEY, ())
            await proxy.revoke(setup, deadline=time.monotonic() + 1)

    asyncio.run(revoke())


@pytest.mark.parametrize("status", [204, 404])
def test_what_was_handed_out_is_revoked_by_its_name(router: respx.MockRouter, status: int) -> None:
    route = router.delete(f"{SESSIONS}/a%2Fb").respond(status)
    revoked(replace(setup_of(60), session="a/b"))
    assert route.calls.last.request.headers["Authorization"] == f"Bearer {KEY}"
    revoked(setup_of(60))  # it has no name
    revoked(replace(setup_of(60, gone=61), session="over"))
    assert route.call_count == 1


def test_what_is_not_revoked_is_told(router: respx.MockRouter) -> None:
    router.delete(f"{SESSIONS}/s").respond(403, json={"message": f"not with {KEY}"})
    with pytest.raises(
        CloudError, match=r"did not revoke .* \(HTTP 403: not with \*\*\*\)"
    ) as told:
        revoked(replace(setup_of(60), session="s"))
    assert "for 60 s more" in str(told.value)


def test_another_place_is_asked_and_never_in_clear(
    router: respx.MockRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MISTRAL_API_URL", "https://api.example/")
    route = router.post("https://api.example/v1/sandbox-proxy/bootstrap").respond(json=ANSWER)
    asked(MistralApiBinding())
    assert route.called
    monkeypatch.setenv("MISTRAL_API_URL", "http://api.example")
    with pytest.raises(CloudError, match="use https"):
        asked(MistralApiBinding())


def test_the_caller_comes_before_the_user_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MISTRAL_API_KEY", KEY)
    assert credential_of("Box", None) == KEY
    assert credential_of("Box", "caller") == "caller"
    for unusable in ("", "two words", "a\nb", "é"):
        with pytest.raises(SandboxStartError, match="identity of a session"):
            credential_of("Box", unusable)
    monkeypatch.setenv("MISTRAL_API_KEY", " ")
    with pytest.raises(SandboxStartError, match="MISTRAL_API_KEY is not set"):
        credential_of("Box", None)
    assert "caller" not in repr(OpenRequest(session_id="s", identity="caller"))


class Proxy:
    """Hands out setups of a life, or raises."""

    def __init__(self, *lives: float | Exception) -> None:
        self.lives = list(lives)
        self.asked = 0
        self.revoked: list[str] = []

    async def bootstrap(self, *, seconds: float, deadline: float) -> Setup:
        self.asked += 1
        await asyncio.sleep(0.01)
        life = self.lives.pop(0)
        if isinstance(life, Exception):
            raise life
        return setup_of(life, f"credential-{self.asked}")

    async def revoke(self, setup: Setup, *, deadline: float) -> None:
        self.revoked.append(setup.environment["CREDENTIAL"])


def setup_of(life: float, credential: str = "first", *, gone: float = 0) -> Setup:
    return Setup(
        environment={"CREDENTIAL": credential},
        certificate=PEM,
        began=time.monotonic() - gone,
        seconds=life,
    )


class Programs:
    """An inside that remembers what was installed."""

    def __init__(self) -> None:
        self.installed: list[Json] = []
        self.removed: list[Json] = []
        self.delay = 0.0

    async def ask(self, program: str, request: Json, **_: Any) -> Json:
        assert program == "install"
        await asyncio.sleep(self.delay)
        if "remove" in request:
            self.removed.append(request)
            return {"fact": ""}
        self.installed.append(request)
        digest = request["environment"]["CREDENTIAL"]
        return {"fact": "", "folder": "/f", "file": "/f/e", "digest": digest}


async def kept(setup: Setup, *lives: float | Exception) -> tuple[ProxyEnvironment, Proxy, Programs]:
    proxy: Any = Proxy(*lives)
    programs: Any = Programs()
    environment = ProxyEnvironment("Box", proxy, setup, b"")
    await environment.begin(programs, "i")
    return environment, proxy, programs


@pytest.mark.parametrize(
    ("life", "gone", "renewed"),
    [(100, 79, False), (100, 81, True), (10, 4, False), (10, 6, True), (4, 1, False), (4, 3, True)],
)
def test_it_is_renewed_when_a_fifth_or_some_seconds_are_left(
    life: float, gone: float, renewed: bool
) -> None:
    async def use() -> None:
        environment, proxy, _ = await kept(setup_of(life, gone=gone), 100)
        place = await environment.ready()
        assert (proxy.asked == 1) is renewed
        assert place["digest"] == ("credential-1" if renewed else "first")

    asyncio.run(use())


def test_commands_at_once_renew_it_once() -> None:
    async def use() -> None:
        environment, proxy, _ = await kept(setup_of(1, gone=1), 100)
        places = await asyncio.gather(*(environment.ready() for _ in range(5)))
        assert proxy.asked == 1
        assert {place["digest"] for place in places} == {"credential-1"}

    asyncio.run(use())


def test_a_renewal_that_fails_is_the_end_of_the_session() -> None:
    async def use() -> None:
        environment, proxy, _ = await kept(setup_of(1, gone=1), CloudError("no; why"), 100)
        for _ in range(2):
            with pytest.raises(SandboxError, match=r"could not be renewed.*\(no; why\)"):
                await environment.ready()
        with pytest.raises(SandboxError, match="could not be renewed"):
            environment.check()
        assert proxy.asked == 1

    asyncio.run(use())


def test_a_renewal_that_is_cut_short_leaves_what_was_there() -> None:
    async def use() -> None:
        environment, proxy, programs = await kept(setup_of(1, gone=1), 100, 100)
        programs.delay = 60
        renewing = asyncio.ensure_future(environment.ready())
        await asyncio.sleep(0.05)
        renewing.cancel()
        await asyncio.wait({renewing})
        programs.delay = 0
        assert (await environment.ready())["digest"] == "credential-2"
        assert proxy.asked == 2

    asyncio.run(use())


def test_what_was_taken_away_is_put_back_unless_it_was_renewed_meanwhile() -> None:
    async def use() -> None:
        environment, _, programs = await kept(setup_of(100))
        place = await environment.ready()
        await environment.restore(place)
        await environment.restore({**place, "digest": "an earlier one"})
        assert [one["environment"]["CREDENTIAL"] for one in programs.installed] == ["first"] * 2

    asyncio.run(use())


def test_all_that_was_handed_out_is_revoked() -> None:
    async def use() -> list[str]:
        environment, proxy, _ = await kept(setup_of(1, gone=0.9), 60)
        await environment.ready()
        await environment.revoke()
        return proxy.revoked

    assert asyncio.run(use()) == ["first", "credential-1"]


def test_it_is_taken_away_from_a_sandbox_that_stays() -> None:
    async def use() -> list[Json]:
        environment, _, programs = await kept(setup_of(100))
        await environment.remove()
        return programs.removed

    assert asyncio.run(use()) == [{"remove": "/f"}]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is installed here, into a folder of the test's own."""
    monkeypatch.setattr(cloud_bundle, "bundle", lambda _: "/ca.pem")
    monkeypatch.setattr(cloud_install, "_HOMES", ("/dev/null/none", str(tmp_path)))
    return cloud_install.install(
        {
            "certificates": zlib.compress(b""),
            "environment": {"A": "b"},
            "bundle_variables": ["SSL_CERT_FILE"],
            "folder": "",
        }
    )


def test_it_is_a_file_that_nobody_else_reads(installed: dict[str, Any]) -> None:
    assert os.stat(installed["file"]).st_mode & 0o777 == 0o600
    assert os.stat(installed["folder"]).st_mode & 0o777 == 0o700
    assert cloud_environment.variables(installed) == {"A": "b", "SSL_CERT_FILE": "/ca.pem"}


@pytest.mark.parametrize("deed", ["removed", "changed", "opened up", "a link", "a pipe"])
def test_a_file_that_is_not_as_it_was_installed_counts_for_nothing(
    installed: dict[str, Any], deed: str
) -> None:
    file = installed["file"]
    if deed == "opened up":
        os.chmod(file, 0o644)
    elif deed == "changed":
        with open(file, "a", encoding="ascii") as more:
            more.write(" ")
    elif deed == "a link":
        os.rename(file, f"{file}2")
        os.symlink(f"{file}2", file)
    else:
        os.unlink(file)
        if deed == "a pipe":
            os.mkfifo(file, 0o600)
    assert cloud_environment.variables(installed) is None


def test_it_is_installed_again_into_the_same_folder(
    installed: dict[str, Any], tmp_path: Path
) -> None:
    assert cloud_install.protected_folder(installed["folder"]) == installed["folder"]
    os.rename(installed["folder"], tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", installed["folder"])
    other = cloud_install.protected_folder(installed["folder"])
    assert other != installed["folder"]
