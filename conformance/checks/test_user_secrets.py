"""BND-06, BND-23: the secrets of the session's user stay outside, and out of what is written."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from conformance.lab.sandbox_proxy.identities import Rule
from conformance.marks import needs, verifies
from conformance.probes import searching
from conformance.probes.acting import (
    ask_api,
    asked,
    new_path,
    options_of,
    start_error,
)
from conformance.probes.acting import sandbox_proxy as proxy_of
from conformance.probes.binding import Ask, new_secret, requests, send, senders, values
from conformance.probes.clouds import told_since, told_so_far
from conformance.probes.logs import logged
from conformance.probes.told import told
from conformance.probes.traces import found_in
from conformance.requirements import BND_06, BND_23
from conformance.verdicts import NotRun, Violation
from sandboxes.contract import MistralApiBinding, WorkspaceHeaderBindings

if TYPE_CHECKING:
    import pytest

    from conformance.lab.client import Lab
    from conformance.probes.inside import Inside

_BINDINGS = (MistralApiBinding(), WorkspaceHeaderBindings())
_OUTSIDE = "keep the user's credentials outside of the sandbox, where requests get them"


@verifies(BND_06)
@needs(opens=True, binding=MistralApiBinding)
def test_no_credential_of_the_user_is_in_the_sandbox(inside: Inside, lab: Lab) -> None:
    """Neither the user's key nor what the cloud or the connector has of the user is inside."""
    user = proxy_of(lab).user(github_token=new_secret())
    path = new_path()
    sought = [user.credential, user.github_token]
    if inside.target.cls.needs_cloud:
        sought.append(lab.cloud().token())
    options = options_of(inside.target, _BINDINGS[:1])
    with inside.target.open(identity=user.credential, **options) as box:
        ask_api(inside, box, path)
        found = searching.places(box, lab, *filter(None, sought))
    if found:
        raise Violation(
            f"a credential of the user was found inside: {'; '.join(found[:4])}", remedy=_OUTSIDE
        )
    if [row["user"] for row in asked(lab, path)] != [user.name]:
        raise NotRun("no request acted as the user: see BND-14")


@verifies(BND_23)
@needs(opens=True, binding=WorkspaceHeaderBindings)
def test_no_credential_of_the_user_is_written_down(
    inside: Inside, lab: Lab, capfd: pytest.CaptureFixture[str]
) -> None:
    """No log, output, exception, `repr` or configuration holds one, also where things fail."""
    site, secret = lab.site(), new_secret()
    user = proxy_of(lab).user(rules=[Rule(host=site.entry, header="X-Key", value=secret)])
    options = options_of(inside.target, _BINDINGS[1:], site.entry)
    opened: list[Any] = []
    root = logging.getLogger()
    before, before_it = root.level, told_so_far(inside.target, lab)
    with logged() as log:
        root.setLevel(logging.DEBUG)
        try:
            request = inside.target.request(identity=user.credential)
            session = inside.target.session(identity=user.credential, opened=opened, **options)
            with session as box:
                send(box, senders(inside)[0], site, [Ask()])
                texts = {"a repr": [repr(request), *map(repr, opened), *map(str, opened)]}
                texts["an inventory"] = box.inventory()
            with user.broken("refuse", status=500):
                error = start_error(inside.target, _BINDINGS[1:], user.credential)
        finally:
            root.setLevel(before)
    texts["an exception"] = [] if error is None else [told(error)]
    texts |= {"the log": list(log), "the output of the process": list(capfd.readouterr())}
    texts["what the cloud was told"] = [told_since(inside.target, lab, before_it)]
    for where, lines in texts.items():
        if how := found_in([user.credential, secret], "\n".join(lines)):
            raise Violation(
                f"{where} held a credential of the session's user, written {how}",
                remedy="leave credentials out of all that is logged, raised, shown and kept",
            )
    if not any(secret in values(one, "x-key") for one in requests(lab, site)):
        raise NotRun("no request got the header of the rule: see BND-15")
