"""The network clients that a sandbox may have inside, and how each is driven.

A client that the sandbox does not have is left out. Commands hold single-purpose
flags only: interpreters of the shell exist that read `-sS` as one unknown flag.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.facade import Box

Scheme = Literal["https", "http", "tcp", "udp", "dns"]

CLIENT_SECONDS = 5
"""How long a client tries by itself, in seconds."""
ATTEMPT_SECONDS = CLIENT_SECONDS + 2.0
"""The limit of a command that holds one client, in seconds."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a client is sent.

    Attributes:
        url: For the schemes `https` and `http`; its path holds a nonce.
        host: For the others: a name or an address without brackets.
        port: A port for `tcp` and `udp`.
        payload: What is sent there; it holds a nonce.
    """

    url: str = ""
    host: str = ""
    port: int = 0
    payload: str = ""


@dataclass(frozen=True, slots=True)
class Client:
    """A program, or a feature of the shell, that opens connections.

    Attributes:
        name: What a certificate calls it.
        present: A command that succeeds where it works at all.
        commands: By scheme, the command line for a destination.
    """

    name: str
    present: str
    commands: Mapping[Scheme, Callable[[Destination], str]]

    def command(self, scheme: Scheme, destination: Destination) -> str:
        """Write the command line that makes it try.

        Raises:
            KeyError: It does not speak that scheme.
        """
        return self.commands[scheme](destination)


def _join(*words: object) -> str:
    return shlex.join(str(word) for word in words)


def _web(*words: str) -> Mapping[Scheme, Callable[[Destination], str]]:
    def fetch(where: Destination) -> str:
        return _join(*words, where.url)

    def ask(where: Destination) -> str:
        return _join(*words, f"https://{where.host}/")

    return {"https": fetch, "http": fetch, "dns": ask}


def _bash(where: Destination, protocol: str) -> str:
    # The host and port are arguments, so that nothing in them is code.
    script = f'exec 3<>"/dev/{protocol}/$0/$1" && printf %s "$2" >&3'
    if protocol == "tcp":
        script += " && head -c 1 <&3"
    return _join("bash", "-c", script, where.host, where.port, where.payload)


def _prober(verb: str, *arguments: object) -> str:
    source = files("conformance.probes").joinpath("prober.py").read_text(encoding="utf-8")
    return _join("python3", "-I", "-c", source, verb, *arguments)


def _netcat(where: Destination, *flags: str) -> str:
    line = _join("nc", "-w", CLIENT_SECONDS, *flags, where.host, where.port)
    return f"printf %s {shlex.quote(where.payload)} | {line}"


def _installed(program: str) -> str:
    return f"command -v {program}"


_SECONDS = str(CLIENT_SECONDS)
# A port that refuses at once where there is a network, and cannot be reached where not.
_DEV_TCP = 'x=$(bash -c "exec 3<>/dev/tcp/127.0.0.1/1" 2>&1); case $x in *No\\ such*) false;; esac'

ALL: tuple[Client, ...] = (
    Client("curl", _installed("curl"), _web("curl", "-s", "-S", "-m", _SECONDS)),
    Client("wget", _installed("wget"), _web("wget", "-q", "-O", "-", "-T", _SECONDS, "-t", "1")),
    Client("http", _installed("http"), _web("http", "GET")),
    Client(
        "bash",
        f"{_installed('bash')} && {{ {_DEV_TCP}; }}",
        {
            "tcp": lambda where: _bash(where, "tcp"),
            "udp": lambda where: _bash(where, "udp"),
        },
    ),
    Client(
        "getent", _installed("getent"), {"dns": lambda where: _join("getent", "hosts", where.host)}
    ),
    Client(
        "nslookup", _installed("nslookup"), {"dns": lambda where: _join("nslookup", where.host)}
    ),
    Client("host", _installed("host"), {"dns": lambda where: _join("host", where.host)}),
    Client(
        "nc",
        _installed("nc"),
        {"tcp": _netcat, "udp": lambda where: _netcat(where, "-u")},
    ),
    Client(
        "python3",
        "python3 -I -c 'import socket, ssl, urllib.request'",
        {
            "https": lambda where: _prober("url", where.url),
            "http": lambda where: _prober("url", where.url),
            "tcp": lambda where: _prober("tcp", where.host, where.port, where.payload),
            "udp": lambda where: _prober("udp", where.host, where.port, where.payload),
            "dns": lambda where: f"{_prober('lookup', where.host)}; {_prober('dns', where.host)}",
        },
    ),
)
"""Every client that is known, the plainest first."""


def found(box: Box) -> tuple[Client, ...]:
    """Ask a live sandbox which clients it has.

    What is printed is computed inside, so that a fake which echoes commands has none.
    """
    tests = [
        f"{{ {client.present}; }} >/dev/null 2>&1 && echo {client.name}=$((40 + 2))"
        for client in ALL
    ]
    printed = box.execute("\n".join([*tests, "true"]), timeout_seconds=20).stdout.split()
    return tuple(client for client in ALL if f"{client.name}=42" in printed)
