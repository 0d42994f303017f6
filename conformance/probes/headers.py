"""Clients that are told to send a Host header of another name than that of their URL."""

from __future__ import annotations

import dataclasses
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.probes.clients import Client, Destination

_SWITCHES = {"curl": "-H", "wget": "--header", "busybox wget": "--header"}


def with_host(client: Client, name: str) -> Client | None:
    """Give a client that sends this name in its Host header; None if that cannot be said to it.

    Args:
        client: Any client.
        name: A host name.
    """
    switch = _SWITCHES.get(client.name)
    if switch is None:
        return None
    program, added = client.name, f"{switch} {shlex.quote(f'Host: {name}')}"

    def told(write: Callable[[Destination], str]) -> Callable[[Destination], str]:
        # What is put in stands directly behind the program and its own name for the client.
        return lambda where: f"{program} {added}{write(where).removeprefix(program)}"

    commands = {scheme: told(write) for scheme, write in client.commands.items()}
    return dataclasses.replace(client, commands=commands)
