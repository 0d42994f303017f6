"""The main job, end to end, in the ways that users meet it."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.certify.conftest import Certify, Run

    Standard = Callable[[str], Run]

ALLOWED = "ALLOW_DANGEROUS_LOCAL_HOST"
README = Path(__file__).parents[2] / "README.md"


def test_bashkit_is_certified_by_what_the_lab_saw(standard: Standard) -> None:
    run = standard("bashkit")

    assert run.certificate["outcome"] == "certified", run.output
    assert run.code == 0
    assert run.certificate["lab"]["mode"] == "sealed"
    assert run.live_examples >= 200
    assert run.verdicts["EGR-11"] == "pass"


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The word of a person who wants commands to run on this host."""
    monkeypatch.setenv(ALLOWED, "1")


@pytest.mark.usefixtures("allowed")
def test_local_is_certified_and_said_to_isolate_nothing(standard: Standard) -> None:
    run = standard("local")

    assert run.certificate["outcome"] == "certified", run.output
    assert run.code == 0
    assert "posture: network all only, no isolation, processes" in run.output
    assert run.verdicts["TMO-03"] == "pass"


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize("name", ["bashkit", "local"])
def test_several_processes_and_fewer_examples_give_the_same_verdicts(
    certify: Certify, standard: Standard, name: str
) -> None:
    run = certify(f"--sandbox={name}", "--conformance-profile=quick", "-n2")

    assert run.code == 0, run.output
    assert run.verdicts == standard(name).verdicts


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

    run = certify("--sandbox=bashkit", "--requirement=CFG,EGR-11")

    assert run.code == 0, run.output
    assert run.certificate["lab"]["mode"] == "sealed"


def test_several_sandboxes_get_a_certificate_each(certify: Certify, tmp_path: Path) -> None:
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "--sandbox=bashkit", "--sandbox=none"),
            *("--requirement=CFG-01,NET-02", "--certificate=both.json"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert run.returncode == 0, run.stdout
    assert (tmp_path / "both.json").read_text().count('"outcome": "certified"') == 2


def first_line_of_the_readme() -> str:
    lines = re.findall(r"^    (python3 -m venv .*--sandbox=bashkit)$", README.read_text(), re.M)
    assert len(lines) == 1
    return str(lines[0])


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what is committed or about to be, such as a clone has."""
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=README.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, names.stdout.split("\0")):
        place = tmp_path / "checkout" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(README.parent / name, place)
    return tmp_path / "checkout"


def ordinary_user(*folders: Path) -> tuple[list[str], dict[str, str]]:
    """A command prefix and an environment that make an ordinary user, and give him folders."""
    if os.getuid() != 0:
        return [], dict(os.environ)
    nobody = pwd.getpwnam("nobody")
    for top in folders:
        for outer in top.parents[:-2]:
            outer.chmod(outer.stat().st_mode | 0o555)
        for path in (top, *top.rglob("*")):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
    prefix = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
    # The first python3 on root's path may lie in a folder that only root can read.
    return prefix, {**os.environ, "PATH": "/usr/bin:/bin", "HOME": str(folders[0])}


def test_the_first_line_of_the_readme_certifies_bashkit_for_an_ordinary_user(
    checkout: Path,
) -> None:
    prefix, environment = ordinary_user(checkout)

    run = subprocess.run(
        [*prefix, "sh", "-c", first_line_of_the_readme()],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert "bashkit: certified" in run.stdout
    assert "lab: sealed" in run.stdout

    local = subprocess.run(
        [*prefix, ".venv/bin/pytest", "--sandbox=local", "--conformance-profile=quick"],
        cwd=checkout,
        env={**environment, ALLOWED: "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert "local: certified" in local.stdout, local.stdout + local.stderr
