"""BND-09, BND-10: which repositories the credential for GitHub goes to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given

from conformance.marks import needs, verifies
from conformance.probes import values
from conformance.probes.github import (
    World,
    arrives,
    ask,
    granted,
    keeps_to_listed,
    proven,
    stays_within,
)
from conformance.requirements import BND_09, BND_10
from conformance.strategies import github_bindings, github_requests
from conformance.strategies.costly import few_examples
from conformance.strategies.each import each
from conformance.verdicts import Violation
from sandboxes.contract import GitHubBinding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.lab.client import Lab
    from conformance.probes.inside import Inside
    from conformance.strategies.github_requests import Row
    from conformance.subject.targets import Target

_CHECKED = "read owner and name of each request, and add the credential for listed ones alone"


@verifies(BND_09)
@needs(binding=GitHubBinding)
@given(fields=github_bindings.right)
@each("fields", github_bindings.RIGHT)
def test_a_right_github_binding_is_kept_as_it_is(target: Target, fields: dict[str, Any]) -> None:
    """Names, an empty tuple and `"all"` are taken and kept, with an hour and github.com."""
    built = values.built(target.GitHubBinding, **fields)
    wanted = {"ttl_seconds": 3600, "host": "github.com", **fields}
    held = {name: getattr(built, name, None) for name in wanted}
    if held != wanted:
        raise Violation(
            f"GitHubBinding(**{fields!r}) holds {held!r}",
            remedy="keep each part as it was given, with ttl_seconds=3600 and host='github.com'",
        )


@verifies(BND_09)
@needs(binding=GitHubBinding)
@given(wrong=github_bindings.wrong)
@each("wrong", github_bindings.WRONG)
def test_what_names_no_repository_of_github_is_refused(
    target: Target, wrong: dict[str, Any]
) -> None:
    """Entries that are no owner/repository, and hosts other than github.com, raise."""
    values.built(target.GitHubBinding, repos=("acme/api",))
    fields = {"repos": ("acme/api",), **wrong}
    if values.refusal(target.GitHubBinding, **fields) is None:
        raise Violation(
            f"GitHubBinding(**{fields!r}) raised nothing",
            remedy='take tuples of owner/repository names or "all", and the host github.com',
        )


@verifies(BND_09)
@needs(opens=True, binding=GitHubBinding)
def test_an_empty_tuple_grants_nothing(inside: Inside, lab: Lab) -> None:
    """With no repository listed, no request to one gets the credential."""
    world = World.made(lab)
    with granted(inside, lab, world, ()) as box:
        ask(inside, box, world, _all_ways(world.listed.owner, world.listed.name))
    stays_within(world, (), did="with repos=(), a command asked for a repository",
                 remedy="grant nothing where nothing is listed")  # fmt: skip
    with granted(inside, lab, world) as box:
        proven(inside, box, world)


@verifies(BND_09)
@needs(opens=True, binding=GitHubBinding)
def test_all_grants_what_the_user_reaches(inside: Inside, lab: Lab) -> None:
    """With `"all"`, requests to any repository of the user's get the credential."""
    world = World.made(lab)
    rows = [
        one
        for repository in (world.listed, world.hidden)
        for one in _main_ways(repository.full_name)
    ]
    with granted(inside, lab, world, "all") as box:
        ask(inside, box, world, rows)
    arrives(world, rows, did='with repos="all", a command asked for two repositories')


def _main_ways(name: str) -> list[Row]:
    rest = github_requests.rest(name)
    return [*github_requests.fetches(name), *github_requests.pushes(name), *rest]


def _all_ways(owner: str, name: str) -> list[Row]:
    full_name = f"{owner}/{name}"
    return [
        *_main_ways(full_name),
        *github_requests.queries(owner, name).values(),
        *github_requests.downloads(full_name),
        *github_requests.uploads(full_name),
    ]


@verifies(BND_10)
@needs(opens=True, binding=GitHubBinding)
def test_a_listed_repository_gets_the_credential(inside: Inside, lab: Lab) -> None:
    """Fetches, pushes and REST requests to a listed repository come with the credential."""
    world = World.made(lab)
    rows = _main_ways(world.listed.full_name)
    with granted(inside, lab, world) as box:
        ask(inside, box, world, rows)
    arrives(world, rows, did=f"with repos=({world.listed.full_name!r},), a command asked for it")


def _judge(inside: Inside, lab: Lab, world: World, rows: Sequence[Row]) -> None:
    keeps_to_listed(inside, lab, world, rows, asked="more", remedy=_CHECKED)


@verifies(BND_10)
@needs(opens=True, binding=GitHubBinding)
@few_examples()
@given(name=github_bindings.names)
@each("name", ["Tools.lib"])
def test_another_repository_gets_no_credential(inside: Inside, lab: Lab, name: str) -> None:
    """By git, REST, archives and uploads, no other repository is asked with the credential."""
    world = World.made(lab, name)
    ways = (
        *(github_requests.fetches, github_requests.pushes, github_requests.rest),
        *(github_requests.downloads, github_requests.uploads),
    )
    rows = [row for way in ways for row in way(world.hidden.full_name)]
    rows += [way(one)[0] for one in github_requests.alike(world.listed) for way in ways]
    _judge(inside, lab, world, rows)


@verifies(BND_10)
@needs(opens=True, binding=GitHubBinding)
def test_graphql_reaches_no_other_repository(inside: Inside, lab: Lab) -> None:
    """However a GraphQL request names another repository, it gets no credential."""
    world = World.made(lab)
    hidden = world.hidden
    rows = [
        *github_requests.queries(hidden.owner, hidden.name).values(),
        *github_requests.beyond(world.listed, hidden).values(),
    ]
    _judge(inside, lab, world, rows)


@verifies(BND_10)
@needs(opens=True, binding=GitHubBinding)
def test_the_account_is_none_of_the_repositories(inside: Inside, lab: Lab) -> None:
    """What lists, makes or copies repositories, or is of the account, gets no credential."""
    world = World.made(lab)
    rows = [
        *github_requests.ACCOUNT,
        *github_requests.of_owner(world.owner),
        *github_requests.copies(world.listed.full_name),
        *github_requests.comparisons(world.listed, world.hidden),
    ]
    _judge(inside, lab, world, rows)


@verifies(BND_10)
@needs(opens=True, binding=GitHubBinding)
def test_the_credential_stays_on_githubs_own_interfaces(inside: Inside, lab: Lab) -> None:
    """Hosts that archives and files come from get no credential."""
    world = World.made(lab)
    _judge(inside, lab, world, github_requests.elsewhere(world.listed.full_name))
