"""TMO: the limit of a command that brings none, and of one that brings its own."""

from __future__ import annotations

import math
import secrets
from functools import partial
from typing import TYPE_CHECKING

from conformance.marks import needs, side_by_side, verifies
from conformance.probes.beside import at_once
from conformance.probes.defaults import OPTION, can_be_changed, documented, small_default
from conformance.requirements import TMO_06, TMO_07
from conformance.verdicts import NotApplicable, Violation
from sandboxes.contract import SandboxCallbackContext, SandboxHook

if TYPE_CHECKING:
    from typing import Any

    from conformance.subject.targets import Target

TIMED_OUT = 124
_IN_TIME = "sleep 1.4; exit 7"
_LONG = "sleep 2.5; exit 7"


@verifies(TMO_06)
@needs(opens=True)
def test_the_default_limit_is_told_and_is_the_documented_one(target: Target) -> None:
    """`default_timeout_seconds` tells the default limit, of the sandbox and of its session."""
    wanted = target.options.get(OPTION) or documented(target)
    with target.open() as box:
        told = box.default_timeout_seconds
    if not math.isfinite(told) or wanted not in (None, told):
        raise Violation(
            f"default_timeout_seconds is {told!r}, not {wanted or 'a finite number'}",
            remedy="give commands the documented limit, and tell it",
        )
    with target.session() as box:
        if box.default_timeout_seconds != told:
            raise Violation(
                f"default_timeout_seconds is {box.default_timeout_seconds!r} in a session and "
                f"{told!r} in the sandbox",
                remedy="tell the same limit in both",
            )


@verifies(TMO_06)
@needs(opens=True, option=OPTION)
def test_the_option_sets_the_default_limit(target: Target) -> None:
    """`default_exec_timeout_seconds` is what `default_timeout_seconds` tells."""
    for seconds in (7, 1234):
        options: dict[str, Any] = {OPTION: seconds}
        with target.open(**options) as box:
            told = box.default_timeout_seconds
        if told != seconds:
            raise Violation(
                f"{OPTION}={seconds} gave default_timeout_seconds={told!r}",
                remedy=f"take the default limit from {OPTION}",
            )


@side_by_side
@verifies(TMO_06)
@needs(opens=True)
def test_a_command_without_a_limit_gets_the_default(target: Target) -> None:
    """A command that brings no limit ends at the default one, with exit code 124."""
    with small_default(target, 1).open() as box:
        result = box.execute(_LONG)
    if result.exit_code == TIMED_OUT:
        return
    if not can_be_changed(target):
        raise NotApplicable(f"it has no option {OPTION}, and its default cannot be changed")
    raise Violation(
        f"with a default of 1 s {_LONG!r} gave exit_code={result.exit_code}",
        remedy="end a command without a limit of its own at default_timeout_seconds",
    )


@side_by_side
@verifies(TMO_07)
@needs(opens=True)
def test_a_limit_of_its_own_wins_over_the_default(target: Target) -> None:
    """The explicit limit of a command wins, be it longer than the default or shorter."""
    with target.open() as plain, small_default(target, 1).open() as box:
        longer, shorter = at_once(
            [
                lambda: box.execute(_IN_TIME, timeout_seconds=30),
                lambda: plain.execute(_IN_TIME, timeout_seconds=0.5),
            ]
        )
    for result, wanted, told in (
        (longer, 7, f"with a default of 1 s, {_IN_TIME!r} under timeout_seconds=30"),
        (shorter, TIMED_OUT, f"{_IN_TIME!r} under timeout_seconds=0.5"),
    ):
        if result.exit_code != wanted:
            raise Violation(
                f"{told} gave exit_code={result.exit_code}, not {wanted}",
                remedy="let timeout_seconds win over the default",
            )


_BRIEF = 0.4


@side_by_side
@verifies(TMO_07)
@needs(opens=True)
def test_a_limit_is_that_of_one_command(target: Target) -> None:
    """The explicit limit of a command is not the default of those after it."""
    with target.open() as box:
        if box.default_timeout_seconds < 2 * _BRIEF:
            raise NotApplicable(f"its default is below {2 * _BRIEF:g} s")
        box.execute("true", timeout_seconds=_BRIEF)
        code = box.execute(f"sleep {1.5 * _BRIEF:g}; exit 7").exit_code
    if code == TIMED_OUT:
        raise Violation(
            f"after one under timeout_seconds={_BRIEF:g}, a command of {1.5 * _BRIEF:g} s without "
            f"a limit of its own gave exit_code={code}",
            remedy="keep timeout_seconds to the one command that it came with",
        )


# What the commands of a hook gave, by the token that the hook was constructed with.
_codes: dict[str, list[int]] = {}


class Slow(SandboxHook):
    """Run a command that takes longer than the default limit, at one end of the session."""

    def __init__(self, token: str, end: str) -> None:
        self.token = token
        self.end = end

    async def run(self, ctx: SandboxCallbackContext, end: str) -> None:
        """Note how it ends."""
        if end == self.end:
            result = await ctx.sandbox.execute(_LONG)
            _codes.setdefault(self.token, []).append(result.exit_code)

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        """At the beginning."""
        await self.run(ctx, "on_create")

    async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
        """At the end."""
        await self.run(ctx, "on_destroy")


@side_by_side
@verifies(TMO_07)
@needs(opens=True)
def test_the_default_bounds_the_commands_of_hooks(target: Target) -> None:
    """A hook's command that brings no limit ends at the default one."""
    token, short = f"hook{secrets.token_hex(4)}", small_default(target, 1)

    def session(end: str) -> None:
        with short.session(hooks=(Slow(token, end),)):
            pass

    at_once([partial(session, "on_create"), partial(session, "on_destroy")])
    codes = _codes.get(token, [])
    if codes.count(TIMED_OUT) >= 2:  # whether there are more is HOK-01's
        return
    with short.open() as box:
        control = box.execute(_LONG).exit_code
    if control != TIMED_OUT and not can_be_changed(target):
        raise NotApplicable(f"it has no option {OPTION}, and its default cannot be changed")
    raise Violation(
        f"with a default of 1 s, {_LONG!r} gave the exit codes {codes} in on_create and "
        "on_destroy of hooks",
        remedy="give the commands of hooks the limits that all commands have",
    )
