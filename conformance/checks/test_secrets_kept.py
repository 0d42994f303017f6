"""BND-06, BND-21, BND-23: a secret stays outside, and out of what is written down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from conformance.marks import needs, verifies
from conformance.probes import searching
from conformance.probes.binding import (
    Ask,
    bound,
    mode_of,
    new_secret,
    reaching,
    requests,
    send,
    senders,
    values,
)
from conformance.probes.logs import everything_logged
from conformance.probes.places import destination
from conformance.probes.told import told
from conformance.probes.traces import found_in
from conformance.probes.words import with_words
from conformance.requirements import BND_06, BND_21, BND_23
from conformance.strategies.bound_headers import Bound
from conformance.strategies.costly import half_the_examples
from conformance.strategies.each import each
from conformance.verdicts import NotRun, Violation
from sandboxes.contract import HeaderBinding, SandboxHook

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from conformance.lab.client import Lab
    from conformance.lab.sites import Site
    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box
    from sandboxes.contract import SandboxCallbackContext

_OUTSIDE = "keep the value in the process that adds it, outside of the sandbox"
_UNWRITTEN = "leave values out of all that is logged, raised, shown and kept"


def _proven(lab: Lab, site: Site, case: Bound) -> None:
    """Make sure that the value was used at all.

    Raises:
        NotRun: It was not, so that nothing could show it.
    """
    if not any(case.value in values(one, case.header) for one in requests(lab, site)):
        raise NotRun("no request got the bound header where it belongs: see BND-02")


@verifies(BND_06)
@needs(opens=True, binding=HeaderBinding)
def test_the_value_is_nowhere_in_the_sandbox(inside: Inside, lab: Lab) -> None:
    """Environment, files and processes inside hold no value, before and after it was used."""
    site, case = lab.site(), Bound(secret=new_secret())
    with bound(inside, [case.at(site.entry)], {"key": case.secret}) as box:
        found = searching.places(box, lab, case.secret)
        send(box, senders(inside)[0], site, [Ask()])
        found += searching.places(box, lab, case.secret)
    if found:
        raise Violation(
            f"with {case.at(site.entry)!r}, the value was found inside: {'; '.join(found[:4])}",
            remedy=_OUTSIDE,
        )
    _proven(lab, site, case)


# For what a sandbox says of a request that it refuses or cannot send on.
_REFUSED = (Ask(), Ask("/%2e%2e/x"), Ask("/x", host="other.example"), Ask("/x", method="TRACE"))
_TALKATIVE = {"curl": ("-v",), "wget": ("-d", "-S"), "http": ("-v",)}


@verifies(BND_06)
@needs(opens=True, binding=HeaderBinding)
def test_no_talkative_client_shows_the_value(inside: Inside, lab: Lab) -> None:
    """A client that tells all that it sends and gets shows no value, refusals included."""
    site, case = lab.site(), Bound(secret=new_secret())
    failing = [site, lab.site(behaviour="close"), lab.site(certificate="unknown-ca")]
    clients = inside.clients(mode_of(inside.target), "https")
    bindings = [case.at(one.entry) for one in failing]
    with bound(inside, bindings, {"key": case.secret}) as box:
        ran: list[object] = [send(box, one, site, [Ask()]) for one in senders(inside)]
        for one in senders(inside):
            ran += [send(box, one, place, _REFUSED) for place in failing]
        for client in clients:
            loud = with_words(client, *_TALKATIVE.get(client.name, ()))
            ran.append(inside.attempt(box, loud, "https", destination("https", site)))
    if how := found_in([case.secret], searching.outputs(ran)):
        raise Violation(
            f"with {case.at(site.entry)!r}, a client inside showed the value, written {how}",
            remedy=_OUTSIDE,
        )
    _proven(lab, site, case)


@verifies(BND_21)
@needs(opens=True, binding=HeaderBinding)
@half_the_examples()
@given(
    behaviour=st.sampled_from(("echo", "reflect", "drip")),
    tail=st.text("abz09-_./\\\"'<&%+=~", max_size=12),
)
@each("behaviour", ("echo", "reflect", "drip"), tail="")
@each("tail", ('a"b', "a\\b/c", "a+b%20/="), behaviour="echo")
def test_an_origin_that_echoes_does_not_reveal_the_value(
    inside: Inside, lab: Lab, behaviour: str, tail: str
) -> None:
    """What an origin sends back of the bound header, in body or head, is not shown inside."""
    site, case = lab.site(behaviour=behaviour), Bound(secret=new_secret() + tail)
    with bound(inside, [case.at(site.entry)], {"key": case.secret}) as box:
        ran = [send(box, one, site, [Ask(), Ask("/again")]) for one in senders(inside)]
    if how := found_in([case.secret], searching.outputs(ran)):
        raise Violation(
            f"with {case.at(site.entry)!r}, the answer of an origin ({behaviour}) showed the "
            f"value, written {how}",
            remedy="cover the value in heads and bodies of answers, or withhold them",
        )
    _proven(lab, site, case)


class _Notes(SandboxHook):
    """Writes down what a hook is given, as a person who debugs would."""

    texts: list[str] = []  # noqa: RUF012 - a hook keeps nothing between its two points

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        self._note(ctx)

    async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
        self._note(ctx)

    def _note(self, ctx: SandboxCallbackContext) -> None:
        type(self).texts += [repr(ctx), str(ctx), repr(vars(ctx)), repr(self.to_unified_state())]
        type(self).texts += [repr(ctx.sandbox), str(ctx.sandbox), repr(vars(self))]


def _raised(call: Callable[[], object]) -> str:
    """What a call's exception tells; nothing if it returns."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whatever is raised is read
        return told(error)
    return ""


def _use(inside: Inside, box: Box, sites: list[Site]) -> list[str]:
    """Use a sandbox in each way that could be written about, and give the exceptions' texts."""
    odd = [Ask("/x"), Ask("/%2e%2e/x"), Ask("/x", (("Authorization", "own"),))]
    for sender in senders(inside):
        for site in sites:
            send(box, sender, site, odd)
    return [
        _raised(lambda: box.execute("true\0")),
        _raised(lambda: box.execute("true", timeout_seconds=-1)),
        _raised(lambda: box.read_file("no-such-file")),
        _raised(box.inventory),
        *box.inventory(),
    ]


@verifies(BND_23)
@needs(opens=True, binding=HeaderBinding)
def test_the_value_is_written_down_nowhere(
    inside: Inside, lab: Lab, capfd: pytest.CaptureFixture[str]
) -> None:
    """No log, output, exception, `repr` or state of a hook holds a value, whatever happens."""
    case = Bound(secret=new_secret())
    site = lab.site()
    sites = [site, lab.site(behaviour="close"), lab.site(certificate="unknown-ca")]
    bindings = tuple(case.at(one.entry) for one in sites)
    options: dict[str, Any] = {"network": reaching(inside.target, bindings)}
    options |= {"header_bindings": bindings, "hooks": (_Notes(),)}
    _Notes.texts.clear()
    texts: dict[str, list[str]] = {}
    with everything_logged() as log:
        opened: list[Any] = []
        session = inside.target.session(secrets={"key": case.secret}, opened=opened, **options)
        with session as box:
            texts["an exception"] = _use(inside, box, sites)
            texts["a repr"] = [repr(one) for one in opened] + [str(one) for one in opened]
            if inside.target.declared.fact("supports_resume"):
                texts["the state of a session"] = [repr(box.detach())]
        texts["an exception"].append(_raised(lambda: box.execute("true")))
        built = inside.target.build(**options)
        texts["a repr"] += [repr(built), str(built), repr(getattr(built, "__dict__", {}))]
    texts |= {"the log": list(log), "the state of a hook": list(_Notes.texts)}
    texts["the output of the process"] = list(capfd.readouterr())
    for where, lines in texts.items():
        if how := found_in([case.secret], "\n".join(lines)):
            raise Violation(
                f"{where} held the value of a binding, written {how}", remedy=_UNWRITTEN
            )
    _proven(lab, site, case)
