"""BND-14: Mistral's API as the session's user, with a key that only the proxy takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.marks import needs, verifies
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
    told = [one for row in user.bootstraps() for one in row["body"].get("integrations", [])]
    if any(one.get("run_as") != "auto" for one in told if one.get("type") == "mistral_api"):
        raise Violation(
            f"an identity was asked for by {told!r}",
            remedy='ask for run_as "auto", the user\'s own',
        )
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
