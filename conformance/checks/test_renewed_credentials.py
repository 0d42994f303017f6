"""BND-13, BND-16: credentials that are renewed, and the file that commands have them from."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from conformance.marks import needs, verifies
from conformance.probes.acting import (
    acting,
    ask_api,
    asked,
    new_path,
    sandbox_proxy,
    session_credential,
)
from conformance.probes.clouds import told_since, told_so_far
from conformance.probes.protected import files_with
from conformance.requirements import BND_13, BND_16
from conformance.verdicts import NotRun, Violation
from sandboxes.contract import GitHubBinding, MistralApiBinding

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.probes.inside import Inside

LIFE = 6
"""How long a credential lives; a command that has just begun needs a part of it."""

_LIVES, _PROMPT = 2.2, 0.3
_PAUSE_SECONDS = 0.3
_LOOKS = 3


@verifies(BND_13)
@needs(opens=True, binding=MistralApiBinding)
def test_a_credential_is_renewed_before_it_ends(inside: Inside, lab: Lab) -> None:
    """For longer than `ttl_seconds`, each command finds credentials that are accepted."""
    user, paths = sandbox_proxy(lab).user(), list[str]()
    with acting(inside, user, [MistralApiBinding(ttl_seconds=LIFE)]) as box:
        over = time.monotonic() + _LIVES * LIFE
        while (begun := time.monotonic()) < over:
            path = new_path()
            ask_api(inside, box, path)
            # A command that takes longer than that may outlive what it began with.
            if time.monotonic() - begun < _PROMPT * LIFE:
                paths.append(path)
            time.sleep(_PAUSE_SECONDS)
    came = [[row["user"] for row in asked(lab, path)] == [user.name] for path in paths]
    if not any(came):
        raise NotRun("no request acted as the user: see BND-14")
    if not all(came):
        raise Violation(
            f"with ttl_seconds={LIFE}, {came.count(False)} of {len(came)} commands had "
            "credentials that were not accepted",
            remedy="renew credentials before they end, before a command that would outlive them",
        )


@verifies(BND_13)
@needs(opens=True, cloud=True, binding=GitHubBinding)
@pytest.mark.parametrize("seconds", [7, 90, 3600])
def test_a_lifetime_is_asked_for_as_it_is_written(inside: Inside, lab: Lab, seconds: int) -> None:
    """`ttl_seconds` of a binding is what is asked for, and no longer time."""
    user = sandbox_proxy(lab).user()
    bindings = [GitHubBinding(repos=(), ttl_seconds=seconds)]
    with acting(inside, user, bindings) as box:
        box.execute("true")
    told = [one.get("ttl_seconds") for one in _integrations(user.bootstraps())]
    if not told or any(one != seconds for one in told):
        raise Violation(
            f"with ttl_seconds={seconds}, a credential for {told or 'no time'} was asked for",
            remedy="hand ttl_seconds on",
        )


def _integrations(
    bootstraps: list[dict[str, dict[str, list[dict[str, object]]]]],
) -> list[dict[str, object]]:
    return [one for row in bootstraps for one in row["body"].get("integrations", [])]


@verifies(BND_16)
@needs(opens=True, binding=MistralApiBinding)
def test_the_environment_is_a_protected_file(inside: Inside, lab: Lab) -> None:
    """The session's credential is in a file inside that other users cannot read, and no other."""
    user, before = sandbox_proxy(lab).user(), told_so_far(inside.target, lab)
    with acting(inside, user, [MistralApiBinding()]) as box:
        credential = session_credential(box)
        found = files_with(box, lab, credential)
    if not found:
        raise Violation(
            "no file inside holds the credential that commands have in their environment",
            remedy="keep the proxy's environment in a file, and read it before each command",
        )
    for file in found:
        if file.mode & 0o077:
            raise Violation(
                f"the proxy's environment is in {file.path}, of mode {file.mode:04o}",
                remedy="write it with mode 0600",
            )
    if credential in told_since(inside.target, lab, before, "/v1/"):
        raise Violation(
            "the cloud was told the session's credential when the sandbox was made",
            remedy="install it inside once the sandbox runs",
        )


@verifies(BND_16)
@needs(opens=True, binding=MistralApiBinding)
def test_the_environment_is_read_before_each_command(inside: Inside, lab: Lab) -> None:
    """Once it was renewed, the next command has the new one, and so has the file."""
    user, path, before = sandbox_proxy(lab).user(), new_path(), new_path()
    with acting(inside, user, [MistralApiBinding(ttl_seconds=LIFE)]) as box:
        ask_api(inside, box, before)
        first = latest = session_credential(box)
        over = time.monotonic() + _LIVES * LIFE
        while latest == first and time.monotonic() < over:
            time.sleep(_PAUSE_SECONDS)
            latest = session_credential(box)
        ask_api(inside, box, path)
        # It may be renewed while it is looked for.
        looks = (files_with(box, lab, session_credential(box)) for _ in range(_LOOKS))
        kept = next(filter(None, looks), [])
    if [row["user"] for row in asked(lab, before)] != [user.name]:
        raise NotRun("no request acted as the user before a renewal: see BND-14")
    if latest == first or not kept:
        raise Violation(
            f"with ttl_seconds={LIFE}, commands had the same environment after {_LIVES:g} times "
            "that long"
            if latest == first
            else "the file inside does not hold what commands have",
            remedy="write the new environment into the file, and read it before each command",
        )
    if [row["user"] for row in asked(lab, path)] != [user.name]:
        raise Violation(
            "what a command read after a renewal was not accepted",
            remedy="install all of what was renewed, certificates too",
        )
