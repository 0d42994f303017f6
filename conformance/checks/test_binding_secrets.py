"""BND-08, BND-17: secrets that cannot be used, and bindings that cannot be applied."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.marks import alone, needs, verifies
from conformance.probes.binding import (
    Ask,
    arrived,
    bound,
    new_secret,
    reaching,
    requests,
    send,
    senders,
    values,
)
from conformance.probes.inside import describe
from conformance.probes.leftovers import use_once
from conformance.probes.told import told
from conformance.probes.traces import found_in
from conformance.probes.watch import Watch, prove_watching
from conformance.requirements import BND_08, BND_17
from conformance.strategies.bound_headers import Bound
from conformance.strategies.costly import half_the_examples
from conformance.strategies.each import each
from conformance.subject.blame import VERDICTS, blamed, shown
from conformance.subject.targets import Surroundings
from conformance.verdicts import NotRun, Violation
from sandboxes.contract import HeaderBinding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from conformance.lab.client import Lab
    from conformance.probes.inside import Inside
    from conformance.subject.targets import Target

_HOST = "api.example.test"
_BEFORE = "look at every binding and its secret before anything is created"


def _start_error(
    target: Target, bindings: Sequence[HeaderBinding], secrets: Mapping[str, str]
) -> Exception | None:
    """What opening a sandbox with these raises, or None."""
    options: dict[str, Any] = {"network": reaching(target, bindings)}
    options["header_bindings"] = tuple(bindings)
    try:
        with target.open(secrets=secrets, **options):
            return None
    except VERDICTS:
        raise
    except Exception as error:
        if blamed(error) is None:  # it is none of the subject's
            raise
        return error


def _opens(target: Target) -> None:
    """The control of a refusal: the same opens where every secret is there.

    Raises:
        Violation: It does not.
    """
    secrets = {"alpha": new_secret(), "beta": new_secret()}
    bindings = [Bound("X-A").at(_HOST, name="alpha"), Bound("X-B").at(_HOST, name="beta")]
    error = _start_error(target, bindings, secrets)
    if error is not None:
        raise Violation(
            f"with {bindings!r} and both of their secrets, open() raised {shown(error)}",
            remedy="open where each secret that is named is there",
        )


def _names_it(error: Exception | None, name: str, secrets: Sequence[str], *, did: str) -> None:
    """Judge a refusal: there is one, it names the secret, and tells no value.

    Raises:
        Violation: It is not so.
    """
    if error is None:
        raise Violation(f"{did}, and open() raised nothing", remedy=_BEFORE)
    # As a word of its own: other secrets' names are longer.
    if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", str(error)):
        raise Violation(
            f"{did}, and open() raised {type(error).__name__} without the secret's name",
            remedy=f"say that the secret {name!r} is what cannot be used",
        )
    if how := found_in(secrets, told(error)):
        raise Violation(
            f"{did}, and what open() raised tells a value, written {how}",
            remedy="name the secret in the error, and in its cause and context, never its value",
        )


_names = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{3,20}", fullmatch=True)


@verifies(BND_08)
@needs(opens=True, binding=HeaderBinding)
@half_the_examples()
@given(missing=_names, first=st.booleans())
@each("missing", ["deploy-key", "API_TOKEN"], first=True)
@each("missing", ["deploy-key"], first=False)
def test_a_missing_secret_is_named(target: Target, missing: str, first: bool) -> None:
    """A binding whose secret is missing raises, and the error names it and no other's value."""
    secrets = {f"{missing}-2": new_secret(), f"x{missing}": new_secret()}
    bindings = [
        Bound("X-There").at(_HOST, name=f"{missing}-2"),
        Bound("X-Missing").at(_HOST, name=missing),
    ]
    _opens(target)
    error = _start_error(target, bindings[::-1] if first else bindings, secrets)
    did = f"with the secrets {list(secrets)} and a binding that names {missing!r}"
    _names_it(error, missing, list(secrets.values()), did=did)


@verifies(BND_08)
@needs(opens=True, binding=HeaderBinding)
@alone
def test_a_missing_secret_raises_before_anything_is_created(target: Target, lab: Lab) -> None:
    """Nothing was created, started or sent when a missing secret raises."""
    prove_watching()
    with lab.alone():
        use_once(target)
        _opens(target)
        with Watch() as watch:
            error = _start_error(target, [Bound().at(_HOST, name="absent")], {})
    did = "with no secret and a binding that names 'absent'"
    _names_it(error, "absent", (), did=did)
    deeds = [deed for deed in watch.deeds if not deed.startswith("_thread.start_new_thread")]
    if deeds:
        raise Violation(f"{did}, open() did {'; '.join(deeds[:3])} and then raised", remedy=_BEFORE)


@verifies(BND_08)
@needs(opens=True, binding=HeaderBinding)
@half_the_examples()
@given(character=st.sampled_from("\r\n\0"), place=st.integers(0, 2))
@each("character", ["\r", "\n", "\0", "\r\n", "\r\n "], place=1)
@each("character", ["\n", "\0"], place=2)
@each("character", ["\n", "\0"], place=0)
def test_a_value_with_a_line_break_or_nul_raises(
    target: Target, character: str, place: int
) -> None:
    """A secret with CR, LF or NUL raises, names itself and never its value, and is never mended."""
    parts = [new_secret(), new_secret()]
    value = (character + parts[0], character.join(parts), parts[0] + character)[place]
    _opens(target)
    error = _start_error(target, [Bound().at(_HOST, name="broken")], {"broken": value})
    did = f"with a secret 'broken' that has {character!r} in it"
    _names_it(error, "broken", parts, did=did)


_COLLISIONS = {
    "the same header": (Bound("X-Api-Key").at(_HOST), Bound("X-Api-Key").at(_HOST, name="b")),
    "another case of the header": (
        Bound("X-Api-Key").at(_HOST),
        Bound("x-API-key").at(_HOST, name="b"),
    ),
    "the port written out": (
        Bound("X-Api-Key").at(_HOST),
        Bound("X-Api-Key").at(f"{_HOST}:443", name="b"),
    ),
    "another case of the host": (
        Bound("X-Api-Key").at(_HOST),
        Bound("X-Api-Key").at(_HOST.upper(), name="b"),
    ),
    "the same prefix": (
        Bound("X-Api-Key").at(_HOST, "/v1"),
        Bound("X-Api-Key").at(_HOST, "/v1", name="b"),
    ),
}


@verifies(BND_08)
@needs(opens=True, binding=HeaderBinding)
@pytest.mark.parametrize("alike", list(_COLLISIONS))
def test_bindings_that_collide_raise(target: Target, alike: str) -> None:
    """Two bindings of one host, prefix and header raise, however they are written."""
    bindings = _COLLISIONS[alike]
    secrets = {"key": new_secret(), "b": new_secret()}
    error = _start_error(target, bindings, secrets)
    if error is None:
        raise Violation(
            f"{bindings!r} claim one header of one place ({alike}), and open() raised nothing",
            remedy="compare host and port in normal form, the header without case, the prefix",
        )
    if how := found_in(secrets.values(), told(error)):
        raise Violation(
            f"{bindings!r} collide, and the error tells a value, written {how}",
            remedy="name bindings by host, header and prefix, never by their values",
        )
    apart = [replace(bindings[0]), replace(bindings[1], header="X-Other")]
    error = _start_error(target, apart, secrets)
    if error is not None:
        raise Violation(
            f"{apart!r} do not collide, and open() raised {shown(error)}",
            remedy="raise for bindings that share host, prefix and header alone",
        )


def _bundles(folder: Path) -> dict[str, Path]:
    (folder / "rubbish.pem").write_text("no certificate\n", encoding="ascii")
    (folder / "empty.pem").write_bytes(b"")
    (folder / "folder.pem").mkdir()
    names = ("absent", "rubbish", "empty", "folder")
    return {name: folder / f"{name}.pem" for name in names}


@verifies(BND_17)
@needs(opens=True, binding=HeaderBinding)
@pytest.mark.parametrize("flaw", ["absent", "rubbish", "empty", "folder"])
def test_a_session_never_runs_without_its_bindings(
    inside: Inside, lab: Lab, tmp_path: Path, flaw: str
) -> None:
    """Where certificates that bindings need cannot be had, the session ends or they apply."""
    site, case = lab.site(), Bound(secret=new_secret())
    sender = senders(inside)[0]
    broken = inside.target.variant()
    loopback = inside.target.surroundings().loopback
    bundle = _bundles(tmp_path)[flaw]
    broken.surroundings = lambda: Surroundings(bundle, loopback)
    bindings = (case.at(site.entry),)
    options: dict[str, Any] = {"network": reaching(broken, bindings), "header_bindings": bindings}
    try:
        with broken.open(secrets={"key": case.secret}, **options) as box:
            for verified in (True, False):
                send(box, sender, site, [Ask()], verified=verified)
    except VERDICTS:
        raise
    except Exception as error:  # it stops the session, as it should
        if blamed(error) is None:
            raise
        if how := found_in([case.secret], told(error)):
            raise Violation(
                f"ca_bundle is {flaw}, and the error tells a value, written {how}",
                remedy="leave values out of errors",
            ) from None
    else:
        came = arrived(lab, site).values()
        if not came or any(values(one, case.header) != [case.value] for one in came):
            raise Violation(
                f"ca_bundle is {flaw}, and the session runs without its bindings",
                saw=describe(requests(lab, site)),
                remedy="raise from open() where the way by which headers are added is not there",
            )
    with bound(inside, bindings, {"key": case.secret}) as box:
        send(box, sender, site, [Ask()])
    if not any(case.value in values(one, case.header) for one in requests(lab, site)):
        raise NotRun("no request got the bound header with certificates either: see BND-02")
