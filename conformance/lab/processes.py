"""Starting the command and reading how a process ended; shared by both modes."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from conformance.lab.plan import Plan

_NOT_FOUND = 127
_NOT_EXECUTABLE = 126


def exit_code_of(status: int) -> int:
    """Give the shell's number for a wait status: 128 + n for an end by signal n."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def close_all(descriptors: Iterable[int]) -> None:
    """Close descriptors, those that are closed already included."""
    for descriptor in descriptors:
        with suppress(OSError):
            os.close(descriptor)


def leave_group(other: int = 0) -> None:
    """Leave the process group of the command, which may signal its own group as a whole.

    Args:
        other: the group to join; by default one of its own.
    """
    with suppress(PermissionError):  # the group to join is of another session: stay
        os.setpgid(0, other)


def fork(action: Callable[[], object]) -> int:
    """Run `action` in a child, which ends with 0, or with 1 and a traceback; give its id."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        action()
        code = 0
    finally:  # nothing may climb on into what is the parent's to do, or to undo
        if code:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)


def exec_command(plan: Plan, environ: Mapping[str, str]) -> NoReturn:
    """Become the command; call it in a fresh fork.

    An ignored signal stays ignored across exec, so the handling is put back first.
    """
    for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.chdir(plan.cwd)
        os.execvpe(plan.command[0], plan.command, environ)  # noqa: S606 - the whole purpose
    except OSError as refused:
        message = f"the command {plan.command[0]} cannot be run: {refused.strerror}\n"
        sys.stderr.write(message)
        sys.stderr.flush()
        missing = isinstance(refused, FileNotFoundError)
        os._exit(_NOT_FOUND if missing else _NOT_EXECUTABLE)
