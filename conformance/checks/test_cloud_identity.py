"""LIF-13, LIF-20: whose token a cloud is asked with, and what its user may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.marks import alone, needs, verifies
from conformance.probes.clouds import TOKENS, judge_clear, only, started, watched
from conformance.requirements import LIF_13, LIF_20, reference
from conformance.subject.blame import shown
from conformance.verdicts import NotApplicable, NotRun, Violation

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.subject.targets import Target

_ROLE = "cloud_user"


def _is_documented(target: Target) -> None:
    if not reference.is_a(target.cls, "MistralSandbox"):
        raise NotApplicable(f"{target.cls.__name__} is no MistralSandbox")


@verifies(LIF_13)
@needs(opens=True, cloud=True)
@alone
@pytest.mark.parametrize("name", TOKENS)
def test_any_one_of_the_tokens_is_enough(target: Target, lab: Lab, name: str) -> None:
    """With a token in any one of the three variables alone, a session starts."""
    _is_documented(target)
    with watched(lab) as watch, only({name: watch.cloud.token()}):
        error = started(target)
    if error is not None:
        raise Violation(
            f"with a token in {name} alone it raised {shown(error)}",
            remedy=f"take the token from any of {', '.join(TOKENS)}",
        )


@verifies(LIF_13)
@needs(opens=True, cloud=True)
@alone
def test_without_a_token_a_session_fails_at_its_start(target: Target, lab: Lab) -> None:
    """Without a token in any of them no session starts, and nothing is made."""
    _is_documented(target)
    with watched(lab) as watch, only({}):
        error = started(target)
        made = [row for row in watch.asked("POST") if row["status"] in (200, 201)]
    judge_clear(error, "without a token")
    if error is None or made:
        raise Violation(
            "without a token in the environment "
            + ("a session started" if error is None else f"it sent POST {made[0]['target']}"),
            remedy="look for the token first, when a session starts",
        )


@verifies(LIF_20)
@needs(opens=True, cloud=True)
@alone
def test_a_user_without_the_role_is_told_its_name(target: Target, lab: Lab) -> None:
    """What a user without the cloud_user role hears names the role, whatever was forbidden."""
    _is_documented(target)
    forbidden = 0
    for where in ("POST /v1/apps", "POST /v1/services", "GET /v1/services"):
        with watched(lab) as watch:
            with watch.cloud.broken("status", where, status=403):
                error = started(target)
            if not any(row["status"] == 403 for row in watch.asked()):
                continue  # it asks for no such thing
        forbidden += 1
        if error is None or _ROLE not in str(error):
            raise Violation(
                f"when the cloud forbade {where} it said {str(error)!r}",
                remedy=f"say that the token's user needs the role {_ROLE}",
            )
    if not forbidden:
        raise NotRun("it asked the cloud for nothing that could be forbidden: see LIF-01")
