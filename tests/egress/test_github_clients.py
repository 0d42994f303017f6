"""Real git and gh behind the proxy, at a GitHub with real repositories."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from conformance.lab.github.place import PUBLIC
from conformance.lab.github.service import GitHub
from sandboxes.contract import Network
from sandboxes.egress import EgressProxy
from sandboxes.egress.github import ENVIRONMENT, GitHubAuthorizer
from tests.egress.programs import run_program
from tests.egress.world import run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from conformance.lab.github.repositories import Repository

PUBLIC_ADDRESS = "9.9.9.9"


@dataclass
class Ran:
    code: int
    said: str


@dataclass
class Here:
    """A GitHub, a proxy before it, and a place to run programs at."""

    github: GitHub
    proxy: EgressProxy
    address: str
    folder: Path

    def repository(self, name: str) -> Repository:
        return self.github.known.make("Octo", name, private=True)

    async def run(self, *command: str, cwd: str = ".", **variables: str) -> Ran:
        """Run a program in the environment that the proxy gives, and no other."""
        ca_file = self.folder / "ca.pem"
        ca_file.write_bytes(self.proxy.ca_pem)
        environment = {
            **self.proxy.environ(self.address, str(ca_file)),
            **ENVIRONMENT,
            "HOME": str(self.folder),
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_NOSYSTEM": "1",
            **variables,
        }
        return Ran(*await run_program(*command, environment=environment, folder=self.folder / cwd))

    def seen(self, credential: str) -> list[str]:
        """What came with a credential, by method and target."""
        return [
            f"{row['method']} {row['host']}{row['target']}"
            for row in self.github.edge.requests
            if row["credential"] == credential
        ]


@contextlib.asynccontextmanager
async def here(*repos: str) -> AsyncIterator[Here]:
    """Start a GitHub with the repositories `Octo/Tools` and `Octo/hidden`, and a proxy."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*sorted(PUBLIC.names)).configure_cert(context)
    door = socket.create_server(("127.0.0.1", 0))
    port = door.getsockname()[1]

    async def resolve(_name: str, _port: int) -> Sequence[str]:
        return [PUBLIC_ADDRESS]

    async def dial(_address: str, _port: int) -> socket.socket:
        connection = socket.socket()
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
        return connection

    async def token() -> str:
        return service.known.user.value

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bundle = folder / "bundle.pem"
        authority.cert_pem.write_to_path(bundle)
        (folder / "github").mkdir()
        service = GitHub(folder / "github")
        control = socket.socket(socket.AF_UNIX)
        control.bind(str(folder / "control"))
        control.listen()
        serving = asyncio.ensure_future(service.serve(door, control, context))
        listener = socket.create_server(("127.0.0.1", 0))
        options: dict[str, Any] = {"resolve": resolve, "dial": dial, "ca_bundle": bundle}
        try:
            async with EgressProxy(
                Network.all(),
                listen=listener,
                authorizers=[GitHubAuthorizer(repos, token)],
                **options,
            ) as proxy:
                yield Here(service, proxy, f"127.0.0.1:{listener.getsockname()[1]}", folder)
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed; apt-get install {program}")


def test_git_clones_pushes_and_fetches_a_listed_repository() -> None:
    needs("git")

    async def use() -> None:
        async with here("octo/tools") as there:
            made = there.repository("Tools")
            there.repository("hidden")
            url = "https://github.com/octo/tools"
            cloned = await there.run("git", "clone", "-q", url, "mine")
            assert (cloned.code, cloned.said) == (0, "")
            assert (there.folder / "mine/README.md").read_text().strip() == made.marker
            big = os.urandom(3 << 20)
            (there.folder / "mine/big").write_bytes(big)
            name = ("-c", "user.name=A", "-c", "user.email=a@b.test")
            for words in (("add", "big"), (*name, "commit", "-qm", "Add"), ("push", "-q")):
                done = await there.run("git", *words, cwd="mine")
                assert done.code == 0, done.said
            again = await there.run("git", "clone", "-q", f"{url}.git", "again")
            assert again.code == 0, again.said
            assert (there.folder / "again/big").read_bytes() == big
            assert there.seen("unknown") == there.seen("") == []
            assert "git-receive-pack" in str(there.seen("user"))

    run(use())


@pytest.mark.parametrize("words", [("clone", "-q"), ("ls-remote",)], ids=" ".join)
def test_git_gets_nothing_of_another_repository(words: tuple[str, ...]) -> None:
    needs("git")

    async def use() -> None:
        async with here("octo/tools") as there:
            for name in ("Tools", "hidden", "toolsx"):
                there.repository(name)
            for path in ("octo/hidden", "octo/toolsx.git", "octo/tools/../hidden", "none/such"):
                done = await there.run("git", *words, f"https://github.com/{path}")
                assert done.code != 0
                assert "403" in done.said
            assert list(there.github.edge.requests) == []

    run(use())


def test_git_is_not_led_from_a_former_name_to_one_that_is_not_listed() -> None:
    needs("git")

    async def use() -> None:
        async with here("octo/old") as there:
            made = there.repository("old")
            there.github.known.rename(made.number, "new")
            done = await there.run("git", "clone", "-q", "https://github.com/octo/old")
            assert done.code != 0
            assert "403" in done.said
            assert [row["status"] for row in there.github.edge.requests] == [301]

    run(use())


GH = {
    "repo view": ("gh", "repo", "view", "octo/tools"),
    "repo view as JSON": ("gh", "repo", "view", "octo/tools", "--json", "description"),
    "issue list": ("gh", "issue", "list", "-R", "octo/tools"),
    "issue view": ("gh", "issue", "view", "1", "-R", "octo/tools"),
    "api": ("gh", "api", "repos/octo/tools"),
    "api by number": ("gh", "api", "repositories/700000"),
    "api of GraphQL": (
        *("gh", "api", "graphql", "-f", "n=tools", "-f"),
        'query=query($n: String!) { repository(owner: "octo", name: $n) { description } }',
    ),
}


@pytest.mark.parametrize("command", GH.values(), ids=GH)
def test_gh_shows_a_listed_repository(command: tuple[str, ...]) -> None:
    needs("gh")

    async def use() -> None:
        async with here("octo/tools") as there:
            made = there.repository("Tools")
            done = await there.run(*command)
            assert done.code == 0, done.said
            assert made.marker in done.said
            assert there.seen("unknown") == there.seen("") == []

    run(use())


def test_gh_lists_and_clones() -> None:
    needs("gh")

    async def use() -> None:
        async with here("octo/tools") as there:
            made = there.repository("Tools")
            listed = await there.run("gh", "pr", "list", "-R", "octo/tools")
            assert listed.code == 0, listed.said
            cloned = await there.run("gh", "repo", "clone", "octo/tools", "mine", "--", "-q")
            assert cloned.code == 0, cloned.said
            assert (there.folder / "mine/README.md").read_text().strip() == made.marker
            assert there.seen("unknown") == there.seen("") == []

    run(use())


REFUSED = {
    name: tuple(word.replace("tools", "hidden").replace("700000", "700001") for word in command)
    for name, command in GH.items()
} | {
    "repo list": ("gh", "repo", "list"),
    "search": ("gh", "search", "repos", "x"),
    "fork": ("gh", "api", "-X", "POST", "repos/octo/tools/forks"),
    "a mutation": ("gh", "issue", "create", "-R", "octo/tools", "-t", "x", "-b", "y"),
}


@pytest.mark.parametrize("command", REFUSED.values(), ids=REFUSED)
def test_gh_shows_why_it_gets_no_other(command: tuple[str, ...]) -> None:
    needs("gh")

    async def use() -> None:
        async with here("octo/tools") as there:
            there.repository("Tools")
            hidden = there.repository("hidden")
            done = await there.run(*command)
            assert done.code != 0
            assert "GitHubBinding" in done.said
            reached = {name for row in there.github.edge.requests for name in row["meant"]}
            assert reached <= {"octo/tools"}
            assert hidden.marker not in done.said

    run(use())
