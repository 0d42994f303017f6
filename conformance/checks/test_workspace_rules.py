"""BND-15: the header rules that a workspace's admin stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.lab.sandbox_proxy.identities import Rule
from conformance.marks import needs, verifies
from conformance.probes import searching
from conformance.probes.acting import acting, options_of, sandbox_proxy
from conformance.probes.binding import Ask, arrived, new_secret, requests, send, senders, values
from conformance.probes.clouds import told_since, told_so_far
from conformance.probes.inside import describe
from conformance.probes.traces import found_in
from conformance.requirements import BND_15
from conformance.verdicts import NotRun, Violation
from sandboxes.contract import WorkspaceHeaderBindings

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.probes.inside import Inside

_BINDINGS = (WorkspaceHeaderBindings(),)
_OUTSIDE = "keep rules and secrets where requests get their headers, outside of the sandbox"


@verifies(BND_15)
@needs(opens=True, binding=WorkspaceHeaderBindings)
def test_the_rules_of_the_workspace_apply(inside: Inside, lab: Lab) -> None:
    """Each rule adds its header under its path of its host, whichever client asks."""
    site, other = lab.site(), lab.site()
    token, key = new_secret(), new_secret()
    rules = (
        Rule(host=site.entry, header="Authorization", value=token, path_prefix="/v1",
             prefix="Bearer "),
        Rule(host=other.entry, header="X-Api-Key", value=key),
    )  # fmt: skip
    user = sandbox_proxy(lab).user(rules=rules)
    asks = [Ask("/v1/x"), Ask("/v2")]
    with acting(inside, user, _BINDINGS, site.entry, other.entry) as box:
        for sender in senders(inside):
            for place, wanted in (
                (site, ({"authorization": f"Bearer {token}"}, {})),
                (other, ({"x-api-key": key}, {"x-api-key": key})),
            ):
                send(box, sender, place, asks)
                came = arrived(lab, place)
                got = [_bound(came.get(number)) for number in range(len(asks))]
                if got != list(wanted):
                    raise Violation(
                        f"with rules for two hosts, {sender.name} asked {place.name} for /v1/x "
                        "and /v2, and the headers of the rules did not come as they are stored",
                        saw=describe(list(came.values())),
                        remedy="apply each rule of the workspace to each request that matches it",
                    )


def _bound(sighting: Any) -> dict[str, str] | None:  # noqa: ANN401 - a sighting, if it arrived
    if sighting is None:
        return None
    names = ("authorization", "x-api-key")
    return {name: value for name in names for value in values(sighting, name)}


@verifies(BND_15)
@needs(opens=True, binding=WorkspaceHeaderBindings)
def test_rules_and_secrets_are_in_no_sandbox(inside: Inside, lab: Lab) -> None:
    """Neither a secret nor a header of the rules is inside, or in the configuration."""
    site, secret, before = lab.site(), new_secret(), told_so_far(inside.target, lab)
    header = f"X-{new_secret()}"
    user = sandbox_proxy(lab).user(rules=[Rule(host=site.entry, header=header, value=secret)])
    with acting(inside, user, _BINDINGS, site.entry) as box:
        send(box, senders(inside)[0], site, [Ask()])
        found = searching.places(box, lab, secret, header)
    built = inside.target.build(**options_of(inside.target, _BINDINGS))
    written = (
        repr(built) + repr(getattr(built, "__dict__", {})) + told_since(inside.target, lab, before)
    )
    if how := found_in([secret, header], written):
        found.append(f"the sandbox's configuration, written {how}")
    if found:
        raise Violation(
            f"what is stored for the workspace was found in {'; '.join(found[:4])}",
            remedy=_OUTSIDE,
        )
    if not any(secret in values(one, header) for one in requests(lab, site)):
        raise NotRun("no request got the header of the rule: see the other check of BND-15")
