"""How a check says what it proves and what it takes a sandbox to have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

import pytest

if TYPE_CHECKING:
    from typing import Unpack

    from conformance.requirements import Requirement


side_by_side = pytest.mark.side_by_side
"""Marks a check that mostly waits, and can be made while others do.

It takes `target`, `inside` and its own parameters alone, and judges by nothing that another
check's sandbox could change: not by the census, and not by what the whole lab saw.
"""


alone = pytest.mark.alone
"""Marks a check that must have the laboratory for itself: it takes a census, counts what the
whole lab saw, or breaks what all share. Those of a run are made in a row."""


class Needs(TypedDict, total=False):
    """What a check can ask for; see `needs`."""

    network: Literal["none", "all", "allow"]
    access: Literal["none", "files", "full"]
    binding: type[Any]
    option: str
    opens: bool
    processes: bool
    background: bool
    isolated: bool
    blocks_private: bool
    resume: bool
    engine: bool
    cloud: bool


def verifies(*requirements: Requirement) -> pytest.MarkDecorator:
    """Mark a check with the requirements whose verdict it gives."""
    return pytest.mark.verifies(*requirements)


def needs(**capabilities: Unpack[Needs]) -> pytest.MarkDecorator:
    """Mark a check with what the sandbox must have for it to be made.

    A network mode, access level or binding type that is not declared makes the check
    `declined` once the constructor was seen to refuse it. A fact that is not declared,
    or a constructor without the named option, makes it `not applicable`.

    Args:
        **capabilities: `network`, `access` and `binding` name what must be declared;
            `option` a parameter that the constructor must have; the rest are facts:
            `opens`, `processes` (`has_processes`), `background`
            (`supports_background_processes`), `isolated`, `blocks_private`
            (`blocks_private_addresses`), `resume` (`supports_resume`), `engine`
            (`needs_container_engine`), `cloud` (`needs_cloud`).
    """
    return pytest.mark.needs(**capabilities)
