"""Commands that do not end by themselves before their limit, each in a way of its own."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

from conformance.probes.heartbeats import loop, own_session

BEAT, NOTE = "{beat}", "{note}"
"""Stand for the names of files: one that grows while the command lives, and one that it leaves."""

_BEATS = loop(f"printf x >> {BEAT}")
_CLEAN_UP_SECONDS = 3.5


@dataclass(frozen=True, slots=True)
class Overrun:
    """A command that takes longer than its limit.

    Args:
        name: What it is called in messages.
        text: Shell text, with `BEAT` and `NOTE`.
        shows: What it is for, beside the exit code and the time.
    """

    name: str
    text: str
    shows: frozenset[str] = field(default_factory=frozenset)


def _for(*shows: str) -> frozenset[str]:
    return frozenset(shows)


_LINE = "0123456789" * 20

COMMON = (
    Overrun("sleeping", "sleep 30"),
    Overrun("busy", "while :; do :; done"),
    # The note comes last: what is there tells that the output was written before.
    Overrun(
        "writing and then sleeping",
        f"printf 'first\\nno end'; printf 'trouble\\n' >&2; printf x > {NOTE}; sleep 30",
        _for("output"),
    ),
    # It ends within the grace: what counts the silence alone sees no limit passed.
    Overrun("printing", loop("printf 'more\\n'", 4)),
    Overrun("flooding", f"while :; do printf '%s\\n' {_LINE}; done"),
    Overrun("trapping TERM", f"trap 'exit 0' TERM; {loop()}"),
    Overrun("ignoring TERM", f"trap '' TERM; {_BEATS}", _for("end", "stubborn")),
    # Who waits for the end of its output has that at once.
    Overrun("with its output closed", "exec >&- 2>&-; sleep 30"),
    Overrun("with its output elsewhere", f"exec > /dev/null 2>&1; {_BEATS}", _for("end")),
    Overrun("a subshell", f"({_BEATS}); :", _for("end")),
    Overrun("a pipeline", "sleep 30 | cat"),
    Overrun("waiting for a job", "sleep 30 & wait"),
    Overrun(
        "under another limit",
        "if command -v timeout > /dev/null; then timeout 40 sleep 30; else sleep 30; fi",
    ),
)
"""For every sandbox."""

_CHILD = shlex.quote(_BEATS)
_STUBBORN_CHILD = shlex.quote(f"trap '' TERM; {_BEATS}")
_GROUP = shlex.quote(f"set -m; ({_BEATS}) & wait")
PROCESSES = (
    Overrun("stopped", "kill -STOP $$; sleep 30"),
    Overrun("stopped beside a child", f"({_BEATS}) & kill -STOP $$; wait", _for("children")),
    Overrun("a child in the background", f"sh -c {_CHILD} & wait", _for("children")),
    Overrun(
        "a child in a process group of its own",
        # Other shells have job control only at a terminal.
        f"command -v bash > /dev/null && exec bash -c {_GROUP}; sh -c {_CHILD} & wait",
        _for("children"),
    ),
    Overrun(
        "a child that ignores TERM", f"sh -c {_STUBBORN_CHILD} & wait", _for("children", "stubborn")
    ),
    Overrun("a child fed by the script", f"sh <<'END'\n{_BEATS}\nEND", _for("children")),
    Overrun("a child that was forked twice", f"(sh -c {_CHILD} &); sleep 30", _for("escapes")),
    Overrun(
        "a child in a session of its own", own_session(_CHILD, "wait"), _for("escapes", "setsid")
    ),
    Overrun(
        "a child forked twice into a session of its own",
        f"({own_session(_CHILD, ':')}); sleep 30",
        _for("escapes", "setsid"),
    ),
    Overrun(
        "cleaning up at TERM",
        f"trap 'sleep {_CLEAN_UP_SECONDS} && printf x > {NOTE}; exit 7' TERM; {loop()}",
        _for("trap"),
    ),
)
"""For those whose commands are processes."""

CANCELLED = (
    Overrun("a loop", _BEATS, _for("cancelled")),
    Overrun("a child", f"({_BEATS}); :", _for("cancelled")),
    Overrun("a job", f"({_BEATS}) & wait", _for("cancelled")),
    Overrun("one that ignores TERM", f"trap '' TERM; {_BEATS}", _for("cancelled")),
)
"""For sandboxes that end a command whose caller is cancelled; they get no limit."""
