"""The pytest plugin: `pytest --sandbox=NAME` certifies a sandbox.

Nothing is imported or added here without `--sandbox` but the options themselves.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from typing import Any


def pytest_addoption(parser: pytest.Parser) -> None:
    """Define the options of the suite."""
    group = parser.getgroup("sandbox-conformance", "sandbox conformance")
    add = group.addoption
    add(
        "--sandbox",
        action="append",
        metavar="NAME",
        help="certify this sandbox: a known name, package.module:Class or path/file.py:Class "
        "(repeatable); only the packaged checks are run then",
    )
    add(
        "--sandbox-option",
        action="append",
        metavar="KEY=JSON",
        help="pass this keyword to the sandbox's constructor (repeatable)",
    )
    add(
        "--requirement",
        action="append",
        metavar="IDS",
        help="certify only these requirements: ids or areas, such as EGR-11,NET; "
        "NAME=IDS for one sandbox of several",
    )
    add(
        "--conformance-profile",
        choices=("quick", "standard", "thorough"),
        default="standard",
        help="examples a property beside those that are listed: 3, 25 or 200 (default: standard)",
    )
    add(
        "--lab",
        choices=("auto", "sealed", "loopback", "off"),
        default="auto",
        help="the laboratory: sealed namespaces, servers on loopback, or none "
        "(default: sealed where it can be had, else loopback)",
    )
    add("--certificate", metavar="FILE", help="write the certificate there, as JSON")
    add(
        "--require-certified",
        action="store_true",
        help="exit with 1 unless every requirement of the scope was certified",
    )
    add("--conformance-run", help=argparse.SUPPRESS)  # for the suite's own use in the laboratory


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Carry the run out in another process; only options that print are left to pytest."""
    option = config.option
    if option.conformance_run or option.help or option.version or not option.sandbox:
        _refuse_lone_options(config)
        return None
    from conformance.run.outer import run

    return run(config)


def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    """Drop what the user's own conftest would have understood: it is not loaded inside."""
    if getattr(early_config.known_args_namespace, "conformance_run", None):
        known, unknown = parser.parse_known_and_unknown_args(args)
        # The last path is the checks' own folder; any other is the value of such an option.
        values = known.file_or_dir[:-1]
        pairs = zip(["", *args], args, strict=False)
        args[:] = [
            argument
            for before, argument in pairs
            if argument not in unknown and not (before in unknown and argument in values)
        ]


def pytest_configure(config: pytest.Config) -> None:
    """Turn a test process of the suite into one."""
    if config.option.conformance_run:
        from conformance.run.inner import configure

        configure(config)


def _refuse_lone_options(config: pytest.Config) -> None:
    option: Any = config.option
    if option.sandbox or option.conformance_run:
        return
    lone = {
        "--sandbox-option": option.sandbox_option,
        "--requirement": option.requirement,
        "--certificate": option.certificate,
        "--require-certified": option.require_certified,
    }
    for name, value in lone.items():
        if value:
            raise pytest.UsageError(f"{name} means nothing without --sandbox; add --sandbox=NAME")
