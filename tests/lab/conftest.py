"""Labs for the tests: a caller of its own for each, so that its output and end can be seen."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING

import pytest

from tests.lab.accounts import ROOT, Account

if TYPE_CHECKING:
    from collections.abc import Sequence

NOBODY = 65534
PYTHON_VARIABLE = "LAB_TESTS_PYTHON"


def _needs_linux() -> None:
    if sys.platform != "linux":
        pytest.skip("a sealed lab needs Linux")


@pytest.fixture(scope="session")
def caller() -> Account:
    """The account that the tests run under."""
    _needs_linux()
    return Account()


@pytest.fixture(scope="session")
def ordinary() -> Account:
    """An ordinary user: `nobody` where the tests run as root."""
    _needs_linux()
    if os.geteuid() != 0:
        return Account()
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("setpriv (util-linux) is needed to become an ordinary user")
    prefix = (setpriv, f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    path = os.pathsep.join((str(ROOT), sysconfig.get_path("purelib")))
    environ = {"HOME": "/nonexistent", "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    wanted = os.environ.get(PYTHON_VARIABLE)
    for python in [wanted] if wanted else [sys.executable, "/usr/bin/python3"]:
        if _is_usable(prefix, python, environ):
            return Account(prefix, python, environ)
    return pytest.skip(
        f"no interpreter that `nobody` may run has our packages; name one in {PYTHON_VARIABLE}"
    )


def _is_usable(prefix: Sequence[str], python: str, environ: dict[str, str]) -> bool:
    needed = "import cryptography, pyroute2, pytest, conformance.lab.certs, conformance.lab.launch"
    # Started from a shell of the account: what setpriv itself starts may have been root's to open.
    tried = subprocess.run(
        [*prefix, "/bin/sh", "-c", 'exec "$0" -c "$1"', python, needed],
        env={**os.environ, **environ},
        cwd="/",
        capture_output=True,
        check=False,
    )
    return tried.returncode == 0


@pytest.fixture(params=["caller", "ordinary"])
def account(request: pytest.FixtureRequest) -> Account:
    """Each kind of account in turn."""
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]
