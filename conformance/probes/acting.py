"""Sessions that act as a user through Sandbox Proxy, and what of them arrived."""

from __future__ import annotations

import secrets as random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from conformance.lab.sandbox_proxy.place import API_HOST
from conformance.lab.sites import Site
from conformance.probes import choices
from conformance.probes.binding import Ask, mode_of, senders
from conformance.subject.blame import VERDICTS, blamed
from conformance.verdicts import NotRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.lab.client import Lab
    from conformance.lab.sandbox_proxy.client import SandboxProxyClient, User
    from conformance.probes.inside import Inside
    from conformance.subject.facade import Box
    from conformance.subject.targets import Target
    from sandboxes.contract import AnyBinding

API = Site(name=API_HOST, address="", nonce="", token="")
"""Mistral's API, as a place to send requests to."""

KEY = "MISTRAL_API_KEY"
PROXY = "MISTRAL_API_HTTP_PROXY"

OWN_KEY = "THE-KEY-OF-THE-COMMAND"
"""Stands for the key that the command itself has: an earlier one's may be renewed by then."""

_ASK_SECONDS = 20.0


def sandbox_proxy(lab: Lab) -> SandboxProxyClient:
    """Give the lab's Sandbox Proxy.

    Raises:
        NotRun: This lab has none.
    """
    if lab.mode != "sealed":
        raise NotRun("only a sealed lab has a Sandbox Proxy; run without --lab")
    return lab.sandbox_proxy()


def options_of(target: Target, bindings: Sequence[AnyBinding], *hosts: str) -> dict[str, Any]:
    """Give the keywords for bindings, and a network that reaches their hosts and others."""
    wanted = dict.fromkeys([*(host for one in bindings for host in one.hosts), *hosts])
    network = choices.network(target, mode_of(target), list(wanted))
    return {"network": network, "header_bindings": tuple(bindings)}


@contextmanager
def acting(
    inside: Inside, user: User, bindings: Sequence[AnyBinding], *hosts: str
) -> Iterator[Box]:
    """Open a sandbox whose session's caller is a user, under a network that reaches hosts."""
    options = options_of(inside.target, bindings, *hosts)
    with inside.target.open(identity=user.credential, **options) as box:
        yield box


def start_error(
    target: Target, bindings: Sequence[AnyBinding], identity: str | None
) -> Exception | None:
    """What opening a sandbox with these raises, or None."""
    try:
        with target.open(identity=identity, **options_of(target, bindings)):
            return None
    except VERDICTS:
        raise
    except Exception as error:
        if blamed(error) is None:  # it is none of the subject's
            raise
        return error


def variable(box: Box, name: str) -> str:
    """What a command has in a variable; nothing where it is not set."""
    return box.execute(f'printf %s "${{{name}-}}"').stdout


def session_credential(box: Box) -> str:
    """What commands show the proxy.

    Raises:
        NotRun: They have nothing to show.
    """
    url = variable(box, "HTTPS_PROXY") or variable(box, PROXY)
    password = urlsplit(url).password
    if not password:
        raise NotRun("commands have no proxy's URL with a credential, so it is not looked for")
    return unquote(password)


def new_path() -> str:
    """A path of Mistral's API that nobody else asks for."""
    return f"/v1/models/n{random.token_hex(8)}"


def ask_api(
    inside: Inside, box: Box, path: str, *, key: str = OWN_KEY, proxy: str = f"${PROXY}"
) -> None:
    """Let a command ask Mistral's API with a key.

    Args:
        inside: The sandboxes of the check.
        box: Where the command runs.
        path: What is asked for.
        key: What its Authorization header bears.
        proxy: Through which proxy, as the shell writes it; through none if empty.
    """
    ask = Ask(path, (("Authorization", f"Bearer {key}"),))
    line = senders(inside)[0].write(API, 443, [ask], True)
    line = line.replace(OWN_KEY, f"'\"${KEY}\"'")  # it stands in a word in single quotes
    names = "HTTPS_PROXY https_proxy ALL_PROXY all_proxy"
    way = f'export HTTPS_PROXY="{proxy}" https_proxy="{proxy}"\n' if proxy else ""
    box.execute(f"unset {names}\n{way}{line}", timeout_seconds=_ASK_SECONDS)


def asked(lab: Lab, path: str) -> list[dict[str, Any]]:
    """What came to Mistral's API for a path: a row each, with the `user` it was asked as."""
    return [row for row in sandbox_proxy(lab).rows("requests") if row["target"] == path]
