"""Every refusal, in one voice: subject, fact, remedy, one line.

The two sentences that the public documents quote for `MistralSandbox` under
"Common issues" are the pattern for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

NETWORK_SPELLINGS = {
    "none": "Network.none()",
    "all": "Network.all()",
    "allow": "Network.allow()",
}
"""How a user writes each network mode."""


def _either(choices: Iterable[str]) -> str:
    return " or ".join(choices)


def unsupported_network(sandbox: str, mode: str, supported: frozenset[str]) -> str:
    """Say that a sandbox cannot enforce a network mode, and which ones it can."""
    remedy = _either(
        f"network={text}" for name, text in NETWORK_SPELLINGS.items() if name in supported
    )
    return f"{sandbox} does not support {NETWORK_SPELLINGS[mode]}; pass {remedy}"


def unsupported_binding(sandbox: str, binding: str, supported: Iterable[str]) -> str:
    """Say that a sandbox cannot enforce a header binding, and which ones it can."""
    names = [f"agents.{name}" for name in sorted(supported)]
    remedy = f"pass only {_either(names)}" if names else "leave header_bindings out"
    return f"{sandbox} does not support agents.{binding}; {remedy}"


def unsupported_access(sandbox: str, access: str, widest: str) -> str:
    """Say that an access level is wider than the sandbox serves."""
    return f'{sandbox} does not support access="{access}"; pass access="{widest}" or leave it out'


def unreachable_binding(sandbox: str, binding: str, hosts: Iterable[str], mode: str) -> str:
    """Say that the network does not reach the hosts that a binding needs."""
    remedy = "Network.all()" if mode == "none" else "Network.all() or list these hosts"
    return (
        f"{sandbox}: agents.{binding} needs network access to {', '.join(hosts)}, "
        f"which {NETWORK_SPELLINGS[mode]} blocks; pass network={remedy}"
    )


def wrong_option(sandbox: str, option: str, got: object, remedy: str) -> str:
    """Say that an option's value is unusable.

    The value's type is named and not the value, which could be a secret put in
    the wrong place.
    """
    return f"{sandbox}: {option} is of type {type(got).__name__}; {remedy}"


def frozen(sandbox: str, name: str) -> str:
    """Say that a configured sandbox cannot be changed."""
    return (
        f"{sandbox} is a frozen configuration and {name} cannot be changed; "
        "build another one with the options that you want"
    )


def invalid_entry(entry: str, fact: str, remedy: str) -> str:
    """Say why a text is no allow-list entry."""
    return f"{entry!r} is no host[:port] entry: it {fact}; {remedy}"


def closed(subject: str, action: str) -> str:
    """Say that something was asked of a closed sandbox or session."""
    return f"{subject} is closed and cannot {action}; start another session"


def missing_extra(sandbox: str, package: str, extra: str) -> str:
    """Say which extra brings the package that a sandbox needs."""
    return (
        f"{sandbox} needs the package {package}, which is not installed; "
        f"pip install 'sandbox-conformance[{extra}]'"
    )
