"""TLS that says one thing and means another, or that does not look who answers."""

from __future__ import annotations

import shlex
from dataclasses import replace
from importlib.resources import files
from typing import TYPE_CHECKING

from conformance.probes.detours import Detour, switched
from conformance.probes.words import with_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.probes.clients import Client, Destination
    from conformance.probes.detours import Aim


def tunneller(*arguments: object) -> str:
    """Write a command line of the single-file client that goes by hand."""
    source = files("conformance.probes").joinpath("tunneller.py").read_text(encoding="utf-8")
    return shlex.join(["python3", "-I", "-c", source, *map(str, arguments)])


def _saying(*, name: str, host: str) -> Callable[[str, str, Aim], str]:
    """Say `name` as the server name and `host` in the Host header, each LISTED or OTHER."""

    def write(_line: str, _name: str, aim: Aim) -> str:
        sites = {"LISTED": aim.listed, "OTHER": aim.other}
        path = f"/{aim.other.nonce}"
        place = (aim.listed.name, aim.listed.https_port)
        return tunneller("tls", *place, sites[name].name, sites[host].name, path)

    return write


def _appended(line: str, _name: str, aim: Aim) -> str:
    return f"{line} Host:{aim.other.entry}"


def _server_name(line: str, _name: str, aim: Aim) -> str:
    return line.replace("-quiet ", f"-quiet -servername {aim.other.name} ", 1)


_HEADER = "Host: OTHER"

FRONTS = (
    Detour("Host header", switched("-H", _HEADER), "curl", to="listed"),
    Detour("Host header", switched(f"--header={_HEADER}"), "wget", to="listed"),
    Detour("Host header", switched("--header", _HEADER), "busybox wget", to="listed"),
    Detour("Host header", _appended, "http", to="listed"),
    Detour("Host header", switched("-c", f"http.extraHeader={_HEADER}"), "git", to="listed"),
    Detour("Host header", _saying(name="LISTED", host="OTHER"), "python3"),
    Detour(
        "Host header of a second request",
        switched("https://LISTED/", "--next", "-H", _HEADER),
        "curl",
        to="listed",
    ),
    Detour(
        "server name by --connect-to", switched("--connect-to", "OTHER:PORT:ADDRESS:PORT"), "curl"
    ),
    Detour("server name by --resolve", switched("--resolve", "OTHER:PORT:ADDRESS"), "curl"),
    Detour("server name", _saying(name="OTHER", host="OTHER"), "python3"),
    Detour("server name", _server_name, "openssl", "tcp", to="listed"),
)
"""Each way to ask a listed host for another one, by its server name or its Host header."""


def by_hand(client: Client) -> Client:
    """Give a raw client that goes through the sandbox's own proxy, if it can, and there is one."""
    if client.name != "python3":
        return client
    return replace(
        client, commands={"tcp": lambda to: tunneller("raw", to.host, to.port, to.payload)}
    )


_UNVERIFIED: dict[str, tuple[str, ...]] = {
    "curl": ("-k",),
    "wget": ("--no-check-certificate",),
    "busybox wget": ("--no-check-certificate",),
    "http": ("--verify=no",),
    "git": ("-c", "http.sslVerify=false"),
}


def unverified(client: Client) -> Client | None:
    """Give a client that takes any certificate, or None where it has no such way."""
    if client.name == "python3":
        return replace(client, commands={"https": _take_any})
    words = _UNVERIFIED.get(client.name)
    return with_words(client, *words) if words else None


def _take_any(where: Destination) -> str:
    authority, _, path = where.url.removeprefix("https://").partition("/")
    host, _, port = authority.partition(":")
    return tunneller("tls", host, port or 443, host, host, f"/{path}")
