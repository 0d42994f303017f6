"""BND-11: what does not get round the check of repositories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given

from conformance.marks import needs, verifies
from conformance.probes.github import World, ask, granted, keeps_to_listed, proven, stays_within
from conformance.requirements import BND_11
from conformance.strategies import github_requests
from conformance.strategies.costly import few_examples
from conformance.strategies.each import each
from conformance.strategies.github_requests import Row
from sandboxes.contract import GitHubBinding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.lab.client import Lab
    from conformance.probes.inside import Inside

_READ = "read the path as the server will, refuse what can be read in two ways"
_NUMBERS = "let a number through only where it is a listed repository's"
_NAMES = "judge each request by its own name, the one that a redirect leads to as well"


def _judge(inside: Inside, lab: Lab, world: World, rows: Sequence[Row], remedy: str) -> None:
    asked = f"{world.hidden.full_name} in another way"
    keeps_to_listed(inside, lab, world, rows, asked=asked, remedy=remedy)


@verifies(BND_11)
@needs(opens=True, binding=GitHubBinding)
@few_examples()
@given(spellings=github_requests.ways)
@each("spellings", [github_requests.SPELLINGS])
def test_no_spelling_of_a_path_leads_to_another_repository(
    inside: Inside, lab: Lab, spellings: Sequence[str]
) -> None:
    """Dots, encodings and odd slashes behind a listed name take the credential nowhere else."""
    world = World.made(lab)
    rows = [
        row
        for spelling in spellings
        for row in github_requests.spelled(world.listed, world.hidden, spelling)
    ]
    _judge(inside, lab, world, rows, _READ)


@verifies(BND_11)
@needs(opens=True, binding=GitHubBinding)
def test_no_number_leads_to_another_repository(inside: Inside, lab: Lab) -> None:
    """The number of a repository that is not listed gets no credential."""
    world = World.made(lab)
    _judge(inside, lab, world, github_requests.by_number(world.hidden), _NUMBERS)


@verifies(BND_11)
@needs(opens=True, binding=GitHubBinding)
def test_another_ending_or_case_is_no_way_to_another_repository(inside: Inside, lab: Lab) -> None:
    """Letter case and `.git` do not make a name that is not listed a listed one."""
    world = World.made(lab)
    hidden, listed = world.hidden, world.listed
    twice = Row(
        github_requests.WEB,
        "GET",
        f"/{listed.full_name}.git.git/info/refs?service=git-upload-pack",
    )
    rows = [*github_requests.same(hidden.owner, hidden.name), twice]
    _judge(inside, lab, world, rows, _READ)


@verifies(BND_11)
@needs(opens=True, binding=GitHubBinding)
def test_a_former_name_leads_to_no_other_repository(inside: Inside, lab: Lab) -> None:
    """Where a listed name has become another one's former name, the new one is not granted."""
    world = World.made(lab)
    hidden, github = world.hidden, world.github
    former, name = hidden.full_name, "renamed"
    github.rename(hidden, name)
    full_name = f"{hidden.owner}/{name}"
    rows = [
        *github_requests.fetches(former),
        *github_requests.rest(former),
        *github_requests.queries(hidden.owner, hidden.name).values(),
        # Where GitHub sends them on to.
        *github_requests.fetches(full_name),
        *github_requests.rest(full_name),
        *github_requests.by_number(hidden),
    ]
    with granted(inside, lab, world, (world.listed.full_name, former)) as box:
        proven(inside, box, world)
        ask(inside, box, world, rows)
    did = f"with {former!r} listed, which is {full_name!r} by now, a command asked for it"
    stays_within(world, [world.listed.full_name, former], did=did, remedy=_NAMES)
