"""The page of the options of each sandbox: `python -m tests.options_page > docs/options.md`."""

from __future__ import annotations

import inspect
import re
import sys
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from conformance.subject.declarations import constructor
from conformance.subject.targets import RESERVED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sandboxes.contract import Sandbox

_HEAD = """\
# Options of the sandboxes

What `--sandbox-option KEY=JSON` takes, printed by `python -m tests.options_page` from each
constructor. `null` is None. The checks set {reserved} themselves.
"""


def described(cls: type[Sandbox]) -> dict[str, str]:
    """What the docstring says of each argument."""
    text = inspect.getdoc(cls) or ""
    arguments = text.partition("Args:\n")[2].partition("\n\n")[0]
    entries = re.split(r"^ {4}(?=\w+: )", arguments, flags=re.MULTILINE)
    pairs = (entry.partition(": ") for entry in entries if entry.strip())
    return {name: " ".join(told.split()) for name, _, told in pairs}


def _rows(cls: type[Sandbox]) -> Iterator[str]:
    told = described(cls)
    for name, parameter in constructor(cls).items():
        if name not in RESERVED:
            yield f"| `{name}` | `{parameter.annotation}` | {told[name]} |".replace(" | None`", "`")


def page() -> str:
    """The whole page."""
    reserved = ", ".join(f"`{name}`" for name in RESERVED)
    parts = [_HEAD.format(reserved=reserved)]
    group = entry_points(group="sandbox_conformance.sandboxes")
    for entry in sorted(group, key=lambda entry: entry.name):
        cls = entry.load()
        if not cls.__module__.startswith("sandboxes."):
            continue  # another package's, which has announced its own
        rows = list(_rows(cls)) or ["No options."]
        head = ["| option | type | meaning |", "|---|---|---|"] if rows[0][0] == "|" else []
        parts += [f"## {entry.name}: `{cls.__name__}`\n", *head, *rows, ""]
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
