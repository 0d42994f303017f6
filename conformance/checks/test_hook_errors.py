"""HOK: hooks that raise, and what becomes of the session, its sandbox and the log."""

from __future__ import annotations

import os
from asyncio import CancelledError
from typing import TYPE_CHECKING, Literal

import pytest

from conformance.bounds import BOUNDS
from conformance.marks import alone, needs, verifies
from conformance.probes.agents import an_agent
from conformance.probes.hook_notes import (
    WHOLE,
    Noting,
    RaisingAtTheEnd,
    RaisingAtTheStart,
    happened,
    new_token,
    told_to_raise,
)
from conformance.probes.leftovers import counting
from conformance.probes.logs import logged, shown_by_a_server
from conformance.requirements import HOK_03, HOK_04, HOK_18
from conformance.subject.blame import shown
from conformance.verdicts import Violation
from sandboxes.contract import SessionFailed
from sandboxes.deployed import DEBUG_VARIABLE

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.subject.targets import Target
    from sandboxes.contract import SandboxHook

Runtime = Literal["in_process", "deployed"]


class Broken(Exception):
    """Raised by a hook of a check."""


_PASS = "let an error of a hook pass through open() as it is"


def _failed_start(target: Target, hook: SandboxHook) -> Exception:
    agent = an_agent(environment=target.build(hooks=(hook,)), runtime="deployed")
    try:
        session = target.run(agent.start_session, "starting a session", remedy=_PASS)
    except Exception as error:  # noqa: BLE001 - it is judged by the caller
        return error
    target.run(session.close, "closing the session", bound=BOUNDS.close)
    raise Violation("a deployed session started though on_create had raised", remedy=_PASS)


def _all_that_it_tells(error: BaseException | None) -> str:
    told = []
    while error is not None:
        told += [str(error), *getattr(error, "__notes__", ())]
        error = error.__cause__ or error.__context__
    return " ".join(told)


@verifies(HOK_03)
@needs(opens=True)
@pytest.mark.parametrize("kind", [Broken, TimeoutError])
def test_a_deployed_session_that_fails_tells_hook_and_type_alone(
    target: Target, kind: type[Exception]
) -> None:
    """A deployed session with a failing hook fails by its name and the error's type alone."""
    token = new_token()
    told_to_raise(token, kind(f"secret of {token}"))
    with logged() as texts:
        error = _failed_start(target, RaisingAtTheStart(token))
    if not isinstance(error, SessionFailed):
        raise Violation(f"a deployed session ended by {shown(error)}", remedy=_PASS)
    told = _all_that_it_tells(error)
    if "RaisingAtTheStart" not in told or kind.__name__ not in told or token in told:
        raise Violation(f"a deployed session that failed told {told!r}", remedy=_PASS)
    if not any(f"secret of {token}" in text for text in texts):
        raise Violation("what the hook had raised was not in the log", remedy=_LOG)


_LOG = "leave the log, its level and the loggers of others as they are"


@verifies(HOK_03)
@needs(opens=True)
@pytest.mark.parametrize("debugging", [False, True])
def test_a_server_shows_a_hooks_error_when_debugging_alone(
    target: Target, monkeypatch: pytest.MonkeyPatch, *, debugging: bool
) -> None:
    """A server shows the whole error of a hook under AGENTS_SDK_DEBUG=1, and not otherwise."""
    token = new_token()
    told_to_raise(token, Broken(f"secret of {token}"))
    monkeypatch.delenv(DEBUG_VARIABLE, raising=False)
    if debugging:
        monkeypatch.setenv(DEBUG_VARIABLE, "1")
    with logged(), shown_by_a_server() as stream:
        _failed_start(target, RaisingAtTheStart(token))
    was_shown = f"secret of {token}" in stream.getvalue()
    if was_shown is not debugging:
        now = f"{DEBUG_VARIABLE}={os.environ.get(DEBUG_VARIABLE, '')!r} at the end"
        raise Violation(
            f"a server {'showed' if was_shown else 'did not show'} a hook's error ({now})",
            remedy="leave the log and the environment of this process as they are",
        )


@verifies(HOK_04)
@needs(opens=True)
@pytest.mark.parametrize(
    ("kind", "runtime"),
    [(Broken, "in_process"), (OSError, "deployed"), (CancelledError, "in_process")],
)
def test_an_error_in_on_destroy_is_logged_and_the_other_hooks_run(
    target: Target, kind: type[BaseException], runtime: Runtime
) -> None:
    """An error in `on_destroy` is logged, reaches nobody, and the other hooks still run."""
    first, raising, last = new_token(), new_token(), new_token()
    told_to_raise(raising, kind(f"the end of {raising}"))
    hooks = (Noting(first), RaisingAtTheEnd(raising), Noting(last))
    agent = an_agent(environment=target.build(hooks=hooks), runtime=runtime)
    with logged() as texts:
        session = target.run(agent.start_session, "starting a session")
        target.run(
            session.close,
            "closing a session whose on_destroy raises",
            bound=BOUNDS.close,
            remedy="delete the sandbox without an error, whatever its commands ended with",
        )
    happened(raising, ["destroyed"], "after the close", _OTHERS)
    for token in (first, last):
        happened(token, WHOLE, "after a close at which another hook had raised,", _OTHERS)
    if not any(f"the end of {raising}" in text for text in texts):
        raise Violation("what on_destroy had raised was not in the log", remedy=_LOG)


_OTHERS = "keep the sandbox usable until every hook has ended"


@verifies(HOK_18)
@needs(opens=True)
@alone
@pytest.mark.parametrize("kind", [Broken, OSError])
def test_the_sandbox_is_deleted_after_an_on_destroy_that_raised(
    target: Target, lab: Lab, kind: type[Exception]
) -> None:
    """The sandbox is deleted even after an `on_destroy` that raised."""
    token = new_token()
    told_to_raise(token, kind(f"the end of {token}"))
    with counting(target, lab) as left, target.session(hooks=(RaisingAtTheEnd(token),)) as box:
        box.execute("printf x > made")
    happened(token, ["destroyed"], "after the close", _OTHERS)
    left.judge("after an on_destroy that raised")
