"""HOK: the session inputs that hooks declare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest

from conformance.bounds import BOUNDS
from conformance.marks import alone, needs, verifies
from conformance.probes.agents import an_agent
from conformance.probes.hook_notes import happened, new_token, note
from conformance.probes.leftovers import counting
from conformance.requirements import HOK_07, HOK_08
from conformance.subject.blame import shown
from conformance.verdicts import Violation
from sandboxes.contract import InvalidSessionInput, SandboxCallbackContext, SandboxHook
from sandboxes.contract.inputs import Depends, SessionInput

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.subject.targets import Target


class Repository(SessionInput):
    """What the check's hooks work on."""

    input_id = "conformance.repository"

    url: str
    depth: int = 1


class Ticket(SessionInput):
    """What only the end of a session works on."""

    input_id = "conformance.ticket"

    number: int


class Seeding(SandboxHook):
    """Note the inputs of each point."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def on_create(
        self, ctx: SandboxCallbackContext, repository: Annotated[Repository, Depends()]
    ) -> None:
        """Take one input."""
        note(self.token, (repository.url, repository.depth))

    async def on_destroy(
        self,
        ctx: SandboxCallbackContext,
        *,
        ticket: Annotated[Ticket, Depends()],
        repository: Annotated[Repository | None, Depends()] = None,
    ) -> None:
        """Take both."""
        note(self.token, (ticket.number, repository and repository.url))


class Plain(SandboxHook):
    """Takes none."""


_URL = "https://example.org/räuber.git"
_GIVEN: dict[str, Any] = {
    Repository.input_id: {"url": _URL, "depth": 3},
    Ticket.input_id: Ticket(number=7),
}
_SEEN = [(_URL, 3), (7, _URL)]
_REMEDY = "keep the very hooks that the constructor was given, and let the session call them"


@verifies(HOK_07)
@needs(opens=True)
@pytest.mark.parametrize("runtime", ["in_process", "deployed"])
def test_both_points_get_the_inputs_that_they_declare(
    target: Target, runtime: Literal["in_process", "deployed"]
) -> None:
    """Both points of a hook get the session inputs that they declare."""
    token = new_token()
    hooks = (Plain(), Seeding(token), Plain())
    agent = an_agent(environment=target.build(hooks=hooks), runtime=runtime)

    async def life() -> None:
        async with await agent.start_session(_GIVEN):
            pass

    try:
        target.run(life, "a session with inputs", remedy=_REMEDY)
    except InvalidSessionInput as error:
        raise Violation(
            f"a session with the inputs of its hooks was refused: {shown(error)}", remedy=_REMEDY
        ) from error
    happened(token, _SEEN, "in a session with inputs", _REMEDY)


_WRONG: dict[str, dict[str, Any]] = {
    "missing": {Ticket.input_id: {"number": 7}},
    "wrong": {**_GIVEN, Repository.input_id: {"url": _URL, "depth": "deep"}},
    "incomplete": {**_GIVEN, Repository.input_id: {"depth": 3}},
    "of another type": {**_GIVEN, Repository.input_id: Ticket(number=7)},
    "of the end": {**_GIVEN, Ticket.input_id: {"number": "seven"}},
    "unknown": {**_GIVEN, "conformance.nobody": {}},
}


@verifies(HOK_08)
@needs(opens=True)
@alone
def test_inputs_are_checked_before_the_sandbox_is_created(target: Target, lab: Lab) -> None:
    """A session whose inputs are wrong is refused with nothing created and no hook run."""
    token = new_token()
    with counting(target, lab) as left:
        for name, inputs in _WRONG.items():
            agent = an_agent(environment=target.build(hooks=(Plain(), Seeding(token))))
            error = _refusal(target, agent.start_session, inputs)
            if not isinstance(error, InvalidSessionInput):
                ended = "started" if error is None else f"was refused by {shown(error)}"
                raise Violation(f"a session whose input is {name} {ended}", remedy=_REMEDY)
    happened(token, [], "in sessions whose inputs are wrong", _REMEDY)
    left.judge("after sessions whose inputs are wrong", "create nothing before open()")


def _refusal(target: Target, start: Any, inputs: dict[str, Any]) -> Exception | None:  # noqa: ANN401 - a method
    try:
        session = target.run(lambda: start(inputs), "starting a session", remedy=_REMEDY)
    except Exception as error:  # noqa: BLE001 - the caller looks at it
        return error
    target.run(session.close, "closing the session", bound=BOUNDS.close)
    return None
