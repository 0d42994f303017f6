"""Reading the options of a run, and choosing what of them the inner pytest gets."""

from __future__ import annotations

import errno
import json
import os
import shlex
import tempfile
from pathlib import Path
from typing import Any

import pytest

from conformance.requirements import UnknownRequirement, select

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
    from conformance.subject.targets import RESERVED

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
        except (ValueError, RecursionError):
            raise pytest.UsageError(
                f"--sandbox-option {key}: {text[:80]!r} is no JSON; "
                f"write texts in quotes, such as {key}='\"text\"'"
            ) from None
    return options


def scopes(items: list[str], subjects: list[str]) -> dict[str, list[str]]:
    """The ids and areas that were selected for each subject; none for the default scope.

    Args:
        items: `IDS`, for every subject without a scope of its own, or `NAME=IDS`.
        subjects: The `--sandbox` values.

    Raises:
        pytest.UsageError: A requirement or a subject does not exist.
    """
    given: dict[str, list[str]] = {}
    for item in items:
        name, _, ids = item.rpartition("=")
        given.setdefault(name, []).append(ids)
    for name in given:
        if name and name not in subjects:
            raise pytest.UsageError(
                f"--requirement: {name} is no sandbox of this run; pass --sandbox={name} as well"
            )
    try:
        selected = {name: list(select(",".join(ids))) for name, ids in given.items()}
    except UnknownRequirement as error:
        raise pytest.UsageError(f"--requirement: {error}") from None
    chosen = {name: selected.get(name) or selected.get("") for name in subjects}
    return {name: ids for name, ids in chosen.items() if ids}


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


def result_path(option: str, given: str | None, *, make: bool = False) -> Path | None:
    """Where a file of results goes, links followed.

    Args:
        option: The option, for the message.
        given: What it was given.
        make: Whether a missing folder is made.

    Raises:
        pytest.UsageError: It cannot be written there, or something is there that is no
            regular file: a device or a pipe would be replaced, not written.
    """
    if given is None:
        return None
    where = f"{option}={given}"
    try:
        path = Path(given).expanduser().resolve()
        if not given or path.is_dir():
            raise pytest.UsageError(f"{where}: is no file name; add one")
        if path.exists() and not path.is_file():
            raise pytest.UsageError(f"{where}: is no regular file; choose another name")
        if make:
            path.parent.mkdir(parents=True, exist_ok=True)
        if not path.parent.is_dir():
            raise pytest.UsageError(f"{where}: there is no folder {path.parent}; make it first")
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, "it may not be overwritten")
        with tempfile.TemporaryFile(dir=path.parent):
            return path
    except OSError as error:
        raise pytest.UsageError(
            f"{where}: cannot be written there ({error.strerror}); choose another place"
        ) from None


def refuse_lost_folder() -> None:
    """Refuse to start where nothing can be run.

    Raises:
        pytest.UsageError: The working folder does not exist any more.
    """
    try:
        Path.cwd()
    except FileNotFoundError:
        raise pytest.UsageError("the working folder was deleted; go to another one") from None


_BYPASSES = {"setuponly": "--setup-only", "setupplan": "--setup-plan", "trace": "--trace"}


def refuse_bypasses(config: pytest.Config) -> None:
    """Refuse options of pytest's under which no check is made, or not to its end.

    Raises:
        pytest.UsageError: One was given.
    """
    for name, option in _BYPASSES.items():
        if getattr(config.option, name, False):
            raise pytest.UsageError(f"{option} makes no check; leave it out with --sandbox")


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
