"""BND-02, BND-03, BND-07, EGR-16: the far end of a binding, and the sessions that share it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from conformance.marks import needs, verifies
from conformance.oracle import is_private
from conformance.probes.binding import (
    Ask,
    arrived,
    bound,
    new_secret,
    requests,
    send,
    senders,
    values,
    whole,
)
from conformance.probes.inside import connections, describe, needs_of_lab
from conformance.probes.traces import found_in
from conformance.requirements import BND_02, BND_03, BND_07, EGR_16
from conformance.strategies.bound_headers import Bound
from conformance.verdicts import NotRun, Violation
from sandboxes.contract import HeaderBinding

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.lab.sites import Certificate
    from conformance.probes.inside import Inside


@verifies(BND_03)
@needs(opens=True, binding=HeaderBinding)
@pytest.mark.parametrize("certificate", ["unknown-ca", "wrong-host", "expired"])
def test_a_bound_header_goes_to_no_impostor(
    inside: Inside, lab: Lab, certificate: Certificate
) -> None:
    """Who cannot prove to be the bound host gets no header from a client that verifies."""
    right, wrong = lab.site(), lab.site(certificate=certificate)
    case = Bound(secret=new_secret())
    bindings = [case.at(right.entry), case.at(wrong.entry)]
    with bound(inside, bindings, {"key": case.secret}) as box:
        for site in (right, wrong):
            for sender in senders(inside):
                send(box, sender, site, [Ask()])
    if not any(case.value in values(one, case.header) for one in requests(lab, right)):
        raise NotRun("no request got the bound header where it belongs: see BND-02")
    for one in lab.seen(wrong):
        if how := found_in([case.secret], whole(one)):
            raise Violation(
                f"the certificate of the bound host is {certificate}, and the secret arrived "
                f"there, written {how}",
                saw=describe([one]),
                remedy="verify the certificate and name of an origin before a header is added",
            )


@verifies(EGR_16)
@needs(opens=True, binding=HeaderBinding, blocks_private=True)
@pytest.mark.parametrize("address", ["10.0.0.1", "169.254.169.254", "fd00::1"])
@pytest.mark.usefixtures("given_addresses")
def test_a_bound_host_of_a_private_address_stays_refused(
    inside: Inside, lab: Lab, address: str
) -> None:
    """A name that resolves to a private address is refused where it has a binding too."""
    needs_of_lab(lab, "private", "dns")
    site, case = lab.site(addresses=[address], dns=[[address]]), Bound(secret=new_secret())
    right = lab.site()
    with bound(inside, [case.at(site.entry), case.at(right.entry)], {"key": case.secret}) as box:
        for one in (site, right):
            for sender in senders(inside):
                send(box, sender, one, [Ask()], verified=False)
    inside.judge(
        [one for one in connections(lab.seen(site)) if is_private(one.address)],
        did=f"with {case.at(site.entry)!r}, it let a command through to {address}",
        remedy="check the address that is dialled for bound hosts as for any other",
    )
    if not requests(lab, right):
        raise NotRun("no request came to a bound host: see BND-02")
    inside.private_reached()


@verifies(BND_07)
@needs(opens=True, binding=HeaderBinding)
def test_each_of_two_sessions_sends_its_own_secret(inside: Inside, lab: Lab) -> None:
    """Two open sessions whose secrets have one name each send their own, to one host."""
    site = lab.site()
    cases = [Bound(secret=new_secret()) for _ in range(2)]
    sender, order = senders(inside)[0], (0, 1, 0)
    asks = [Ask(f"/{turn}") for turn in range(len(order))]
    with ExitStack() as stack:
        boxes = [
            stack.enter_context(bound(inside, [case.at(site.entry)], {"key": case.secret}))
            for case in cases
        ]
        for turn, number in enumerate(order):
            send(boxes[number], sender, site, [asks[turn]])
    for one in requests(lab, site):
        case = cases[order[int(one.path[1:])]]
        if (got := values(one, case.header)) != [case.value]:
            raise Violation(
                f"two sessions were open, and one sent {got!r} instead of {case.value!r}",
                saw=describe([one]),
                remedy="keep the secrets of each session with that session",
            )
    if len(requests(lab, site)) < len(order):
        raise NotRun("not each request came to the bound host: see BND-02")


@verifies(BND_02)
@needs(opens=True, binding=HeaderBinding)
def test_bindings_outlast_a_command_that_was_ended(inside: Inside, lab: Lab) -> None:
    """After a command that ran into its limit, requests get the header as before."""
    site, case = lab.site(), Bound(secret=new_secret())
    sender = senders(inside)[0]
    with bound(inside, [case.at(site.entry)], {"key": case.secret}) as box:
        send(box, sender, site, [Ask("/before")])
        box.execute("while :; do :; done", timeout_seconds=1)
        send(box, sender, site, [Ask("/after")])
    came = arrived(lab, site)
    if not any(one.path == "/before" for one in requests(lab, site)):
        raise NotRun("no request came to the bound host: see BND-02")
    if not came or came[0].path != "/after" or values(came[0], case.header) != [case.value]:
        raise Violation(
            "a command ran into its limit, and the next one's request came without its header "
            "or not at all",
            saw=describe(requests(lab, site)),
            remedy="keep bindings in force for the whole session",
        )
