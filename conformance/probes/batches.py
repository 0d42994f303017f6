"""Several clients in one command: a sandbox pays for a shell once, and not for each of them."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.probes.attempts import Attempt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.probes.clients import Client, Destination, Scheme
    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box

# Of one command: where refusals are silent, each costs the whole patience of its client.
_MOST = 12
_REST_SECONDS = 2.0

# Subjects whose shell runs no second command of a text; kept for the whole run.
_one_by_one: set[str] = set()


@dataclass(frozen=True, slots=True)
class Try:
    """What one client is to do."""

    client: Client
    scheme: Scheme
    where: Destination

    @property
    def command(self) -> str:
        """Its command line."""
        return self.client.command(self.scheme, self.where)


def in_turn(inside: Inside, box: Box, tries: Sequence[Try]) -> list[Attempt]:
    """Let clients try one after the other, and tell how each ended.

    One command holds many of them where the sandbox's shell runs it to its end; where it
    does not, each is a command of its own.
    """
    made: list[Attempt] = []
    for first in range(0, len(tries), _MOST):
        part = tries[first : first + _MOST]
        made += _together(inside, box, part) or [
            inside.attempt(box, one.client, one.scheme, one.where) for one in part
        ]
    return made


def _together(inside: Inside, box: Box, tries: Sequence[Try]) -> list[Attempt]:
    """All of them in one command; nothing if that was not run to its end."""
    if len(tries) < 2 or inside.is_slow or inside.target.name in _one_by_one:
        return []
    mark = secrets.token_hex(8)
    after = f"printf '\\n%s %s\\n' {mark} $?; printf '\\n%s\\n' {mark} >&2"
    ran = box.execute(
        "\n".join(f"{one.command}\n{after}" for one in tries),
        timeout_seconds=sum(one.where.seconds for one in tries) + _REST_SECONDS,
    )
    stdout = re.split(rf"\n{mark} (\d+)\n", ran.stdout)
    stderr = ran.stderr.split(f"\n{mark}\n")
    if (len(stdout), len(stderr)) != (2 * len(tries) + 1, len(tries) + 1):
        _one_by_one.add(inside.target.name)
        return []
    return [
        Attempt(one.client.name, one.command, int(code), out, err)
        for one, out, code, err in zip(tries, stdout[::2], stdout[1::2], stderr, strict=False)
    ]
