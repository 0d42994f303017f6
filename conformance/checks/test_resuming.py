"""LIF-18: a session that is left in one place and goes on in another."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from conformance.bounds import BOUNDS
from conformance.marks import alone, needs, verifies
from conformance.probes import heartbeats
from conformance.probes.hook_notes import WHOLE, Noting, happened, new_token
from conformance.probes.leftovers import counting
from conformance.requirements import LIF_18
from conformance.verdicts import NotRun, Violation
from sandboxes.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.lab.client import Lab
    from conformance.subject.targets import Target
    from sandboxes.contract import SandboxHook

_REMEDY = "keep the sandbox of a detached session, for the one that brings what detach() returned"
_BODY = b"\x00kept\xff"


def _started(target: Target, session_id: str, resume: Any, *hooks: SandboxHook) -> Session:  # noqa: ANN401 - JSON
    sandbox = target.build(hooks=hooks)
    request = target.request(session_id, resume=resume)
    return target.run(lambda: Session.start(sandbox, request), "starting a session", remedy=_REMEDY)


def _through_json(target: Target, session: Session) -> Any:  # noqa: ANN401 - JSON
    """Detach a session, and take its state to another place."""
    state = target.run(session.detach, "detaching a session", remedy=_REMEDY)
    return json.loads(json.dumps(state))


def _closed(target: Target, session: Session) -> None:
    target.run(session.close, "closing a session", bound=BOUNDS.close, remedy=_REMEDY)


@verifies(LIF_18)
@needs(opens=True, resume=True)
@alone
def test_a_resumed_session_has_its_workspace_and_its_hooks(target: Target, lab: Lab) -> None:
    """A resumed session has its files, runs no hook a second time, and is deleted at its close."""
    token = new_token()
    with counting(target, lab) as left:
        session = _started(target, token, None, Noting(token))
        first = session.sandbox
        target.run(lambda: first.write_file("dir/kept", _BODY), "write_file", remedy=_REMEDY)
        for round_trip in ("once", "twice"):
            state = _through_json(target, session)
            happened(token, WHOLE[:2], "after a session was detached", _HOOKS)
            session = _started(target, token, state, Noting(token))
            happened(token, WHOLE[:2], "after a session was resumed", _HOOKS)
            found = target.run(_reading(session), "read_file in a resumed session", remedy=_REMEDY)
            if found != _BODY:
                raise Violation(f"resumed {round_trip}, its file held {found!r}", remedy=_REMEDY)
        _closed(target, session)
    happened(token, WHOLE, "after a session that was detached, resumed and closed", _HOOKS)
    left.judge("after a session that was resumed and closed")


_HOOKS = "run on_create in the first part of a session alone, on_destroy at its close alone"


def _reading(session: Session) -> Callable[[], Any]:
    return lambda: session.sandbox.read_file("dir/kept")


@verifies(LIF_18)
@needs(opens=True, resume=True, background=True)
def test_a_resumed_session_has_its_background_processes(target: Target) -> None:
    """A background process goes on while its session is away, and is stopped in the next part."""
    token = new_token()
    beat = heartbeats.loop(f"printf x >> {token}.beat; printf beat", seconds=20)
    session = _started(target, token, None)

    async def begin() -> str:
        started = await session.tools["process.start"](f"sh -c '{beat}'")
        return str(started.id)

    async def look() -> tuple[int, str]:
        count = await session.sandbox.execute(f"cat {token}.beat | wc -c")
        listed = await session.tools["process.list"]()
        return int(count.stdout.strip() or 0), str(listed)

    name = target.run(begin, "process.start", remedy=_REMEDY)
    session = _started(target, token, _through_json(target, session))
    try:
        before, listed = target.run(look, "process.list", remedy=_REMEDY)
        if name not in listed:
            raise Violation(f"a resumed session lists {listed}, without {name}", remedy=_REMEDY)
        if not _grows(target, look, before):
            raise Violation("a background process ended when its session was left", remedy=_REMEDY)
    finally:
        _closed(target, session)


def _grows(target: Target, look: Callable[[], Any], before: int) -> bool:
    deadline = heartbeats.QUIET_SECONDS * 3
    for _ in range(int(deadline / 0.2)):
        if target.run(look, "process.list", remedy=_REMEDY)[0] > before:
            return True
    if before == 0:
        raise NotRun("a background process writes nothing that a command finds: see PRC-02")
    return False
