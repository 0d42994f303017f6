"""Attempts on a sandbox that is built: to change it, and to make it tell its secrets."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Collection
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from conformance.probes.choices import networks
from conformance.strategies.bindings import KINDS, NEEDED_HOSTS
from conformance.strategies.options import PlainHook
from conformance.subject.blame import shown
from conformance.subject.declarations import FACTS, constructor
from conformance.verdicts import NotApplicable, Violation
from sandboxes.contract import SandboxHook

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Iterator

    from conformance.subject.targets import Target
    from sandboxes.contract import Sandbox

_ABSENT = object()
_SHARED = ("network", "header_bindings", "hooks", "access")

_VARIABLES = (
    "MISTRAL_API_KEY",
    "KOYEB_API_KEY",
    "AGENTS_SDK_KOYEB_SANDBOX_API_TOKEN",
    "NUAGE_KOYEB_SANDBOX_API_TOKEN",
)
"""Where the documents say that a sandbox finds its credentials."""

# What ends in another word, such as secret_name or max_tokens, holds no secret itself.
_SECRET_OPTION = re.compile(
    r"(^|_)(token|secret|password|passwd|passphrase|credentials?"
    r"|(api|access|private|secret|signing|encryption)_?key|[a-z]+_auth)$",
    re.IGNORECASE,
)
_MANY = re.compile(r"\b(list|dict|set|tuple|mapping|sequence|iterable|collection)\b", re.IGNORECASE)
# A shorter text may be found in any other by chance.
_SHORTEST = 8


def attributes(target: Target, sandbox: Sandbox) -> list[str]:
    """The public attributes of a sandbox: its own, its options and its facts."""
    own = [name for name in getattr(sandbox, "__dict__", {}) if not name.startswith("_")]
    known = (*_SHARED, *FACTS, *sorted(target.declared.parameters), *own)
    return [name for name in dict.fromkeys(known) if hasattr(sandbox, name)]


def changed(sandbox: Sandbox, name: str) -> str:
    """Try to change an attribute; give what succeeded, as one would write it, or nothing."""
    before = getattr(sandbox, name)
    # Its own value as well: one that looks at what it is given may take what is right.
    for value in (before, _ABSENT):
        with suppress(Exception):
            setattr(sandbox, name, value)
            return f"sandbox.{name} = {'sandbox.' + name if value is before else 'object()'}"
    with suppress(Exception):
        delattr(sandbox, name)
        return f"del sandbox.{name}"
    after = getattr(sandbox, name, _ABSENT)
    return "" if after is before or after == before else f"sandbox.{name} = object()"


def own_lists(target: Target) -> list[tuple[str, dict[str, Any]]]:
    """A sandbox's own options that are there for a list or a dictionary, and that it shows."""
    found: list[tuple[str, dict[str, Any]]] = []
    for name, parameter in constructor(target.cls).items():
        if name in _SHARED or not _is_for_many(parameter):
            continue
        for value in (["WORD"], {"WORD": "1"}):
            call: dict[str, Any] = {name: value}
            if target.refusal(**call) is None:
                held = getattr(target.build(**call), name, None)
                if isinstance(held, Collection) and list(held) == list(value):
                    found.append((name, call))
    return found


def _is_for_many(parameter: inspect.Parameter) -> bool:
    """Whether its default or its annotation says so: what takes a text need not copy a list."""
    many = isinstance(parameter.default, list | tuple | dict | set | frozenset)
    return many or _MANY.search(str(parameter.annotation)) is not None


def lists(target: Target) -> list[tuple[str, dict[str, Any]]]:
    """Options that take a list, each with all that a constructor needs to take a list for it.

    Raises:
        NotApplicable: There is none that it takes.
    """
    calls: list[tuple[str, dict[str, Any]]] = [("hooks", {"hooks": [PlainHook(), PlainHook()]})]
    bindings = [one for one in KINDS if type(one) in target.declared.bindings]
    if bindings:
        calls += [
            ("header_bindings", {"header_bindings": bindings, **reached})
            for reached in networks(target, NEEDED_HOSTS)
        ]
    # What it is to take and refuses is another requirement's.
    taken = [(option, call) for option, call in calls if target.refusal(**call) is None]
    if not taken:
        raise NotApplicable(f"{target.cls.__name__} takes no list that its caller could change")
    return taken


def empty(held: object) -> None:
    """Take everything out of a list; what is none stays as it is."""
    with suppress(Exception):
        held.clear()  # type: ignore[attr-defined]


class CarriesAToken(SandboxHook):
    """A hook that was constructed with a secret."""

    def __init__(self, api_token: str) -> None:
        self._api_token = api_token


def _canary() -> str:
    return f"canary-{secrets.token_hex(12)}"


@contextmanager
def secrets_of_the_environment() -> Iterator[dict[str, str]]:
    """Plant a credential in each variable that a sandbox may read, while the block runs."""
    before = {name: os.environ.get(name) for name in _VARIABLES}
    planted = {name: _canary() for name in _VARIABLES}
    os.environ.update(planted)
    try:
        yield planted
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def secret_options(target: Target) -> tuple[dict[str, Any], dict[str, str]]:
    """Options that hold secrets, and those secrets by where they come from.

    An option that takes no text of ours keeps what the user passed for it.
    """
    given: dict[str, Any] = {}
    hidden: dict[str, str] = {}
    for name in sorted(target.declared.parameters):
        if not _SECRET_OPTION.search(name):
            continue
        own, canary = target.options.get(name), _canary()
        if target.refusal(**{name: canary}) is None:
            given[name] = hidden[name] = canary
        elif isinstance(own, str) and len(own) >= _SHORTEST:
            hidden[name] = own
    hook = CarriesAToken(token := _canary())
    if target.refusal(hooks=(hook,)) is None:
        given["hooks"], hidden["an argument of a hook"] = (hook,), token
    return given, hidden


def texts(sandbox: Sandbox) -> Iterator[tuple[str, str]]:
    """Every text that Python makes of a sandbox by itself, under the name of how.

    Raises:
        Violation: One of them cannot be made.
    """
    makers: dict[str, Callable[[object], str]] = {"repr()": repr, "str()": str, "format()": format}
    for how, make in makers.items():
        try:
            text = make(sandbox)
        except Exception as error:
            raise Violation(
                f"{how} of a sandbox raised {shown(error)}", remedy="let it be shown"
            ) from error
        yield how, text
