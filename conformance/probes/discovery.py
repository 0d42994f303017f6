"""Which network clients a live sandbox has: asked inside, and answered by what is computed there.

A fake that echoes its commands has none, and a sandbox in which the questions get no
answer at all is told apart from one that answered no.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.probes import clients
from conformance.verdicts import NotRun

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.probes.clients import Client
    from conformance.subject.facade import Box

_SECONDS = 8.0
_END = "echo end=$((40 + 2))"


def found(box: Box) -> tuple[Client, ...]:
    """Ask a live sandbox which clients it has.

    Raises:
        NotRun: No question was answered, so that nothing can be probed.
    """
    programs = list(dict.fromkeys(client.program for client in clients.ALL))
    there = _there(box, programs)
    if there is None:
        # One that loses everything may still answer small questions.
        answers = {program: _there(box, [program]) for program in programs}
        if all(answer is None for answer in answers.values()):
            raise NotRun(
                "no probe showed its output inside (`command -v curl; echo end=$((40 + 2))` "
                "printed no end=42), so nothing can be said of the network; give back what "
                "commands print: see EXE-01"
            )
        there = set().union(*(answer or () for answer in answers.values()))
    return tuple(
        client
        for client in clients.ALL
        if client.program in there and (not client.usable or _usable(box, client.usable))
    )


def _there(box: Box, programs: Iterable[str]) -> set[str] | None:
    """Which of these programs the shell finds; None where the question had no answer."""
    tests = [
        f"command -v {program} >/dev/null 2>&1 && echo {program}=$((40 + 2))"
        for program in programs
    ]
    printed = box.execute("; ".join([*tests, _END]), timeout_seconds=_SECONDS).stdout.split()
    if "end=42" not in printed:
        return None
    return {program for program in programs if f"{program}=42" in printed}


def _usable(box: Box, test: str) -> bool:
    """Whether a test succeeds; one that ends in no answer counts as usable.

    A client that is tried in vain costs time; one that is left out hides what it lets out.
    """
    line = f"{{ {test}; }} >/dev/null 2>&1 && echo usable=$((40 + 2)); {_END}"
    printed = box.execute(line, timeout_seconds=_SECONDS).stdout.split()
    return "usable=42" in printed or "end=42" not in printed
