"""Requests to GitHub from inside a sandbox with a `GitHubBinding`, and what of them it saw."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.lab.addresses import GITHUB_ADDRESS
from conformance.lab.github.place import CREDENTIALED, PUBLIC
from conformance.lab.sites import Site
from conformance.probes.binding import Ask, mode_of, send, senders
from conformance.probes.choices import network
from conformance.probes.inside import needs_of_lab
from conformance.strategies.github_requests import Row
from conformance.verdicts import NotRun, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.lab.client import Lab
    from conformance.lab.github.client import GitHubClient, Repository, Seen
    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box
    from conformance.subject.targets import Target

TOKEN_VARIABLE = "GITHUB_TOKEN"  # noqa: S105 - the name of a variable
"""Where a sandbox that reaches GitHub by itself finds the user's credential."""

_MARK = "x-check"
# A refusal ends a connection, and a command has a limit.
_AT_ONCE = 40
_API_KEY = "MISTRAL_API_KEY"


@dataclass(frozen=True)
class World:
    """What one check has at the lab's GitHub: repositories that nobody else asks for.

    Attributes:
        lab: The laboratory.
        github: Its GitHub.
        mark: What its requests are told from others by.
        owner: Of its repositories.
        listed: A repository that is to be listed.
        hidden: Another of the same owner, which is not.
        token: The user's credential.
    """

    lab: Lab
    github: GitHubClient
    mark: str
    owner: str
    listed: Repository
    hidden: Repository
    token: str = field(repr=False)

    @classmethod
    def made(cls, lab: Lab, name: str = "Tools.lib") -> World:
        """Make the repositories.

        Args:
            lab: The laboratory.
            name: Of the one that is to be listed.

        Raises:
            NotRun: This lab has no names.
        """
        needs_of_lab(lab, "names")
        github = lab.github()
        mark = secrets.token_hex(6)
        owner = f"Acme-{mark}"
        return cls(
            lab,
            github,
            mark,
            owner,
            github.repository(owner, name),
            github.repository(owner, "hidden"),
            github.token(),
        )

    def seen(self) -> list[Seen]:
        """What came to GitHub of this check."""
        self.lab.judged += 1
        return self.github.seen(self.mark)

    def credentialed(self) -> list[Seen]:
        """What came with a credential of GitHub's, whoever's."""
        return [one for one in self.seen() if one.credential not in ("", "unknown")]


@contextmanager
def as_user(target: Target, lab: Lab, world: World) -> Iterator[None]:
    """Have the process be of a user whose GitHub access is the whole of the lab's GitHub."""
    variables = {TOKEN_VARIABLE: world.token}
    if target.cls.needs_cloud:
        user = lab.sandbox_proxy().user(repositories=None, github_token=world.token)
        # The proxy has the credential, and the worker must have none.
        variables = {_API_KEY: user.credential}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def granted(
    inside: Inside, lab: Lab, world: World, repos: Sequence[str] | str | None = None
) -> Iterator[Box]:
    """Open a sandbox with access to some repositories, the listed one by default."""
    target = inside.target
    wanted: Any = (world.listed.full_name,) if repos is None else repos
    options: dict[str, Any] = {
        "network": network(target, mode_of(target), sorted(PUBLIC.names)),
        "header_bindings": (target.GitHubBinding(repos=wanted),),
    }
    with as_user(target, lab, world), inside.opened(**options) as box:
        yield box


def ask(inside: Inside, box: Box, world: World, rows: Sequence[Row]) -> None:
    """Let a client inside send requests, each with a credential of its own making."""
    sender = senders(inside)[0]
    for host in dict.fromkeys(row.host for row in rows):
        site = Site(host, GITHUB_ADDRESS, world.mark, "")
        asks = [
            Ask(row.target, _headers(world, row), method=row.method, body=row.body)
            for row in rows
            if row.host == host
        ]
        for first in range(0, len(asks), _AT_ONCE):
            send(box, sender, site, asks[first : first + _AT_ONCE])


def _headers(world: World, row: Row) -> tuple[tuple[str, str], ...]:
    kind = (("Content-Type", "application/json"),) if row.body else ()
    return (("User-Agent", "check"), (_MARK, world.mark), *kind)


def arrives(world: World, rows: Sequence[Row], *, did: str) -> None:
    """Judge that each request came with the user's credential.

    Raises:
        Violation: One did not.
    """
    came = world.seen()
    for row in rows:
        here = [one for one in came if _place(one) == _place(row) and _alike(one, row)]
        if not any(one.credential == "user" for one in here):
            raise Violation(
                f"{did}, and {row} did not come with the user's credential",
                saw=shown(here),
                remedy="let requests to granted repositories through, and add the credential",
            )


def _alike(one: Seen, row: Row) -> bool:
    """Whether a request means a repository that is named in a row."""
    return any(name in row.target.lower() for name in one.meant)


def _place(one: Row | Seen) -> tuple[str, str, str]:
    """What two spellings of a request have in common."""
    return one.host, one.method, one.target.partition("?")[0].rpartition("/")[2].lower()


def stays_within(world: World, repos: Sequence[str], *, did: str, remedy: str) -> None:
    """Judge that the credential went along with nothing but requests to some repositories.

    Raises:
        Violation: It did.
    """
    allowed = {name.lower() for name in repos}
    for one in world.credentialed():
        if one.host not in CREDENTIALED or not allowed.issuperset(one.meant):
            raise Violation(f"{did}, and a request got the credential", saw=str(one), remedy=remedy)


def proven(inside: Inside, box: Box, world: World) -> None:
    """Make sure that this very sandbox adds the credential where it belongs.

    Raises:
        NotRun: It does not, so that its absence elsewhere would show nothing.
    """
    ask(inside, box, world, [Row("api.github.com", "GET", f"/repos/{world.listed.full_name}")])
    if not any(one.credential == "user" for one in world.seen()):
        raise NotRun("no request to a listed repository got the credential: see BND-10")


def shown(seen: Sequence[Seen]) -> str:
    """Say in one line what GitHub saw."""
    return ", ".join(map(str, seen[:3])) or "nothing"


def keeps_to_listed(
    inside: Inside, lab: Lab, world: World, rows: Sequence[Row], *, asked: str, remedy: str
) -> None:
    """Judge that none of some requests takes the credential beyond the listed repository.

    Args:
        inside: The sandboxes.
        lab: The laboratory.
        world: What there is at GitHub.
        rows: The requests.
        asked: What they ask for, in words.
        remedy: What is to be mended.

    Raises:
        Violation: One does.
    """
    with granted(inside, lab, world) as box:
        proven(inside, box, world)
        ask(inside, box, world, rows)
    listed = world.listed.full_name
    did = f"with repos=({listed!r},), a command asked for {asked}"
    stays_within(world, [listed], did=did, remedy=remedy)
