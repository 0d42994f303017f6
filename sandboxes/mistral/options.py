"""The options of `MistralSandbox`: what each can be, and where one that is left out comes from."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sandboxes.contract import RefusedConfiguration, messages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn

PREFIX = "AGENTS_SDK_KOYEB_SANDBOX_"
"""Before the name of an option, in capitals, in the variable that gives its default."""

_LONGEST_SECONDS = 1e9
# What the cloud takes for the names of apps, less the part that makes each unique.
_NAME_PREFIX = re.compile(r"[a-z]([a-z0-9-]{0,22}[a-z0-9])?")
_WORDS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")


class Unusable(Exception):
    """A value that an option cannot have.

    Args:
        fact: What it is, such as `"is empty"`.
        remedy: What to pass instead.
    """

    def __init__(self, fact: str, remedy: str) -> None:
        super().__init__(fact)
        self.fact = fact
        self.remedy = remedy


def _text(value: object) -> str:
    remedy = "pass a name, or leave it out"
    if not isinstance(value, str):
        raise _of_type(value, remedy)
    if not value.strip() or "\0" in value or "\n" in value:
        raise Unusable("is empty, or no single line", remedy)
    return value


def _name_prefix(value: object) -> str:
    text = _text(value)
    if not _NAME_PREFIX.fullmatch(text):
        raise Unusable(
            "is no beginning of a name in the cloud",
            "pass at most 24 small letters, digits and inner dashes, a letter first",
        )
    return text


def _docker_network(value: object) -> str:
    text = _text(value)
    if text not in ("bridge", "host", "none"):
        raise Unusable("is no network of a Docker daemon", 'pass "bridge", "host" or "none"')
    return text


def _script(value: object) -> str:
    remedy = "pass the text of a script, or leave it out"
    if not isinstance(value, str):
        raise _of_type(value, remedy)
    if not value.strip() or "\0" in value:
        raise Unusable("is empty or has a NUL", remedy)
    return value


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise _of_type(value, "pass True or False")
    return value


def _seconds(value: object) -> float:
    number = _finite(value, "pass a positive number of seconds")
    if number <= 0:
        raise Unusable("is not above 0", "pass a positive number of seconds")
    return float(min(number, _LONGEST_SECONDS))


def _interval(value: object) -> float:
    number = _finite(value, "pass a number of seconds")
    if number < 0:
        raise Unusable("is below 0", "pass a number of seconds")
    return float(min(number, _LONGEST_SECONDS))


def _count(value: object) -> int:
    remedy = "pass a whole number, 0 or more"
    if isinstance(value, bool) or not isinstance(value, int):
        raise _of_type(value, remedy)
    if value < 0:
        raise Unusable("is below 0", remedy)
    return value


def _finite(value: object, remedy: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _of_type(value, remedy)
    # A whole number may be too large for a float.
    if isinstance(value, float) and not math.isfinite(value):
        raise Unusable(f"is {value}", remedy)
    return value


def _of_type(value: object, remedy: str) -> Unusable:
    return Unusable(f"is of type {type(value).__name__}", remedy)


def _read_switch(text: str) -> bool:
    if text.strip().lower() not in _WORDS:
        raise Unusable("says neither yes nor no", "set it to 1 or 0")
    return _WORDS[text.strip().lower()]


def _read_whole(text: str) -> int:
    if not text.strip().isascii() or not text.strip().isdigit():
        raise Unusable("is no whole number", "set it to digits")
    return int(text.strip()[:12])


def _read_number(text: str) -> float:
    if not _NUMBER.fullmatch(text.strip()):
        raise Unusable("is no number", "set it to a number, such as 600")
    number = float(text.strip())
    return int(number) if number.is_integer() else number


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    Attributes:
        accept: Gives the value that is used, or raises `Unusable`.
        read: Gives a value from the text of a variable; None where none gives a default.
        default: What it is where nobody says anything.
        when: `"made"` where it shapes a sandbox that is being made, and says nothing of one
            that was made before.
    """

    accept: Callable[[object], Any]
    read: Callable[[str], object] | None
    default: Any
    when: Literal["made", "always"] = "made"


OPTIONS: Mapping[str, Option] = {
    "image": Option(_text, str, None),
    "supports_background_processes": Option(_switch, None, None, "always"),
    "instance_type": Option(_text, str, "micro"),
    # One of those that filter outbound traffic; not every region of the provider does.
    "region": Option(_text, str, "nl-north-1"),
    "name_prefix": Option(_name_prefix, str, "sandbox"),
    "ttl_seconds": Option(_seconds, _read_number, 86_400.0),
    "idle_timeout_seconds": Option(_seconds, _read_number, 3600.0),
    "default_exec_timeout_seconds": Option(_seconds, _read_number, 600.0, "always"),
    "privileged": Option(_switch, _read_switch, None),
    "docker_daemon_enabled": Option(_switch, _read_switch, None),
    "docker_daemon_network_mode": Option(_docker_network, str, None),
    "enable_light_sleep": Option(_switch, _read_switch, None),
    "setup_script": Option(_script, str, None, "always"),
    "setup_script_timeout_seconds": Option(_seconds, _read_number, 600.0, "always"),
    "readiness_max_retries": Option(_count, _read_whole, 120, "always"),
    "readiness_interval_seconds": Option(_interval, _read_number, 0.5, "always"),
    "readiness_probe_timeout_seconds": Option(_seconds, _read_number, 5.0, "always"),
    "wait_ready_timeout_seconds": Option(_seconds, _read_number, 300.0, "always"),
    "enable_mesh": Option(_switch, _read_switch, None),
    "pre_provisioned_sandbox_id": Option(_text, str, None, "always"),
}


def accepted(sandbox: str, given: Mapping[str, object]) -> dict[str, Any]:
    """The value of each option: the one given, or that of its variable, or the default.

    Args:
        sandbox: Name of the sandbox's class.
        given: What the constructor got, None for what was left out.

    Raises:
        RefusedConfiguration: One cannot be what it is; the message names the option, and
            the variable where it came from one.
    """
    return {name: _accepted(sandbox, name, given[name]) for name in OPTIONS}


def _accepted(sandbox: str, name: str, given: object) -> Any:  # noqa: ANN401 - each option has a type of its own
    option = OPTIONS[name]
    if given is not None:
        try:
            return option.accept(given)
        except Unusable as error:
            _refuse(sandbox, name, error)
    variable = PREFIX + name.upper()
    if option.read is None or (text := os.environ.get(variable)) is None:
        return option.default
    if not text.strip():
        _refuse(sandbox, f"{name} from {variable}", Unusable("is empty", "set it, or unset it"))
    try:
        return option.accept(option.read(text))
    except Unusable as error:
        _refuse(sandbox, f"{name} from {variable}", error)


def _refuse(sandbox: str, option: str, error: Unusable) -> NoReturn:
    raise RefusedConfiguration(
        messages.unusable_option(sandbox, option, error.fact, error.remedy)
    ) from None


def only_for_new_ones(given: Mapping[str, object]) -> list[str]:
    """The options among those given that say how a sandbox is made."""
    return [
        name
        for name, option in OPTIONS.items()
        if option.when == "made" and given[name] is not None
    ]
