"""Clients that follow redirects, and which of those inside were seen to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.probes.places import destination
from conformance.probes.words import with_words
from conformance.verdicts import NotApplicable

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.probes.clients import Client, Scheme
    from conformance.probes.inside import Inside

_SWITCHES: dict[str, tuple[str, ...]] = {
    "curl": ("-L",),
    "http": ("--follow",),
    "wget": (),
    "busybox wget": (),
    "python3": (),
    "git": (),
}
"""What makes each client follow; nothing where it does so anyway."""

# Kept for the whole run: what a client can do does not change between checks.
_followers: dict[str, list[Client]] = {}


def followers(inside: Inside, lab: Lab, example: object = None) -> list[Client]:
    """Give the clients inside that follow a redirect between hosts that the policy opens.

    Args:
        inside: The sandboxes.
        lab: Where redirects are.
        example: What was drawn; see `Attempts.ways_for`.

    Raises:
        NotApplicable: There is none.
    """
    name = inside.target.name
    if name not in _followers:
        known = [one for one in inside.clients("allow", "https") if one.name in _SWITCHES]
        switched = [with_words(one, *_SWITCHES[one.name]) for one in known]
        _followers[name] = [one for one in switched if _follows(inside, lab, one)]
    if not _followers[name]:
        raise NotApplicable(
            "no client inside follows a redirect, not even between hosts that the policy opens"
        )
    ways: list[tuple[Client, Scheme]] = [(client, "https") for client in _followers[name]]
    return [client for client, _ in inside.rotated(example, ways)]


def _follows(inside: Inside, lab: Lab, client: Client) -> bool:
    second = lab.site()
    first = lab.site(redirect=second.url())
    box = inside.wide(first.entry, second.entry)
    if box is None:
        return False
    inside.attempt(box, client, "https", destination("https", first), patient=True)
    return any(one.kind == "request" and one.port == second.https_port for one in lab.seen(second))
