"""What every backend checks before a command starts: its text and its time limit."""

from __future__ import annotations

import math

from sandboxes.contract import RefusedConfiguration, messages

TIMED_OUT = 124
"""The exit code of a command that ran into its limit."""

LONGEST_SECONDS = 1e9
"""About 30 years; longer limits do not fit into every clock, and mean the same."""


def check_command(command: object) -> str:
    """Return the command's text.

    Raises:
        ValueError: It holds a NUL, which no shell can be given, or is no text.
    """
    if not isinstance(command, str):
        raise ValueError(f"command is of type {type(command).__name__}; pass text")
    if "\0" in command:
        raise ValueError("command holds a NUL character; leave it out, or write it as '\\0'")
    return command


def encoded_command(command: str) -> bytes:
    """Return the bytes of a command's text, as a process of the host takes them.

    Raises:
        ValueError: It holds half of a surrogate pair.
    """
    try:
        return command.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ValueError(
            "command holds half of a surrogate pair, which no shell can be given; leave it out"
        ) from error


def check_limit(timeout_seconds: object, default: float) -> float:
    """Return a command's limit in seconds: the default where it brings none.

    Raises:
        ValueError: It is not a positive finite number.
    """
    if timeout_seconds is None:
        return default
    remedy = "pass a positive number of seconds, or None for the default"
    if isinstance(timeout_seconds, bool) or not isinstance(timeout_seconds, int | float):
        raise ValueError(f"timeout_seconds is of type {type(timeout_seconds).__name__}; {remedy}")
    # A whole number may be too large for a float, and its text for an error message.
    if isinstance(timeout_seconds, float) and not math.isfinite(timeout_seconds):
        raise ValueError(f"timeout_seconds is {timeout_seconds}; {remedy}")
    if timeout_seconds <= 0:
        raise ValueError(f"timeout_seconds is not above 0; {remedy}")
    return float(min(timeout_seconds, LONGEST_SECONDS))


def accepted_limit(sandbox: str, option: str, seconds: object, default: float) -> float:
    """Return the limit in seconds that an option of a sandbox names, or the default for None.

    Raises:
        RefusedConfiguration: It is not a positive finite number.
    """
    try:
        return check_limit(seconds, default)
    except ValueError as error:
        fact = str(error).replace("timeout_seconds", option, 1)
        raise RefusedConfiguration(messages.of_a_part(sandbox, fact)) from error
