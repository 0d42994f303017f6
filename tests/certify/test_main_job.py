"""The main job, end to end, in the ways that users meet it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Certify

CHECKOUT = Path(__file__).parents[2]
SYSTEM_PYTHON = Path("/usr/bin/python3")


def test_bashkit_is_certified_by_what_the_lab_saw(certify: Certify) -> None:
    run = certify("--sandbox=bashkit", "--require-certified")

    assert run.certificate["outcome"] == "certified", run.output
    assert run.code == 0
    assert run.certificate["lab"]["mode"] == "sealed"
    assert run.live_examples >= 200
    assert run.verdicts["EGR-11"] == "pass"


def test_several_processes_give_the_same_verdicts(certify: Certify) -> None:
    alone = certify("--sandbox=bashkit", "--conformance-profile=quick")
    together = certify("--sandbox=bashkit", "--conformance-profile=quick", "-n2")

    assert together.code == 0, together.output
    assert together.verdicts == alone.verdicts


def test_no_sandbox_is_certified_for_what_it_refuses(certify: Certify) -> None:
    run = certify("--sandbox=none", "--require-certified")

    assert run.certificate["outcome"] == "certified", run.output
    assert run.verdicts["CFG-02"] == "pass"
    assert run.verdicts["EGR-01"] == "not applicable"


def test_a_conftest_that_starts_a_thread_does_not_break_the_seal(
    certify: Certify, tmp_path: Path
) -> None:
    (tmp_path / "conftest.py").write_text(
        "import threading\n"
        "threading.Thread(target=threading.Event().wait, args=(60,), daemon=True).start()\n"
    )

    run = certify("--sandbox=bashkit", "--conformance-profile=quick")

    assert run.code == 0, run.output
    assert run.certificate["lab"]["mode"] == "sealed"


def test_several_sandboxes_get_a_certificate_each(certify: Certify, tmp_path: Path) -> None:
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--sandbox=bashkit", "--sandbox=none"),
            *("--requirement=CFG", "--certificate=both.json"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert run.returncode == 0, run.stdout
    assert (tmp_path / "both.json").read_text().count('"outcome": "certified"') == 2


@pytest.fixture(scope="module")
def readable_venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that an ordinary user can read, with the suite installed."""
    if os.getuid() != 0:
        pytest.skip("the other tests of this module already run as an ordinary user")
    folder = tmp_path_factory.mktemp("user")
    for path in (folder, *folder.parents[:-2]):
        path.chmod(0o755)
    source = shutil.copytree(
        CHECKOUT, folder / "source", ignore=shutil.ignore_patterns(".*", "certs", "tests")
    )
    environment = folder / "venv"
    subprocess.run([SYSTEM_PYTHON, "-m", "venv", environment], check=True, timeout=120)
    pip = [environment / "bin" / "python", "-m", "pip", "install", "-q"]
    subprocess.run([*pip, f"{source}[suite,bashkit]"], check=True, timeout=300)
    return environment


def test_an_ordinary_user_gets_the_same_certificate(
    certify: Certify, readable_venv: Path, tmp_path: Path
) -> None:
    nobody = pwd.getpwnam("nobody")
    for path in (tmp_path, *tmp_path.parents[:-2]):
        path.chmod(0o755)
    os.chown(tmp_path, nobody.pw_uid, nobody.pw_gid)
    ids = [f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]

    run = certify(
        "--sandbox=bashkit",
        "--require-certified",
        "--conformance-profile=quick",
        prefix=["setpriv", *ids, str(readable_venv / "bin" / "python"), "-m", "pytest"],
    )

    assert run.code == 0, run.output
    assert run.certificate["lab"]["mode"] == "sealed", run.output
    assert run.certificate["environment"]["user"] == "ordinary user"
