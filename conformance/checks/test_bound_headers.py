"""BND-02, BND-05, BND-07: the header that requests get, as the origin recorded them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given

from conformance.marks import needs, verifies
from conformance.probes.binding import (
    Ask,
    arrived,
    bound,
    mode_of,
    new_secret,
    requests,
    send,
    senders,
    values,
)
from conformance.probes.inside import describe
from conformance.probes.places import destination
from conformance.requirements import BND_02, BND_05, BND_07
from conformance.strategies import bound_headers, bound_paths
from conformance.strategies.bound_headers import Bound
from conformance.strategies.costly import half_the_examples
from conformance.strategies.each import each
from conformance.verdicts import NotRun, Violation
from sandboxes.contract import HeaderBinding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.lab.client import Lab
    from conformance.lab.sites import Site
    from conformance.probes.inside import Inside

_ADD = "send prefix, secret and suffix, unchanged and once, with each HTTPS request that matches"


def _get_exactly(
    lab: Lab, site: Site, asks: Sequence[Ask], wanted: Mapping[str, str], *, did: str, remedy: str
) -> None:
    """Judge that each of some requests arrived, and each of some headers once, with its value."""
    came = arrived(lab, site)
    for number, ask in enumerate(asks):
        if number not in came:
            raise Violation(
                f"{did}, and the request to {ask.target} did not arrive",
                saw=describe(requests(lab, site)),
                remedy="let requests that match a binding through",
            )
        for header, value in wanted.items():
            if (got := values(came[number], header)) != [value]:
                raise Violation(
                    f"{did}, and {header} came to {ask.target} {len(got)} times"
                    f" with {got!r} instead of once with {value!r}",
                    saw=describe([came[number]]),
                    remedy=remedy,
                )


@verifies(BND_02)
@needs(opens=True, binding=HeaderBinding)
@half_the_examples()
@given(case=bound_headers.cases)
@each("case", bound_headers.CASES)
def test_a_bound_header_joins_each_matching_request(inside: Inside, lab: Lab, case: Bound) -> None:
    """Each request to the host gets the header, with prefix, value and suffix as they are."""
    site, asks = lab.site(), [Ask(path) for path in ("/", "/a/b", "/a/b/c.d")]
    asks += [Ask("/a/b", method=method, body="a=1") for method in ("POST", "PUT", "DELETE")]
    with bound(inside, [case.at(site.entry)], {"key": case.secret}) as box:
        for sender in senders(inside):
            send(box, sender, site, asks)
            did = f"with {case.at(site.entry)!r}, {sender.name} sent requests"
            _get_exactly(lab, site, asks, {case.header: case.value}, did=did, remedy=_ADD)


@verifies(BND_02)
@needs(opens=True, binding=HeaderBinding)
@half_the_examples()
@given(prefix=bound_paths.prefixes)
@each("prefix", ["/api", "/repos/acme/a-b", "/v1/"])
def test_a_bound_header_joins_requests_under_its_prefix(
    inside: Inside, lab: Lab, prefix: str
) -> None:
    """The prefix itself and every path behind it get the header."""
    site, case = lab.site(), Bound(secret=new_secret())
    asks = [Ask(path) for path in bound_paths.inside_of(prefix)]
    asks.append(Ask(f"{asks[-1].target}?of=/other/../x&u=https://x.test/"))
    with bound(inside, [case.at(site.entry, prefix)], {"key": case.secret}) as box:
        send(box, senders(inside)[0], site, asks)
        did = f"with path_prefix={prefix!r}, a command sent requests under it"
        _get_exactly(lab, site, asks, {case.header: case.value}, did=did, remedy=_ADD)


@verifies(BND_02)
@needs(opens=True, binding=HeaderBinding)
def test_each_client_inside_gets_the_bound_header(inside: Inside, lab: Lab) -> None:
    """Whatever client inside asks over HTTPS, its request gets the header."""
    case, some = Bound(secret=new_secret()), False
    for client in inside.clients(mode_of(inside.target), "https"):
        site = lab.site()
        with bound(inside, [case.at(site.entry)], {"key": case.secret}) as box:
            ran = inside.attempt(box, client, "https", destination("https", site), patient=True)
        came = requests(lab, site)
        some = some or bool(came)
        if any(values(one, case.header) != [case.value] for one in came):
            raise Violation(
                f"with {case.at(site.entry)!r}, {ran} sent a request without its header",
                saw=describe(came),
                remedy="tell every program inside of the way by which headers are added",
            )
    if not some:
        raise NotRun("no client inside reached the host of a binding: see EGR-10")


@verifies(BND_02)
@needs(opens=True, binding=HeaderBinding)
def test_several_bindings_are_all_in_force(inside: Inside, lab: Lab) -> None:
    """Several headers of one host, of nested prefixes and of two hosts are each added."""
    one, other = lab.site(), lab.site()
    first, second, third = (
        Bound(name, new_secret(), "", "") for name in ("X-First", "X-Second", "X-Third")
    )
    bindings = [
        first.at(one.entry, "/api", "a"),
        second.at(one.entry, "/api/v1", "b"),
        third.at(one.entry, "/", "c"),
        first.at(other.entry, "/", "b"),
    ]
    secrets = {"a": first.secret, "b": second.secret, "c": third.secret}
    asks = [Ask("/api/v1/x"), Ask("/api/v1")]
    everything = {case.header: case.secret for case in (first, second, third)}
    with bound(inside, bindings, secrets) as box:
        for site, wanted in ((one, everything), (other, {first.header: second.secret})):
            send(box, senders(inside)[0], site, asks)
            did = f"with {len(bindings)} bindings for two hosts, a command sent requests"
            _get_exactly(lab, site, asks, wanted, did=did, remedy="apply every binding")


@verifies(BND_07)
@needs(opens=True, binding=HeaderBinding)
@each("order", [("alpha", "beta"), ("beta", "alpha")])
@half_the_examples()
@given(order=bound_headers.orders)
def test_secret_name_picks_the_secret(inside: Inside, lab: Lab, order: tuple[str, ...]) -> None:
    """Each binding sends the secret that it names, whatever others there are and in what order."""
    secrets = {name: new_secret() for name in (*sorted(order), "gamma", "Alpha", "alph")}
    site = lab.site()
    bindings = [
        Bound(f"X-{place}", prefix="").at(site.entry, name=name) for place, name in enumerate(order)
    ]
    wanted = {f"X-{place}": secrets[name] for place, name in enumerate(order)}
    with bound(inside, bindings, secrets) as box:
        send(box, senders(inside)[0], site, [Ask()])
        did = f"with the secrets {sorted(secrets)} and bindings that name {list(order)}"
        _get_exactly(
            lab, site, [Ask()], wanted, did=did, remedy="look each secret up by its exact name"
        )


@verifies(BND_05)
@needs(opens=True, binding=HeaderBinding)
@half_the_examples()
@given(case=bound_headers.cases)
@each("case", [Bound(), Bound("X-Api-Key"), Bound("x-api-key", prefix="")])
def test_a_header_of_the_command_is_replaced(inside: Inside, lab: Lab, case: Bound) -> None:
    """A header of the bound name, in any case and more than once, is replaced and never beside."""
    site = lab.site()
    names = bound_headers.in_every_case(case.header)
    asks = [Ask("/x", ((name, "the command's own"),)) for name in names]
    asks.append(Ask("/x", tuple((name, "the command's own") for name in names)))
    asks.append(Ask("/x", ((names[0], case.value),)))
    asks.append(Ask("/x", ((names[0], "the command's own"),), method="POST", body="a=1"))
    with bound(inside, [case.at(site.entry)], {"key": case.secret}) as box:
        send(box, senders(inside)[0], site, asks)
        did = f"with {case.at(site.entry)!r}, a command sent {case.header} itself"
        _get_exactly(
            lab, site, asks, {case.header: case.value}, did=did,
            remedy="take out what the command sent, whatever its case, and add the bound one",
        )  # fmt: skip
