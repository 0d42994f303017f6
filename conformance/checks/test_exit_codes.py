"""EXE: the exit code of a command, whatever gave it."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from conformance.marks import needs, verifies
from conformance.requirements import EXE_02
from conformance.strategies.each import each
from conformance.verdicts import Violation

if TYPE_CHECKING:
    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box

_SAID = {
    "no-such-command-anywhere": 127,
    "./no-such-file": 127,
    "printf 'exit 3\\n' > {name}; ./{name}": 126,
    "/": 126,
    # A shell that is told to stop at an error is the command's own.
    "set -e; false; exit 3": 1,
    "true; printf 'no end'; exit 5": 5,
    "exit 6 # with a comment": 6,
    "false\n": 1,
    "": 0,
    " \n": 0,
    "# nothing but a comment": 0,
}
_REMEDY = "return the exit code of the shell that ran the command, as the shell counts"


def _judge(box: Box, command: str, wanted: int, remedy: str = _REMEDY) -> None:
    result = box.execute(command)
    if result.exit_code != wanted:
        said = " ".join(result.stderr.split())[:120]
        raise Violation(
            f"{command!r} gave exit_code={result.exit_code}, not {wanted} ({said or 'no error'})",
            remedy=remedy,
        )


@verifies(EXE_02)
@needs(opens=True)
@given(code=st.integers(0, 255), form=st.sampled_from(("exit {}", "(exit {})", "sh -c 'exit {}'")))
@each("code", (0, 1, 2, 124, 125, 126, 127, 128, 130, 137, 143, 255), form="exit {}")
@each("code", (0, 1, 137, 255), form="(exit {})")
def test_exit_codes_are_exact(inside: Inside, code: int, form: str) -> None:
    """Each of the codes 0 to 255 comes back as it is, whoever gave it."""
    _judge(inside.narrowest(), form.format(code), code)


@verifies(EXE_02)
@needs(opens=True)
def test_what_the_shell_says_comes_back(inside: Inside) -> None:
    """What is not found is 127, what cannot run is 126, and the rest is what the shell gives."""
    for command, code in _SAID.items():
        _judge(inside.narrowest(), command.format(name=f"file{secrets.token_hex(6)}"), code)


_SIGNALS = {"HUP": 1, "INT": 2, "KILL": 9, "USR1": 10, "PIPE": 13, "ALRM": 14, "TERM": 15}
_SURVIVED = 42


@verifies(EXE_02)
@needs(opens=True, processes=True)
def test_death_by_a_signal_is_128_and_its_number(inside: Inside) -> None:
    """A command that died by a signal gives 128 and the signal's number."""
    for name, number in _SIGNALS.items():
        command = f"kill -{name} $$; exit {_SURVIVED}"
        result = inside.narrowest().execute(command)
        # The first process of a namespace of its own gets no signal from itself.
        if result.exit_code not in (128 + number, _SURVIVED):
            raise Violation(
                f"{command!r} gave exit_code={result.exit_code}, not {128 + number}",
                remedy="return 128 and the number of the signal that ended the command",
            )


@verifies(EXE_02)
@needs(opens=True, processes=True)
def test_commands_begin_with_no_signal_shut_off(inside: Inside) -> None:
    """What a command starts dies by each signal: none is ignored from outside."""
    remedy = "start commands with the default action of every signal"
    for name, number in _SIGNALS.items():
        # A child: the first process of a namespace would be spared.
        command = f"sh -c 'kill -{name} $$; exit {_SURVIVED}'; exit $?"
        _judge(inside.narrowest(), command, 128 + number, remedy)
