"""What happened to the hooks of a check, by the tokens that they were built with.

A hook keeps nothing of its own between its points, and may be rebuilt from its arguments
at each: so what it saw is written down here.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from conformance.verdicts import Violation
from sandboxes.contract import SandboxCallbackContext, SandboxHook

if TYPE_CHECKING:
    from collections.abc import Sequence

_notes: dict[str, list[Any]] = {}
_errors: dict[str, BaseException] = {}


def new_token() -> str:
    """Give a token that was never used."""
    return f"hook{secrets.token_hex(4)}"


def note(token: str, what: Any) -> None:  # noqa: ANN401 - whatever a check asks for later
    """Write down what happened."""
    _notes.setdefault(token, []).append(what)


def noted(token: str) -> list[Any]:
    """Give what was written down, in its order."""
    return list(_notes.get(token, ()))


def happened(token: str, wanted: Sequence[Any], when: str, remedy: str) -> None:
    """Judge what was written down.

    Raises:
        Violation: It is something else.
    """
    seen = noted(token)
    if seen != list(wanted):
        raise Violation(
            f"{when} hooks had noted {seen or 'nothing'}, not {list(wanted)}", remedy=remedy
        )


def told_to_raise(token: str, error: BaseException) -> BaseException:
    """Let hooks of this token that raise raise this very object."""
    _errors[token] = error
    return error


async def uses(ctx: SandboxCallbackContext, token: str) -> None:
    """Note whether the sandbox is usable."""
    result = await ctx.sandbox.execute(f"printf '%s\\n' {token}")
    if token in result.stdout.split():
        note(token, "used")


class Noting(SandboxHook):
    """Note each point, and whether the sandbox is usable there."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        """Use the sandbox."""
        note(self.token, "created")
        await uses(ctx, self.token)

    async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
        """Use it again."""
        note(self.token, "destroyed")
        await uses(ctx, self.token)


WHOLE = ("created", "used", "destroyed", "used")
"""What `Noting` notes of a whole session."""


class RaisingAtTheStart(SandboxHook):
    """Raise in `on_create` what the token stands for."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        """Run a command first, so that the sandbox surely exists."""
        await ctx.sandbox.execute("true")
        note(self.token, "created")
        raise _errors[self.token]

    async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
        """Note it."""
        note(self.token, "destroyed")


class RaisingAtTheEnd(SandboxHook):
    """Raise in `on_destroy` what the token stands for, after a command that fails."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
        """Run a failing command, and raise."""
        note(self.token, "destroyed")
        await ctx.sandbox.execute("exit 3")
        raise _errors[self.token]
