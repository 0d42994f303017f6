"""BND-12: git and gh work inside without the credential being there."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from conformance.marks import needs, verifies
from conformance.probes import searching
from conformance.probes.github import World, granted, shown
from conformance.probes.traces import found_in
from conformance.requirements import BND_12
from conformance.verdicts import NotRun, Violation
from sandboxes.contract import GitHubBinding

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box
    from sandboxes.contract import SandboxExecutionResult

_SECONDS = 60.0
_SET_UP = (
    "have git and gh inside trust the way by which the credential is added, and gh know that "
    "there is one"
)
_OUTSIDE = "add the credential outside of the sandbox, and put none of it inside"

_PUSH = """
cd {folder} && echo more > more.txt && git add more.txt &&
git -c user.name=A -c user.email=a@b.test commit -q -m More && git push -q origin HEAD:more
"""


def _has(box: Box, program: str) -> None:
    """Go on only where a program is inside.

    Raises:
        NotRun: It is not.
    """
    ran = box.execute(f"{program} --version && echo end=$((40 + 2))", timeout_seconds=_SECONDS)
    if "end=42" not in ran.stdout:
        raise NotRun(
            f"there is no {program} inside; put it there (apt-get install {program}, on this "
            "machine where the inside has its programs)"
        )


def _works(ran: SandboxExecutionResult, world: World, words: str, wanted: str) -> None:
    """Judge that a command did what it was for.

    Raises:
        Violation: It did not.
    """
    if ran.exit_code != 0 or wanted not in ran.stdout:
        said = (ran.stdout + ran.stderr).strip()[-300:]
        raise Violation(
            f"with GitHubBinding, {words} ended with {ran.exit_code} and said {said!r}",
            saw=shown(world.seen()),
            remedy=_SET_UP,
        )


@verifies(BND_12)
@needs(opens=True, processes=True, binding=GitHubBinding)
def test_git_clones_and_pushes_what_is_granted(inside: Inside, lab: Lab) -> None:
    """`git clone https://github.com/owner/repository` works as it stands, and so does a push."""
    world = World.made(lab)
    url = f"https://github.com/{world.listed.full_name}"
    with granted(inside, lab, world) as box:
        _has(box, "git")
        clone = f"git clone -q {url} cloned && cat cloned/README.md"
        ran = box.execute(clone, timeout_seconds=_SECONDS)
        _works(ran, world, f"git clone {url}", world.listed.marker)
        push = _PUSH.format(folder="cloned") + "\necho end=$((40 + $?))"
        _works(box.execute(push, timeout_seconds=_SECONDS), world, "git push", "end=40")
    pushed = [one for one in world.credentialed() if one.target.endswith("/git-receive-pack")]
    if not pushed:
        raise Violation(
            "git push ended well, and nothing was pushed with the user's credential",
            saw=shown(world.seen()),
            remedy=_SET_UP,
        )


_GH = {
    "gh repo view": "gh repo view {name}",
    "gh api": "gh api repos/{name}",
    "gh issue list": "gh issue list -R {name}",
    "gh repo clone": "gh repo clone {name} by-gh -- -q && cat by-gh/README.md",
}


@verifies(BND_12)
@needs(opens=True, processes=True, binding=GitHubBinding)
@pytest.mark.parametrize("words", list(_GH))
def test_gh_works_as_it_stands(inside: Inside, lab: Lab, words: str) -> None:
    """Gh shows, lists and clones a granted repository without having been logged in."""
    world = World.made(lab)
    command = _GH[words].format(name=shlex.quote(world.listed.full_name))
    with granted(inside, lab, world) as box:
        _has(box, "gh")
        ran = box.execute(command, timeout_seconds=_SECONDS)
    _works(ran, world, words, world.listed.marker)


@verifies(BND_12)
@needs(opens=True, processes=True, binding=GitHubBinding)
def test_the_token_is_nowhere_in_the_sandbox(inside: Inside, lab: Lab) -> None:
    """Environment, files and output inside hold no token, before and after git used it."""
    world = World.made(lab)
    url = f"https://github.com/{world.listed.full_name}"
    with granted(inside, lab, world) as box:
        found = searching.places(box, lab, world.token)
        _has(box, "git")
        talkative = f"GIT_CURL_VERBOSE=1 GIT_TRACE=1 git clone {url} cloned; cat cloned/.git/config"
        ran = box.execute(talkative, timeout_seconds=_SECONDS)
        found += searching.places(box, lab, world.token)
    if not world.credentialed():
        raise NotRun("no request of git's got the credential: see BND-10")
    if how := found_in([world.token], ran.stdout + ran.stderr):
        found.append(f"what git says of itself, written {how}")
    if found:
        raise Violation(
            f"with GitHubBinding, the token was found inside: {'; '.join(found[:4])}",
            remedy=_OUTSIDE,
        )
