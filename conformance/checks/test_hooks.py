"""HOK: hooks at the two ends of a session."""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from conformance.lab.census import Census
from conformance.marks import alone, needs, verifies
from conformance.requirements import HOK_01, HOK_02
from conformance.verdicts import Violation
from sandboxes.contract import SandboxCallbackContext, SandboxHook, SandboxStartError

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.subject.targets import Target
    from sandboxes.contract import RunningSandbox

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
        _listed[self.token] = list(await ctx.sandbox.inventory())
        raise _raised[self.token]


class Broken(Exception):
    """Raised by a hook of a check."""


class Quit(BaseException):
    """Raised by a hook of a check; no `except Exception` sees it pass."""


_raised: dict[str, BaseException] = {}
_listed: dict[str, list[str]] = {}


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

# What the inventory of an earlier sandbox named, by subject: all of that is shared, or gone.
_earlier: dict[str, frozenset[str]] = {}


def _opened_before(target: Target) -> frozenset[str]:
    """Open a sandbox once, so that what all of them share is there; give what it listed."""
    if target.name not in _earlier:
        with target.open() as box:
            box.execute("true")
            _earlier[target.name] = frozenset(box.inventory())
    return _earlier[target.name]


def _still_listed(target: Target, listed: set[str], running: RunningSandbox) -> list[str]:
    """What a sandbox had listed and is listed by it or by another one after its end."""
    if not listed:
        return []
    found: set[str] = set()
    with suppress(Exception):  # a closed sandbox need not answer
        found.update(target.box(running).inventory())
    with target.open() as another:
        found.update(another.inventory())
    return sorted(listed & found)


@verifies(HOK_01)
@needs(opens=True)
def test_hooks_run_once_at_each_end_of_a_session(target: Target) -> None:
    """`on_create` runs once in the ready sandbox before its use, `on_destroy` once at the close."""
    tokens = [f"hook{secrets.token_hex(4)}" for _ in range(2)]
    with target.session(hooks=tuple(Recorder(token) for token in tokens)) as box:
        for token in tokens:
            _happened(token, ["created", "used"], "when the session started")
            result = box.execute(f"cat {token}.txt")
            if result.stdout.strip() != token:
                raise Violation(
                    f"the file that on_create had written was {result.stdout!r} to the session",
                    remedy="give hooks the sandbox that the session uses",
                )
        for token in tokens:
            _happened(token, ["created", "used"], "in the middle of the session")
    for token in tokens:
        _happened(token, ["created", "used", "destroyed", "used"], "after the session")


@verifies(HOK_02)
@needs(opens=True)
@alone
@pytest.mark.parametrize(
    "kind",
    # Those that a backend may take for its own, and one that no handler expects.
    [Broken, OSError, TimeoutError, RuntimeError, ValueError, LookupError, SandboxStartError, Quit],
)
def test_an_error_in_on_create_reaches_the_caller_and_leaves_no_sandbox(
    target: Target, lab: Lab, kind: type[BaseException]
) -> None:
    """When `on_create` raises, the caller gets that very exception and the sandbox is deleted."""
    token, later = f"hook{secrets.token_hex(4)}", f"hook{secrets.token_hex(4)}"
    error = _raised[token] = kind(f"{token} was told to raise")
    opened: list[RunningSandbox] = []
    with lab.alone():
        shared = _opened_before(target)
        before = Census.take()
        got = _failure_of_a_start(target, opened, (Breaker(token), Recorder(later)))
        left = Census.take().left_since(before, _SANDBOX_KINDS)
    if got is not error:
        raise Violation(f"the caller got {got!r}, not the exception of the hook", remedy=_START)
    _happened(later, [], "behind the hook that raised,")
    if opened:  # a backend that ran the hook itself, before it was ready, never got so far
        left += _still_listed(target, set(_listed[token]) - shared, opened[0])
    if left:
        raise Violation(
            f"after the session that did not start there is left: {'; '.join(left)}",
            remedy="delete the sandbox on every way out of open()",
        )


_START = "let an exception of on_create end the start, and pass it on as it is"


def _failure_of_a_start(
    target: Target, opened: list[RunningSandbox], hooks: tuple[SandboxHook, ...]
) -> BaseException:
    try:
        with target.session(hooks=hooks, opened=opened):
            pass
    except Violation as violation:  # the target's own word for what is no Exception
        if violation.__cause__ is None:
            raise
        return violation.__cause__
    except Exception as raised:  # noqa: BLE001 - any kind is what hooks may raise
        return raised
    raise Violation("the session started though on_create had raised", remedy=_START)
