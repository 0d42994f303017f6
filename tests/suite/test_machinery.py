"""Neither a subject nor an option takes a run's verdicts, records or results away."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.suite.conftest import Runner

AROUND = """
@verifies(EXE_01)
def test_before(target):
    pass

@verifies(EXE_02)
def test_the_deed(target):
    {deed}

@verifies(EXE_03)
def test_after(target):
    pass
"""


@pytest.mark.parametrize(
    "deed",
    [
        "os.killpg(os.getpgid(0), signal.SIGKILL)",
        "os.killpg(os.getpgid(0), signal.SIGTERM)",
        "os.closerange(3, 256); os._exit(0)",
    ],
)
def test_a_deed_that_ends_the_process_fails_one_check(runner: Runner, deed: str) -> None:
    finished = runner.supervise(AROUND.format(deed=deed), "Right")
    assert finished.verdicts == {"EXE-01": "pass", "EXE-02": "fail", "EXE-03": "pass"}
    assert finished.code == 1


def test_an_emptied_temporary_folder_takes_no_records_along(
    runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "empties.py").write_text(
        "import shutil, tempfile\n"
        "from sandboxes import NoSandbox\n"
        "class Empties(NoSandbox):\n"
        "    def __init__(self, **options):\n"
        "        super().__init__(**options)\n"
        "        shutil.rmtree(tempfile.gettempdir(), ignore_errors=True)\n"
    )
    finished = runner.pytest("--lab=off", "--sandbox=empties:Empties", "--requirement=NET-05")
    assert finished.verdicts["NET-05"] == "pass", finished.output
    assert finished.code == 0


def test_an_error_that_cannot_be_shown_is_still_the_subjects(runner: Runner) -> None:
    checks = """
    from conformance.subject.blame import blame

    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    @verifies(EXE_01)
    def test_mute(target):
        error = Mute()
        blame(error, "execute('x')", "raise errors that can be shown")
        raise error
    """
    finished = runner.supervise(checks, "Right")
    assert finished.verdicts == {"EXE-01": "fail"}
    assert "cannot be shown" in finished.entry("EXE-01")["message"]


@pytest.mark.parametrize("option", ["--setup-only", "--setup-plan", "--trace"])
def test_an_option_under_which_no_check_is_made_is_refused(runner: Runner, option: str) -> None:
    finished = runner.pytest("--sandbox=none", option)
    assert finished.code == 4
    assert f"{option} makes no check" in finished.output


def test_a_check_whose_body_did_not_run_is_no_pass(runner: Runner) -> None:
    checks = "@verifies(EXE_01)\ndef test_open(target):\n    pass\n"
    finished = runner.supervise(checks, "Right", arguments=["--setup-only"])
    assert finished.verdicts == {"EXE-01": "error"}
    assert finished.code == 1


@pytest.mark.parametrize("arguments", [(), ("-n", "2")], ids=["alone", "workers"])
def test_nothing_is_certified_without_checks_that_cannot_be_loaded(
    runner: Runner, arguments: tuple[str, ...]
) -> None:
    folder = runner.folder / "checks"
    folder.mkdir()
    (folder / "test_broken.py").write_text("import no_such_module_anywhere\n")
    checks = "@verifies(EXE_01)\ndef test_open(target):\n    pass\n"
    finished = runner.supervise(checks, "Right", arguments=arguments)
    assert (finished.code, finished.content) == (1, None)
    assert "test_broken.py cannot be loaded (ModuleNotFoundError" in finished.output
    assert "certified" not in finished.output


@pytest.mark.parametrize("option", ["--certificate", "--junitxml"])
def test_results_replace_no_pipe(runner: Runner, option: str) -> None:
    pipe = runner.folder / "pipe"
    os.mkfifo(pipe)
    finished = runner.pytest("--lab=off", "--sandbox=none", f"{option}={pipe}")
    assert finished.code == 4
    assert "is no regular file" in finished.output
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_results_go_where_a_link_leads(runner: Runner) -> None:
    place = runner.folder / "real.json"
    place.write_text("old")
    link = runner.folder / "link.json"
    link.symlink_to(place)
    runner.pytest("--lab=off", "--sandbox=none", "--requirement=NET-05", f"--certificate={link}")
    assert link.is_symlink()
    assert '"schema_version"' in place.read_text()


def _has_launched(pid: int) -> bool:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return any(
        b"conformance.lab.launcher" in Path(f"/proc/{child}/cmdline").read_bytes()
        for child in children
        if Path(f"/proc/{child}").exists()
    )


@pytest.mark.parametrize("delay", [0.0, 0.4, 1.5])
def test_ctrl_c_ends_a_run_with_2_whenever_it_comes(runner: Runner, delay: float) -> None:
    command = [sys.executable, "-m", "pytest", "--sandbox=bashkit", "--lab=loopback"]
    run = subprocess.Popen(
        command,
        cwd=runner.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 30
    while not _has_launched(run.pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(delay)
    run.send_signal(signal.SIGINT)
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 2, output
    assert "certified" not in output.replace("not certified", "")
