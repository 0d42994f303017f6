"""EXE: whose commands are run, in what environment, and by which shell."""

from __future__ import annotations

import os
import secrets
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from conformance.marks import needs, verifies
from conformance.probes.variables import variable
from conformance.requirements import EXE_11, EXE_12, reference
from conformance.verdicts import NotApplicable, Violation
from sandboxes.contract import SandboxStartError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.subject.facade import Box
    from conformance.subject.targets import Target

_VALUES = ("plain", "two words", 'it\'s "$HOME" and \\n', "line\nline", "a=b", "naïve 漢", "")


def _needs_the_local_one(target: Target) -> None:
    if not reference.is_a(target.cls, "DangerousLocalSandbox"):
        raise NotApplicable(f"{target.cls.__name__} is no DangerousLocalSandbox")


@verifies(EXE_11)
@needs(opens=True)
def test_commands_run_as_the_user_of_this_process(target: Target) -> None:
    """Commands of `DangerousLocalSandbox` run as the user of the process, in its groups."""
    _needs_the_local_one(target)
    with target.open() as box:
        ids = box.execute("id -u; id -g; id -G").stdout.splitlines()
    groups = {str(group) for group in (os.getegid(), *os.getgroups())}
    if (
        ids[:2] != [str(os.geteuid()), str(os.getegid())]
        or set(" ".join(ids[2:]).split()) != groups
    ):
        raise Violation(
            f"'id' told {ids}, and this process is {os.geteuid()}, {os.getegid()}, "
            f"{sorted(groups)}",
            remedy="run commands as the user of the process",
        )


@verifies(EXE_11)
@needs(opens=True)
@pytest.mark.parametrize("value", _VALUES, ids=range(len(_VALUES)))
def test_commands_see_the_environment_of_this_process(target: Target, value: str) -> None:
    """Commands of `DangerousLocalSandbox` see every variable of the process, unchanged."""
    _needs_the_local_one(target)
    name = f"CONFORMANCE_{secrets.token_hex(6).upper()}"
    with variable(name, value), target.open() as box:
        result = box.execute(f"printf '%s' \"${{{name}-unset}}\"; printf '\\n%s' \"$HOME\"")
    if result.stdout != f"{value}\n{os.environ.get('HOME', '')}":
        raise Violation(
            f"of {name}={value!r} and HOME a command had {result.stdout[:200]!r}",
            remedy="hand commands the environment of the process",
        )


_TELL = (
    'printf "%s\\n" "${0##*/}" "${BASH_VERSION:+bash}"; '
    "case \"$SHELLOPTS\" in *posix*) printf 'posix\\n';; esac; "
    'read -r name < /proc/$$/comm; printf "%s\\n" "$name"'
)


@contextmanager
def _where_there_is_bash(target: Target, options: dict[str, Any]) -> Iterator[Box]:
    with ExitStack() as stack:
        try:
            box = stack.enter_context(target.open(**options))
        except SandboxStartError as refused:
            if target.has_option("image") and "bash" in str(refused):
                raise NotApplicable(f"there is no bash in its image: {refused}") from refused
            raise
        yield box


@verifies(EXE_12)
@needs(opens=True, option="shell")
@pytest.mark.parametrize("shell", [None, "bash"])
def test_the_shell_is_bash_by_default(target: Target, shell: str | None) -> None:
    """Commands are run by bash, in its own mode, where no other shell was asked for."""
    # Where the user's options name another shell, None is the documented default.
    options = {} if shell is None and "shell" not in target.options else {"shell": shell}
    with _where_there_is_bash(target, options) as box:
        told = box.execute(_TELL).stdout.split()
        words = box.execute('x=(a "b c"); printf "%s" "${x[1]}"')
    if "bash" not in told or "posix" in told or words.stdout != "b c":
        raise Violation(
            f"with shell={shell!r} the shell told {told}, and an array had {words.stdout!r}",
            remedy='run commands by bash, unless shell="sh"',
        )


@verifies(EXE_12)
@needs(opens=True, option="shell")
def test_sh_runs_sh(target: Target) -> None:
    """With `shell="sh"` commands are run by the program of that name."""
    options: dict[str, Any] = {"shell": "sh"}
    with target.open(**options) as box:
        result = box.execute(_TELL)
    # Where sh is bash by another name, it is in POSIX mode.
    told = result.stdout.split()
    if "sh" not in told or ("bash" in told and "posix" not in told):
        raise Violation(
            f"with shell='sh' the shell told {told}",
            remedy='run commands by sh where shell="sh"',
        )
