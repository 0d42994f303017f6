"""Reading the options of a run, and choosing what of them the inner pytest gets."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.requirements import UnknownRequirement, select

if TYPE_CHECKING:
    from conformance.requirements import Requirement

# Options that the suite sets itself, or that could weaken or misplace a check. The
# number tells how many values follow in the next argument.
_KEPT_BACK = {
    **dict.fromkeys(
        (
            "--sandbox", "--sandbox-option", "--requirement", "--conformance-profile", "--lab",
            "--certificate", "--conformance-run", "-c", "--config-file", "--rootdir",
            "--confcutdir", "-o", "--override-ini", "--import-mode", "-W", "--pythonwarnings",
            "--hypothesis-seed", "--hypothesis-profile", "--hypothesis-verbosity",
            "--ignore", "--ignore-glob", "--basetemp", "--junitxml", "--junit-xml",
        ),
        1,
    ),
    **dict.fromkeys(
        (
            "--require-certified", "--noconftest", "--strict", "--strict-config",
            "--strict-markers", "--pyargs", "--doctest-modules", "--lf", "--last-failed", "--ff",
            "--failed-first", "--nf", "--new-first", "--sw", "--stepwise", "--stepwise-skip",
            "--cache-clear", "--runxfail", "--disable-warnings", "--disable-pytest-warnings",
        ),
        0,
    ),
}  # fmt: skip
# General wishes for a project's own tests; here they hold only on the command line.
_CONFIGURED_KEPT_BACK = {"--tb": 1, "-r": 1, "--durations": 1, "--durations-min": 1}


def refuse_paths(config: pytest.Config) -> None:
    """Refuse test paths beside `--sandbox`.

    Raises:
        pytest.UsageError: There is one on the command line.
    """
    given = [path for path in config.option.file_or_dir if path in config.invocation_params.args]
    if given:
        raise pytest.UsageError(
            f"--sandbox runs the packaged checks only, so the path {given[0]!r} cannot be added; "
            "run your own tests without --sandbox"
        )


def sandboxes(values: list[str]) -> list[str]:
    """The subjects, each once.

    Raises:
        pytest.UsageError: One is empty.
    """
    if not all(value.strip() for value in values):
        raise pytest.UsageError("--sandbox is empty; pass a name, or package.module:Class")
    return list(dict.fromkeys(values))


def constructor_options(items: list[str]) -> dict[str, Any]:
    """Read `KEY=JSON` items.

    Raises:
        pytest.UsageError: One is not of that form, or its keyword is the checks' own.
    """
    from conformance.targets import RESERVED

    options: dict[str, Any] = {}
    for item in items:
        key, equals, text = item.partition("=")
        if not equals or not key.isidentifier():
            raise pytest.UsageError(
                f'--sandbox-option {item!r} is not of the form KEY=JSON; write such as image="x"'
            )
        if key in RESERVED:
            raise pytest.UsageError(
                f"--sandbox-option {key}: the checks set {key} themselves; leave it out"
            )
        try:
            options[key] = json.loads(text)
        except ValueError:
            raise pytest.UsageError(
                f"--sandbox-option {key}: {text!r} is no JSON; "
                f"write texts in quotes, such as {key}='\"text\"'"
            ) from None
    return options


def scope(items: list[str] | None) -> tuple[Requirement, ...] | None:
    """The requirements that were selected, or None for the default scope.

    Raises:
        pytest.UsageError: One does not exist.
    """
    if not items:
        return None
    try:
        return select(",".join(items))
    except UnknownRequirement as error:
        raise pytest.UsageError(f"--requirement: {error}") from None


def seed(config: pytest.Config) -> int | None:
    """The seed that was given to Hypothesis, if any.

    Raises:
        pytest.UsageError: It is no number.
    """
    given = config.getoption("hypothesis_seed", None)
    if given is None:
        return None
    try:
        return int(given)
    except ValueError:
        raise pytest.UsageError(
            f"--hypothesis-seed={given}: is no whole number; pass one to repeat a run"
        ) from None


def certificate_path(given: str | None) -> Path | None:
    """Where the certificate goes.

    Raises:
        pytest.UsageError: It cannot be written there.
    """
    if given is None:
        return None
    path = Path(given).absolute()
    if not given or path.is_dir():
        raise pytest.UsageError(f"--certificate={given}: is no file name; add one")
    if not path.parent.is_dir():
        raise pytest.UsageError(
            f"--certificate={given}: there is no folder {path.parent}; make it first"
        )
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise pytest.UsageError(
            f"--certificate={given}: cannot be written there; choose another place"
        )
    return path


def wants_tracebacks(config: pytest.Config) -> bool:
    """Whether the user asked for pytest's own account of failures."""
    given = any(argument.startswith("--tb") for argument in config.invocation_params.args)
    return given or config.option.verbose >= 2


def environment() -> dict[str, str]:
    """The environment of the run; pytest's own options travel as arguments."""
    return {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}


def handed_on(config: pytest.Config) -> list[str]:
    """The user's arguments that the inner pytest gets, configured ones first."""
    configured = [str(item) for item in config.getini("addopts")]
    configured += shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))
    paths = set(config.option.file_or_dir)
    configured = [item for item in configured if item not in paths]
    given = [str(item) for item in config.invocation_params.args]
    return _without(configured, {**_KEPT_BACK, **_CONFIGURED_KEPT_BACK}) + _without(
        given, _KEPT_BACK
    )


def _without(items: list[str], kept_back: dict[str, int]) -> list[str]:
    left: list[str] = []
    skip = 0
    for item in items:
        if skip:
            skip -= 1
            continue
        name = item.partition("=")[0] if item.startswith("--") else item[:2]
        if name not in kept_back or not item.startswith("-"):
            left.append(item)
        elif item == name:
            skip = kept_back[name]
    return left
