"""The outer process: validates what it can, launches the run, files the certificate.

It never imports the subject: foreign code runs inside of the laboratory alone.
"""

from __future__ import annotations

import secrets
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.run import arguments
from conformance.run.packages import refuse_incomplete
from conformance.run.plan import Plan
from conformance.secrecy import names_a_secret

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import IO


def run(config: pytest.Config) -> int:
    """Carry out the run that the options ask for, and give its exit code.

    Raises:
        pytest.UsageError: An option cannot be used, or the laboratory cannot be had.
    """
    option = config.option
    refuse_incomplete()
    arguments.refuse_lost_folder()
    arguments.refuse_paths(config)
    arguments.refuse_bypasses(config)
    certificate = arguments.result_path("--certificate", option.certificate)
    junit = arguments.result_path("--junitxml", getattr(option, "xmlpath", None), make=True)
    _free_stdin(config)
    # Results leave the lab through descriptors of files without a name: no folder of the
    # user's is open to the subject, and nothing is left behind if this process is killed.
    with tempfile.TemporaryFile() as sheet, tempfile.TemporaryFile() as xml:
        plan = replace(
            _plan(config),
            certificate_fd=sheet.fileno() if certificate else None,
            junit_fd=xml.fileno() if junit else None,
        )
        with _interrupts() as seen:
            code = int(pytest.ExitCode.INTERRUPTED)
            with suppress(KeyboardInterrupt):  # it came before the lab stood
                code = _launch(plan, seen)
        if seen or code == 128 + signal.SIGINT:
            code = int(pytest.ExitCode.INTERRUPTED)
        if certificate:
            _file(certificate, sheet)
        if junit:
            _file(junit, xml)
    return code


def _plan(config: pytest.Config) -> Plan:
    option = config.option
    options = arguments.constructor_options(option.sandbox_option or [])
    sandboxes = arguments.sandboxes(option.sandbox)
    seed = arguments.seed(config)
    reproduce = [f"--sandbox-option={_shown(item)}" for item in option.sandbox_option or []]
    if option.lab != "auto":
        reproduce.append(f"--lab={option.lab}")
    if option.conformance_profile != "standard":
        reproduce.append(f"--conformance-profile={option.conformance_profile}")
    return Plan(
        sandboxes=sandboxes,
        options=options,
        scopes=arguments.scopes(option.requirement or [], sandboxes),
        profile=option.conformance_profile,
        lab=option.lab,
        seed=secrets.randbelow(2**32) if seed is None else seed,
        arguments=arguments.handed_on(config),
        reproduce=reproduce,
        import_first=[str(path) for path in config.getini("pythonpath")],
        import_last=[str(config.rootpath), str(config.invocation_params.dir)],
        require_certified=option.require_certified,
        quiet=not arguments.wants_tracebacks(config),
    )


def _launch(plan: Plan, seen: list[int]) -> int:
    # -P: a stray module in the working folder must not stand in for one of ours.
    with tempfile.TemporaryFile() as sheet:
        sheet.write(plan.to_json().encode())
        sheet.flush()
        sheet.seek(0)
        command = [sys.executable, "-P", "-m", "conformance.run.supervise", str(sheet.fileno())]
        results = [fd for fd in (plan.certificate_fd, plan.junit_fd) if fd is not None]
        if plan.lab == "off":
            return _without_lab(command, [sheet.fileno(), *results])
        return _in_lab(command, plan, [sheet.fileno(), *results], seen)


def _in_lab(command: list[str], plan: Plan, fds: list[int], seen: list[int]) -> int:
    try:
        from conformance.lab.errors import LabUnavailable
        from conformance.lab.launch import run_in_lab
    except ImportError as error:
        raise pytest.UsageError(
            f"the laboratory cannot be loaded: {error}; "
            "install sandbox-conformance[suite], or pass --lab=off"
        ) from error
    mode: Any = plan.lab
    try:
        return run_in_lab(
            command,
            mode=mode,
            cwd=Path.cwd(),
            results=[],
            environ=arguments.environment(),
            pass_fds=fds,
            on_interrupt=lambda: seen.append(signal.SIGINT),
            on_fallback=lambda reason: _say(f"sandbox-conformance: {reason}"),
        )
    except LabUnavailable as error:
        raise pytest.UsageError(str(error)) from error


def _without_lab(command: list[str], fds: list[int]) -> int:
    with subprocess.Popen(command, pass_fds=fds, env=arguments.environment()) as child:
        while True:
            try:
                code = child.wait()
            except KeyboardInterrupt:
                continue  # the child got it too, and ends in its own order
            return 128 - code if code < 0 else code


def _file(path: Path, sheet: IO[bytes]) -> None:
    sheet.seek(0)
    content = sheet.read()
    if not content:
        _say(f"sandbox-conformance: the run made no results, so {path} was not written")
        return
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".results-", delete=False) as file:
        file.write(content)
    # The finished file takes the name at once: a reader never sees half of it.
    Path(file.name).chmod(0o644)
    Path(file.name).replace(path)


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Note each Ctrl-C, whatever became of it: it may reach the run before it can answer."""
    seen: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        seen.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


def _free_stdin(config: pytest.Config) -> None:
    """Give the run our own stdin, which pytest's capturing has replaced; a debugger needs it."""
    capture = config.pluginmanager.get_plugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)


def _shown(item: str) -> str:
    key, _, _ = item.partition("=")
    return f"{key}=..." if names_a_secret(key) else item


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
