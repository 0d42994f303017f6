"""BND-17: a Sandbox Proxy that fails, when a session starts and while it runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from conformance.marks import alone, needs, verifies
from conformance.probes.acting import (
    acting,
    ask_api,
    asked,
    new_path,
    sandbox_proxy,
    session_credential,
    start_error,
)
from conformance.probes.binding import senders
from conformance.probes.leftovers import counting
from conformance.probes.protected import files_with
from conformance.probes.told import told
from conformance.probes.traces import found_in
from conformance.requirements import BND_17
from conformance.subject.blame import VERDICTS, shown
from conformance.verdicts import NotRun, Violation
from sandboxes.contract import MistralApiBinding, SandboxError, SandboxStartError

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.lab.sandbox_proxy.client import User
    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box

_LIFE = 6
_PAUSE_SECONDS = 0.3
_MOST_SECONDS = 20.0
_FAILURES: dict[str, dict[str, Any]] = {
    "refuses the credential": {"kind": "refuse", "status": 401},
    "fails": {"kind": "refuse", "status": 500},
    "hangs up": {"kind": "cut"},
    "answers rubbish": {"kind": "rubbish"},
    "hands out a proxy that hangs up": {"kind": "gate_down"},
}
_STOP = "raise from open() where Sandbox Proxy gives nothing that works, and delete the sandbox"


@verifies(BND_17)
@needs(opens=True, binding=MistralApiBinding)
@alone
@pytest.mark.parametrize("failure", list(_FAILURES))
def test_a_session_does_not_start_without_sandbox_proxy(
    inside: Inside, lab: Lab, failure: str
) -> None:
    """Where it fails, the session does not start, says so, and leaves no sandbox behind."""
    user = sandbox_proxy(lab).user()
    bindings = [MistralApiBinding()]
    with counting(inside.target, lab) as left, user.broken(**_FAILURES[failure]):
        error = start_error(inside.target, bindings, user.credential)
    _is_clear(error, SandboxStartError, user, f"Sandbox Proxy {failure}, and open()")
    left.judge(f"after a session that did not start because Sandbox Proxy {failure},")
    error = start_error(inside.target, bindings, user.credential)
    if error is not None:
        raise NotRun(f"where nothing failed, open() raised {shown(error)} as well")


def _is_clear(error: Exception | None, kind: type[SandboxError], user: User, did: str) -> None:
    """Judge what stopped a session.

    Raises:
        Violation: Nothing did, or it is no clear error, or tells a credential.
    """
    if error is None:
        raise Violation(f"{did} raised nothing", remedy=_STOP)
    if not isinstance(error, kind) or "Sandbox Proxy" not in str(error):
        raise Violation(
            f"{did} raised {shown(error)}",
            remedy=f"raise {kind.__name__} that says that it is Sandbox Proxy",
        )
    if how := found_in([user.credential], told(error)):
        raise Violation(
            f"{did} raised an error that tells the user's credential, written {how}",
            remedy="leave credentials out of errors, and of their causes",
        )


@verifies(BND_17)
@needs(opens=True, binding=MistralApiBinding)
@alone
@pytest.mark.parametrize("failure", ["refuses the credential", "hangs up"])
def test_a_session_ends_whose_credentials_cannot_be_renewed(
    inside: Inside, lab: Lab, failure: str
) -> None:
    """After a renewal that fails, each command raises, and closing deletes the sandbox."""
    user = sandbox_proxy(lab).user()
    bindings = [MistralApiBinding(ttl_seconds=_LIFE)]
    senders(inside)  # the sandbox that is looked into for them is none of those that count
    with counting(inside.target, lab) as left, acting(inside, user, bindings) as box:
        _acts(inside, lab, box, user)
        user.inject(**_FAILURES[failure])
        errors = [_until_it_raises(box, user), _raised(box)]
        user.mend()
        errors.append(_raised(box))
    for error in errors:
        _is_clear(error, SandboxError, user, f"Sandbox Proxy {failure} at a renewal, and a command")
    left.judge("after a session that was closed when its credentials could not be renewed,")


def _acts(inside: Inside, lab: Lab, box: Box, user: User) -> None:
    """Make sure that a command acts as the user.

    Raises:
        NotRun: It does not.
    """
    path = new_path()
    ask_api(inside, box, path)
    if [row["user"] for row in asked(lab, path)] != [user.name]:
        raise NotRun("a request did not act as the user before anything failed: see BND-14")


def _until_it_raises(box: Box, user: User) -> Exception | None:
    """Run commands until one raises, for much longer than the credentials live."""
    over = time.monotonic() + _MOST_SECONDS
    known = len(user.bootstraps())
    while time.monotonic() < over:
        error = _raised(box)
        if error is not None:
            return error
        if len(user.bootstraps()) > known:
            return None  # it failed, and the command ran all the same
        time.sleep(_PAUSE_SECONDS)
    return None


def _raised(box: Box) -> Exception | None:
    try:
        box.execute("true")
    except VERDICTS:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it is judged
        return error
    return None


@verifies(BND_17)
@needs(opens=True, binding=MistralApiBinding)
def test_a_command_that_removes_the_environment_changes_nothing(inside: Inside, lab: Lab) -> None:
    """Once a command deleted or changed the file, the next one has its bindings or raises."""
    user = sandbox_proxy(lab).user()
    with acting(inside, user, [MistralApiBinding()]) as box:
        _acts(inside, lab, box, user)
        files = [file.path for file in files_with(box, lab, session_credential(box))]
        for deed in ("rm -f", "printf {} | tee"):
            for file in files:
                box.execute(f"{deed} '{file}'")
            try:
                credential = session_credential(box)
            except NotRun:
                credential = ""
            except SandboxError:
                return  # it stops, as it may
            if not credential:
                raise Violation(
                    f"a command did {deed!r} to the proxy's environment, and the next one ran "
                    "without it",
                    remedy="look at the file before each command, and put it back or raise",
                )
            _acts(inside, lab, box, user)
