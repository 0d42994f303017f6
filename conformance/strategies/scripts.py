"""Small scripts that any shell runs alike."""

from __future__ import annotations

import string
from dataclasses import dataclass

from hypothesis import strategies as st


@dataclass(frozen=True, slots=True)
class Script:
    """A command that any shell runs alike, and what it must show."""

    text: str
    stdout: tuple[str, ...]
    stderr: tuple[str, ...]
    exit_code: int | None
    """None stands for any code but zero."""


_words = st.text(string.ascii_letters + string.digits, min_size=1, max_size=10)
_LAST: dict[str, int | None] = {
    "": 0,
    "true": 0,
    "false": 1,
    "no-such-command-anywhere": None,
    "cat /no/such/file": None,
    "(exit 3)": 3,
}
_endings = st.one_of(
    st.sampled_from(list(_LAST.items())),
    st.integers(0, 255).map(lambda code: (f"exit {code}", code)),
)


def _script(
    lines: list[tuple[str, bool]], ending: tuple[str, int | None], separator: str = "; "
) -> Script:
    # No word of one stream is a word of the other.
    told = [(f"err-{word}" if to_stderr else f"out-{word}", to_stderr) for word, to_stderr in lines]
    statements = [
        f"printf '%s\\n' {word}" + (" >&2" if to_stderr else "") for word, to_stderr in told
    ]
    last, code = ending
    return Script(
        text=separator.join([*statements, last] if last else statements) or "true",
        stdout=tuple(word for word, to_stderr in told if not to_stderr),
        stderr=tuple(word for word, to_stderr in told if to_stderr),
        exit_code=code,
    )


scripts = st.builds(
    _script,
    st.lists(st.tuples(_words, st.booleans()), max_size=4),
    _endings,
    st.sampled_from(["; ", "\n"]),
)

_BOTH = [("first", False), ("second", True)]
SCRIPTS = (
    _script(_BOTH, ("exit 5", 5)),
    _script(_BOTH, ("exit 6", 6), "\n"),
    # It takes longer than a caller that only looks once would wait.
    Script("sleep 0.3; printf 'late\\n'; exit 7", ("late",), (), 7),
    # What shells and time limits use themselves, and what is negative in eight bits.
    *(_script([], (f"exit {code}", code)) for code in (124, 126, 127, 128, 200, 255)),
    # No shell can read these.
    *(Script(text, (), (), None) for text in ("if", "(", "'")),
)
"""One of each kind of ending."""
