"""Clients with words added to their command lines."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.probes.clients import Client, Destination, Scheme


def with_words(client: Client, *words: str) -> Client:
    """Give a client that is run with these words right behind its name."""
    return changed(client, lambda line: add_words(line, client.name, *words))


def changed(client: Client, change: Callable[[str], str]) -> Client:
    """Give a client whose command lines are all changed in one way."""

    def write(line: Callable[[Destination], str]) -> Callable[[Destination], str]:
        return lambda where: change(line(where))

    commands: Mapping[Scheme, Callable[[Destination], str]] = {
        scheme: write(line) for scheme, line in client.commands.items()
    }
    return replace(client, commands=commands)


def add_words(line: str, name: str, *words: str) -> str:
    """Put words behind the first mention of a client's name in a command line."""
    return line.replace(f"{name} ", f"{name} {shlex.join(words)} ", 1) if words else line
