"""EXE: the text of a command, and the folder that it runs in."""

from __future__ import annotations

import itertools
import secrets
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.marks import needs, verifies
from conformance.probes.agents import an_agent
from conformance.requirements import EXE_05, EXE_06
from conformance.strategies import command_texts
from conformance.strategies.each import each
from conformance.strategies.outputs import Difference
from conformance.verdicts import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box
    from conformance.subject.targets import Target
    from sandboxes.contract import SandboxExecutionResult

_EXACT = "hand the text of a command to the shell as it is"


_numbers = itertools.count(1)


def _run(
    box: Box, command: str, file: str, what: str, *words: str
) -> SandboxExecutionResult | None:
    """Run a command that may be refused for what it holds; None if it was.

    Raises:
        Violation: The refusal does not say why, or came when a part of the command had run.
    """
    try:
        return box.execute(command)
    except Violation:
        raise
    except Exception as error:  # noqa: BLE001 - which kind of refusal is the sandbox's own
        said = " ".join(str(error).split())
        if not any(word in said.lower() for word in words):
            raise Violation(
                f"{what} in a command raised {type(error).__name__}: {said[:200]!r}",
                remedy=f"say that the command holds {what}",
            ) from None
        try:
            box.read_file(file)
        except FileNotFoundError:
            return None
        raise Violation(
            f"a command with {what} raised, and a part of it was run all the same",
            remedy=f"look for {what} before the command is run",
        ) from None


def _judge(box: Box, result: SandboxExecutionResult, command: str, file: str, wanted: str) -> None:
    """Judge a command by the file that it makes: its output may be changed on the way back."""
    try:
        got = box.read_file(file).decode(errors="replace")
    except FileNotFoundError:
        got = "no file at all"
    if result.exit_code != 0 or got != wanted:
        shown = command if len(command) <= 120 else f"{command[:117]}..."
        said = " ".join(result.stderr.split())[:120]
        raise Violation(
            f"{shown!r} gave exit_code={result.exit_code} and a file with "
            f"{Difference(wanted, got)} ({said or 'no error'})",
            remedy=_EXACT,
        )


def _arrives(box: Box, make: Callable[[str], tuple[str, str]]) -> None:
    file = f"word-{next(_numbers)}.txt"
    command, wanted = make(file)
    _judge(box, box.execute(command), command, file, wanted)


@verifies(EXE_05)
@needs(opens=True)
@given(word=command_texts.words, shape=st.sampled_from(command_texts.SHAPES))
@each("word", command_texts.WORDS, shape="single quotes")
@each("shape", command_texts.SHAPES, word=command_texts.WORDS[1])
def test_the_text_of_a_command_arrives_exactly(inside: Inside, word: str, shape: str) -> None:
    """Quotes, newlines, dollars, backslashes and all of Unicode reach the shell as they are."""
    _arrives(inside.narrowest(), partial(command_texts.command, shape, word))


@verifies(EXE_05)
@needs(opens=True)
@pytest.mark.parametrize(
    "fill", ["0123456789", "a 'b' $c\n", "漢"], ids=["digits", "quotes", "wide"]
)
def test_a_command_of_100_kb_arrives(inside: Inside, fill: str) -> None:
    """A command may be 100 kB long."""
    _arrives(inside.narrowest(), partial(command_texts.long_command, fill))


@verifies(EXE_05)
@needs(opens=True)
@pytest.mark.parametrize(
    "form", ["printf x > {}\0; exit 3", "\0printf x > {}", "printf x > {}\n\0"]
)
def test_a_nul_in_a_command_raises(inside: Inside, form: str) -> None:
    """A NUL in a command raises an error that says so, and nothing of it is run."""
    file = f"ran{secrets.token_hex(6)}"
    command = form.format(file)
    result = _run(inside.narrowest(), command, file, "a NUL", "nul", "\\0", "\\x00")
    if result is not None:
        raise Violation(
            f"a command with a NUL was taken (exit_code={result.exit_code})",
            remedy="raise ValueError for a command that holds a NUL",
        )


@verifies(EXE_05)
@needs(opens=True)
@pytest.mark.parametrize("shape", command_texts.SHAPES[:3])
def test_control_characters_arrive_or_are_refused(inside: Inside, shape: str) -> None:
    """A control character reaches the shell as it is, or the command is refused for it."""
    box = inside.narrowest()
    together = "".join(command_texts.CONTROLS)
    # Of one that refuses them, it is asked one by one.
    for word in (together, *command_texts.CONTROLS):
        file = f"word-{next(_numbers)}.txt"
        command, wanted = command_texts.command(shape, f"a{word}b", file)
        names = (f"u+{ord(word[-1]):04x}", f"\\x{ord(word[-1]):02x}", "control character")
        result = _run(box, command, file, "a control character", *names)
        if result is not None:
            _judge(box, result, command, file, wanted)
            if word == together:
                return


_SHARED = "keep one workspace for commands and for files"


@verifies(EXE_06)
@needs(opens=True)
@pytest.mark.parametrize("name", ["made.txt", "a folder/made here.txt", "ünïcode/漢.txt"])
def test_files_of_a_command_are_there_for_all(inside: Inside, name: str) -> None:
    """What a command leaves in the workspace is there for the next one and for `read_file`."""
    box = inside.narrowest()
    if folder := name.rpartition("/")[0]:  # that write_file makes it is a rule of its own
        box.execute(f"mkdir -p '{folder}'")
    box.write_file(name, b"given\n")
    text = secrets.token_hex(6)
    steps = (
        (f"cat '{name}'", "given\n"),
        (f"printf '%s\\n' {text} > '{name}'; printf more >> '{name}'", ""),
        (f"cat '{name}'", f"{text}\nmore"),
    )
    for command, wanted in steps:
        result = box.execute(command)
        if (result.exit_code, result.stdout) != (0, wanted):
            raise Violation(
                f"{command!r} gave {result}, not {wanted!r}, where write_file had made that file",
                remedy=_SHARED,
            )
    read = box.read_file(name)
    if read != f"{text}\nmore".encode():
        raise Violation(f"read_file({name!r}) gave {read[:100]!r}", remedy=_SHARED)


@verifies(EXE_06)
@needs(opens=True)
def test_every_command_begins_in_the_workspace(inside: Inside) -> None:
    """Each command begins in the workspace, wherever an earlier one went."""
    box = inside.narrowest()
    token = secrets.token_hex(6)
    box.write_file(f"{token}.txt", token.encode())
    first = box.execute("pwd; cd /; pwd").stdout.split("\n")
    then = box.execute(f"pwd; cat {token}.txt").stdout
    if then != f"{first[0]}\n{token}":
        raise Violation(
            f"a command began in {first[0]!r}, and after its 'cd /' the next one gave {then!r}",
            remedy="begin each command in the workspace",
        )


@verifies(EXE_06)
@needs(opens=True, access="files")
def test_the_agents_tools_see_the_files_of_commands(target: Target) -> None:
    """What a command leaves in the workspace is there for the agent's tools, and the reverse."""
    sandbox, token = target.build(), secrets.token_hex(6)

    async def use() -> tuple[str, str]:
        async with await an_agent(environment=sandbox).start_session() as session:
            await session.sandbox.execute(f"printf '%s' {token} > made.txt")
            seen = await session.tools["read_file"]("made.txt")
            await session.tools["write_file"]("given.txt", token)
            return str(seen), (await session.sandbox.execute("cat given.txt")).stdout

    seen, given = target.run(use, "using the tools of a session")
    if token not in seen or given != token:
        raise Violation(
            f"of a command's file the tool read_file had {seen[:100]!r}, and of the tool's file "
            f"a command had {given[:100]!r}",
            remedy=_SHARED,
        )
