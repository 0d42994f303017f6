"""BND-03, BND-04, BND-22: where bound headers do not go."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import pytest
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
    whole,
)
from conformance.probes.choices import network
from conformance.probes.following import followers
from conformance.probes.inside import describe
from conformance.probes.places import destination, entry, port_at
from conformance.probes.traces import found_in
from conformance.requirements import BND_03, BND_04, BND_22
from conformance.strategies import bound_headers, bound_paths
from conformance.strategies.bound_headers import Bound
from conformance.strategies.costly import half_the_examples
from conformance.strategies.each import each
from conformance.verdicts import NotRun, Violation
from sandboxes.contract import HeaderBinding

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.lab.client import Lab
    from conformance.lab.journal import Sighting
    from conformance.lab.sites import Site
    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box

_HOST = "compare host and port of the connection, scheme and path of each request anew"
_PATH = "match whole segments of the path that the origin gets, case included"


def _stays_away(seen: Iterable[Sighting], secret: str, *, did: str, remedy: str) -> None:
    """Judge that a secret is in nothing of what was seen.

    Raises:
        Violation: It is.
    """
    for one in seen:
        if how := found_in([secret], whole(one)):
            raise Violation(
                f"{did}, and the secret arrived there, written {how}",
                saw=describe([one]),
                remedy=remedy,
            )


def _proven(inside: Inside, lab: Lab, box: Box, site: Site, case: Bound, path: str = "/") -> None:
    """Make sure that the header is added where it belongs, in this very sandbox.

    Raises:
        NotRun: It is not, so that its absence elsewhere would show nothing.
    """
    send(box, senders(inside)[0], site, [Ask(path)])
    if not any(case.value in values(one, case.header) for one in requests(lab, site)):
        raise NotRun("no request got the bound header where it belongs: see BND-02")


def _is_at(one: Sighting, site: Site) -> bool:
    """Whether it came to a site's own place, whatever name it gave."""
    return one.address == site.address and one.port in (site.https_port, site.http_port)


def _some(came: Iterable[object], what: str) -> None:
    """Make sure that something arrived.

    Raises:
        NotRun: Nothing did.
    """
    if not any(True for _ in came):
        raise NotRun(
            f"no request came to {what}, so nothing can be said of its headers: see EGR-10"
        )


@verifies(BND_03)
@needs(opens=True, binding=HeaderBinding)
def test_a_bound_header_goes_to_no_other_host(inside: Inside, lab: Lab) -> None:
    """A host that looks like the bound one, and another port of it, get no header."""
    site, case = lab.site(), Bound(secret=new_secret())
    label, _, domain = site.name.partition(".")
    names = (
        f"sub.{site.name}",
        f"{site.name}.evil.test",
        f"not{site.name}",
        domain,
        f"{label}.test",
    )
    others = [lab.site(name=name) for name in names]
    port = port_at(site, 8443)
    hosts = [*(one.entry for one in others), entry(site.name, port)]
    with bound(inside, [case.at(site.entry)], {"key": case.secret}, *hosts) as box:
        _proven(inside, lab, box, site, case)
        sender = senders(inside)[0]
        for other in others:
            send(box, sender, other, [Ask()])
        send(box, sender, site, [Ask()], port=port)
    elsewhere = [one for one in requests(lab, site) if one.port != site.https_port]
    elsewhere += [one for one in requests(lab, *others) if one.address != site.address]
    _some(elsewhere, "a host beside the bound one")
    did = f"with {case.at(site.entry)!r}, a command asked other hosts and ports"
    _stays_away(elsewhere, case.secret, did=did, remedy=_HOST)


@verifies(BND_03)
@needs(opens=True, binding=HeaderBinding)
@pytest.mark.usefixtures("given_addresses")
def test_the_address_of_the_bound_host_is_not_its_name(inside: Inside, lab: Lab) -> None:
    """Another host at the bound one's address gets no header."""
    site, case = lab.site(), Bound(secret=new_secret())
    other = lab.site(addresses=[site.address])
    with bound(inside, [case.at(site.entry)], {"key": case.secret}, other.entry) as box:
        _proven(inside, lab, box, site, case)
        send(box, senders(inside)[0], other, [Ask(f"/{other.nonce}")])
    came = [one for one in requests(lab, other) if one.name == other.name]
    _some(came, "the other host of one address")
    did = f"with {case.at(site.entry)!r}, a command asked {other.name} at the same address"
    _stays_away(came, case.secret, did=did, remedy=_HOST)


@verifies(BND_03)
@needs(opens=True, binding=HeaderBinding)
def test_a_host_header_does_not_bring_the_bound_one(inside: Inside, lab: Lab) -> None:
    """A request to another host that names the bound one in its Host header gets no header."""
    site, other, case = lab.site(), lab.site(), Bound(secret=new_secret())
    asks = [Ask("/", host=host) for host in (site.name, site.entry, site.name.upper())]
    with bound(inside, [case.at(site.entry)], {"key": case.secret}, other.entry) as box:
        _proven(inside, lab, box, site, case)
        for sender in senders(inside):
            for verified in (True, False):
                send(box, sender, other, asks, verified=verified)
    here = [one for one in lab.seen(other) if _is_at(one, other)]
    did = f"with {case.at(site.entry)!r}, a command asked {other.name} with the bound host's name"
    _stays_away(here, case.secret, did=did, remedy=_HOST)


@verifies(BND_03)
@needs(opens=True, binding=HeaderBinding)
def test_a_bound_header_never_goes_in_clear(inside: Inside, lab: Lab) -> None:
    """Over plain HTTP no request gets the header, whatever the network opens."""
    case = Bound(secret=new_secret())
    declared = inside.target.declared.network
    for mode in ("all", "allow"):
        if mode not in declared:
            continue
        site = lab.site()
        clear = entry(site.name, site.http_port)
        options = {"network": network(inside.target, mode, [site.entry, clear])}
        options["header_bindings"] = (case.at(site.entry), Bound("X-Clear", case.secret).at(clear))
        if inside.target.refusal(**options) is not None:  # a right answer to a binding for port 80
            options["header_bindings"] = (case.at(site.entry),)
        with inside.opened(**options, secrets={"key": case.secret}) as box:
            _proven(inside, lab, box, site, case)
            for client in inside.clients(mode_of(inside.target), "http"):
                inside.attempt(box, client, "http", destination("http", site))
        in_clear = [one for one in lab.seen(site) if not one.tls]
        did = f"under {mode}(), with a binding for {site.entry}, a command asked over plain HTTP"
        _stays_away(in_clear, case.secret, did=did, remedy="bind HTTPS requests alone")


@verifies(BND_03)
@needs(opens=True, binding=HeaderBinding)
@half_the_examples()
@given(prefix=bound_paths.prefixes)
@each("prefix", ["/api", "/repos/acme/a-b", "/v1/"])
def test_a_bound_header_goes_to_no_other_path(inside: Inside, lab: Lab, prefix: str) -> None:
    """Paths beside the prefix get no header, also on a connection that brought it before."""
    site, case = lab.site(), Bound(secret=new_secret())
    under, beside = bound_paths.inside_of(prefix), bound_paths.beside(prefix)
    beside += [f"/x?path={prefix}/x", f"/?{prefix}/"]
    # In turn, so that each is behind one of the other kind on a connection that is kept.
    paths = list(chain.from_iterable(zip(under * len(beside), beside, strict=False)))
    with bound(inside, [case.at(site.entry, prefix)], {"key": case.secret}) as box:
        asks = [Ask(path) for path in paths]
        asks += [Ask(path, method="POST", body="a=1") for path in beside]
        send(box, senders(inside)[0], site, asks)
    came = arrived(lab, site)
    if not any(case.value in values(one, case.header) for one in came.values()):
        raise NotRun("no request got the bound header where it belongs: see BND-02")
    outside = [one for one in requests(lab, site) if not _is_under(one.path, prefix)]
    _some(outside, "a path beside the prefix")
    did = f"with path_prefix={prefix!r}, a command asked for paths beside it"
    _stays_away(outside, case.secret, did=did, remedy=_PATH)


def _is_under(path: str, prefix: str) -> bool:
    return bound_paths.is_under(path.partition("?")[0], prefix)


@verifies(BND_03)
@needs(opens=True, binding=HeaderBinding)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_bound_header_does_not_follow_a_redirect(inside: Inside, lab: Lab, status: int) -> None:
    """Where a redirect leads out of the binding, by host or path, the header does not go along."""
    other, case = lab.site(), Bound(secret=new_secret())
    away = lab.site(redirect=(status, other.url()))
    turn = lab.site(redirect=(status, "/elsewhere/x"))
    bindings = [case.at(away.entry), case.at(turn.entry, f"/{turn.nonce}")]
    with bound(inside, bindings, {"key": case.secret}, other.entry) as box:
        for client in followers(inside, lab):
            for site in (away, turn):
                inside.attempt(box, client, "https", destination("https", site), patient=True)
    first = [one for one in requests(lab, away, turn) if not one.path.startswith("/elsewhere")]
    if not any(case.value in values(one, case.header) for one in first):
        raise NotRun("no request got the bound header where it belongs: see BND-02")
    led = [one for one in requests(lab, other) if _is_at(one, other)]
    led += [one for one in requests(lab, turn) if one.path.startswith("/elsewhere")]
    did = f"a command followed a {status} out of {bindings!r}"
    _stays_away(led, case.secret, did=did, remedy=_HOST)


def _judge_odd(
    inside: Inside, lab: Lab, prefix: str, paths: Sequence[str], *, missing: str = ""
) -> None:
    """Judge that the secret goes along with no odd path, unless it is sent in a plain form.

    Args:
        inside: The sandboxes of the check.
        lab: The laboratory.
        prefix: Of the binding.
        paths: What is asked for.
        missing: If not empty, what to mend where a request comes without the header.
    """
    site, case = lab.site(), Bound(secret=new_secret())
    with bound(inside, [case.at(site.entry, prefix)], {"key": case.secret}) as box:
        _proven(inside, lab, box, site, case, f"{prefix.rstrip('/')}/x")
        send(box, senders(inside)[0], site, [Ask(path, (("X-Odd", "1"),)) for path in paths])
    for one in requests(lab, site):
        if not values(one, "x-odd"):
            continue
        path = one.path.partition("?")[0]
        plainly = bound_paths.PLAIN.fullmatch(path) and bound_paths.is_under(path, prefix)
        did = f"with path_prefix={prefix!r}, a command asked for {one.path}"
        if missing:
            if case.value not in values(one, case.header):
                raise Violation(
                    f"{did}, which is the same as a path under it, and it came without the header",
                    saw=describe([one]),
                    remedy=missing,
                )
        elif not plainly:
            _stays_away([one], case.secret, did=did, remedy="match what the origin will read")


@verifies(BND_04)
@needs(opens=True, binding=HeaderBinding)
@half_the_examples()
@given(way=bound_paths.ways_out)
@each("way", [("/api", range(len(bound_paths.ESCAPES))), ("/repos/acme/a-b", range(0, 60, 3))])
def test_no_spelling_moves_a_request_under_the_prefix(
    inside: Inside, lab: Lab, way: tuple[str, Sequence[int]]
) -> None:
    """A path that a server may read as one outside of the prefix gets no header, or is refused."""
    prefix, chosen = way
    ways = bound_paths.escapes(prefix)
    _judge_odd(inside, lab, prefix, [ways[number] for number in chosen])


@verifies(BND_04)
@needs(opens=True, binding=HeaderBinding)
@half_the_examples()
@given(prefix=bound_paths.prefixes)
@each("prefix", ["/api", "/repos/acme"])
def test_another_spelling_of_a_path_is_the_same_path(inside: Inside, lab: Lab, prefix: str) -> None:
    """A path whose normal form is under the prefix gets the header, or is refused."""
    _judge_odd(
        inside, lab, prefix, bound_paths.same(prefix),
        missing="bring paths into normal form before they are compared, or refuse odd ones",
    )  # fmt: skip


@verifies(BND_22)
@needs(opens=True, binding=HeaderBinding)
@half_the_examples()
@given(case=bound_headers.cases)
@each("case", [Bound(), Bound("X-Api-Key"), Bound("x-api-key", prefix="")])
def test_a_header_of_the_command_does_not_pass_beside(
    inside: Inside, lab: Lab, case: Bound
) -> None:
    """A header of the bound name that the command sends passes to no other path of the host."""
    site, own = lab.site(), "the command's own"
    names = bound_headers.in_every_case(case.header)
    asks = [Ask("/other", ((name, own),)) for name in names]
    asks.append(Ask("/other", ((names[0], own),), method="POST", body="a=1"))
    asks.append(Ask("/other", (("X-Unbound", own),)))
    with bound(inside, [case.at(site.entry, "/api")], {"key": case.secret}) as box:
        send(box, senders(inside)[0], site, asks)
    came = [one for one in requests(lab, site) if one.path == "/other"]
    _some(came, "a path beside the prefix")
    for one in came:
        if own in values(one, case.header):
            raise Violation(
                f"with {case.at(site.entry, '/api')!r}, a command's own {case.header} passed "
                f"to {one.path}",
                saw=describe([one]),
                remedy="take the bound names out of every request to that host, or refuse it",
            )
