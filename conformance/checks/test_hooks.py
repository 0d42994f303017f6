"""HOK: hooks at the two ends of a session."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from conformance.lab.census import Census
from conformance.marks import needs, verifies
from conformance.requirements import HOK_01, HOK_02
from conformance.verdicts import Violation
from sandboxes.contract import SandboxCallbackContext, SandboxHook

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.targets import Target

# What happened to a hook, by the token that it was constructed with: a hook keeps no
# state of its own, and may be rebuilt from its arguments.
_events: dict[str, list[str]] = {}


class Recorder(SandboxHook):
    """Note each point, and whether the sandbox is usable there."""

    def __init__(self, token: str) -> None:
        self.token = token

    def note(self, event: str) -> None:
        """Add to what happened."""
        _events.setdefault(self.token, []).append(event)

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        """Leave a file, and read it back."""
        self.note("created")
        wrote = await ctx.sandbox.execute(f"printf %s {self.token} > {self.token}.txt")
        read = await ctx.sandbox.read_file(f"{self.token}.txt")
        if wrote.exit_code == 0 and read == self.token.encode():
            self.note("used")

    async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
        """Read the file again."""
        self.note("destroyed")
        result = await ctx.sandbox.execute(f"cat {self.token}.txt")
        if result.stdout.strip() == self.token:
            self.note("used")


class Breaker(SandboxHook):
    """Raise at the start, the very object that the check waits for."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        """Run a command first, so that the sandbox surely exists."""
        await ctx.sandbox.execute("true")
        _events.setdefault(self.token, []).append("created")
        raise _raised[self.token]


class Broken(Exception):
    """Raised by a hook of a check."""


_raised: dict[str, Broken] = {}


def _happened(token: str, wanted: list[str], when: str) -> None:
    seen = _events.get(token, [])
    if seen != wanted:
        raise Violation(
            f"{when} a hook had seen {seen or 'nothing'}, not {wanted}",
            remedy="run on_create once when the sandbox is ready, on_destroy once before it goes",
        )


# What a sandbox consists of. Threads and open files of a library that stays loaded are
# another requirement's.
_SANDBOX_KINDS = ("process", "file entry", "mount")


def _sandbox_left_since(before: Census) -> list[str]:
    now = Census.take()
    return [
        line
        for (kind, identity), line in now.items.items()
        if kind in _SANDBOX_KINDS and (kind, identity) not in before.items
    ]


@verifies(HOK_01)
@needs(opens=True)
def test_hooks_run_once_at_each_end_of_a_session(target: Target) -> None:
    """`on_create` runs once in the ready sandbox before its use, `on_destroy` once at the close."""
    token = f"hook{secrets.token_hex(4)}"
    with target.session(hooks=(Recorder(token),)) as box:
        _happened(token, ["created", "used"], "when the session started")
        result = box.execute(f"cat {token}.txt")
        if result.stdout.strip() != token:
            raise Violation(
                f"the file that on_create had written was {result.stdout!r} to the session",
                remedy="give hooks the sandbox that the session uses",
            )
        _happened(token, ["created", "used"], "in the middle of the session")
    _happened(token, ["created", "used", "destroyed", "used"], "after the session")


@verifies(HOK_02)
@needs(opens=True)
def test_an_error_in_on_create_reaches_the_caller_and_leaves_no_sandbox(
    target: Target, lab: Lab
) -> None:
    """When `on_create` raises, the caller gets that very exception and the sandbox is deleted."""
    token, later = f"hook{secrets.token_hex(4)}", f"hook{secrets.token_hex(4)}"
    error = _raised[token] = Broken(f"{token} was told to raise")
    with lab.alone():
        before = Census.take()
        got: BaseException | None = None
        try:
            with target.session(hooks=(Breaker(token), Recorder(later))):
                raise Violation("the session started though on_create had raised", remedy=_START)
        except Broken as raised:
            got = raised
        left = _sandbox_left_since(before)
    if got is not error:
        raise Violation(f"the caller got {got!r}, not the exception of the hook", remedy=_START)
    _happened(later, [], "behind the hook that raised,")
    if left:
        raise Violation(
            f"after the session that did not start there is left: {'; '.join(left)}",
            remedy="delete the sandbox on every way out of open()",
        )


_START = "let an exception of on_create end the start, and pass it on as it is"
