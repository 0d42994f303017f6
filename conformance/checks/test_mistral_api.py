"""BND-14: Mistral's API as the session's user, with a key that only the proxy takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.marks import needs, verifies
from conformance.probes import values
from conformance.probes.acting import (
    KEY,
    PROXY,
    acting,
    ask_api,
    asked,
    new_path,
    sandbox_proxy,
    variable,
)
from conformance.requirements import BND_14
from conformance.verdicts import NotRun, Violation
from sandboxes.contract import MistralApiBinding

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.probes.inside import Inside
    from conformance.subject.targets import Target

_BINDINGS = (MistralApiBinding(),)
_REPLACE = "replace the sandbox's own key at api.mistral.ai by the user's, outside of the sandbox"


@verifies(BND_14)
@needs(opens=True, binding=MistralApiBinding)
def test_requests_through_the_proxy_act_as_the_user(inside: Inside, lab: Lab) -> None:
    """A client that sends MISTRAL_API_KEY through MISTRAL_API_HTTP_PROXY acts as the user."""
    user, path = sandbox_proxy(lab).user(), new_path()
    with acting(inside, user, _BINDINGS) as box:
        key, url = variable(box, KEY), variable(box, PROXY)
        if not key or "://" not in url:
            raise Violation(
                f"a command has {len(key)} characters in {KEY} and {bool(url)} in {PROXY}",
                remedy="give commands a key of their own, and the URL of the proxy",
            )
        ask_api(inside, box, key, path, proxy=f"${PROXY}")
    came = [row["user"] for row in asked(lab, path)]
    if came != [user.name]:
        raise Violation(
            f"a command sent its key through {PROXY}, and {len(came)} requests came, "
            f"{came.count(user.name)} of them as the session's user",
            remedy=_REPLACE,
        )


@verifies(BND_14)
@needs(opens=True, binding=MistralApiBinding)
def test_the_key_is_worth_nothing_without_the_proxy(inside: Inside, lab: Lab) -> None:
    """Sent past the proxy, or through the proxy of another session, the key is nobody's."""
    proxy, paths = sandbox_proxy(lab), [new_path() for _ in range(3)]
    user, other = proxy.user(), proxy.user()
    with acting(inside, user, _BINDINGS) as box, acting(inside, other, _BINDINGS) as their_box:
        key = variable(box, KEY)
        ask_api(inside, box, key, paths[0])
        ask_api(inside, their_box, key, paths[1], proxy=f"${PROXY}")
        ask_api(inside, box, key, paths[2], proxy=f"${PROXY}")
    if [row["user"] for row in asked(lab, paths[2])] != [user.name]:
        raise NotRun("a request through the proxy did not act as the user either")
    for path, way in zip(
        paths, ("past the proxy", "through another session's proxy"), strict=False
    ):
        for row in asked(lab, path):
            if row["user"]:
                raise Violation(
                    f"a command sent its key {way}, and acted as a user",
                    remedy="give the sandbox a key that its own session's proxy alone accepts",
                )


@verifies(BND_14)
@needs(opens=True, binding=MistralApiBinding)
def test_another_key_is_not_replaced(inside: Inside, lab: Lab) -> None:
    """A request that bears another key, or none of the sandbox's, does not act as the user."""
    user, path, control = sandbox_proxy(lab).user(), new_path(), new_path()
    with acting(inside, user, _BINDINGS) as box:
        ask_api(inside, box, "somebody-elses", path, proxy=f"${PROXY}")
        ask_api(inside, box, variable(box, KEY), control, proxy=f"${PROXY}")
    if [row["user"] for row in asked(lab, control)] != [user.name]:
        raise NotRun("a request with the sandbox's own key did not act as the user either")
    if any(row["user"] for row in asked(lab, path)):
        raise Violation(
            "a command sent another key through the proxy, and acted as the session's user",
            remedy=_REPLACE,
        )


@verifies(BND_14)
@needs(binding=MistralApiBinding)
@pytest.mark.parametrize("run_as", ["me", "", "AUTO", None])
def test_run_as_is_auto(target: Target, run_as: str | None) -> None:
    """`run_as` is "auto", and takes nothing else."""
    built = values.built(MistralApiBinding, run_as="auto")
    if built != MistralApiBinding() or values.refusal(MistralApiBinding, run_as=run_as) is None:
        raise Violation(
            f"{target.cls.__name__} is used with MistralApiBinding(run_as={run_as!r})",
            remedy='take "auto" alone, and have it as the default',
        )
