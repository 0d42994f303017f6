"""What a command in a lab does to files, daemons and its environment stays in the lab."""

from __future__ import annotations

import os
import secrets
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.accounts import Account


@pytest.fixture
def project() -> Iterator[Path]:
    """A folder outside the temporary ones that everybody may write to, with a file in it."""
    with tempfile.TemporaryDirectory(
        prefix="lab-project-", dir="/var/lib" if _is_root() else None
    ) as name:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "precious").write_text("whole", encoding="ascii")
        (folder / "precious").chmod(0o666)
        yield folder


def _is_root() -> bool:
    return os.geteuid() == 0


def test_the_working_folder_is_protected_and_results_are_real(
    account: Account, project: Path
) -> None:
    results = project / "results"
    results.mkdir()
    results.chmod(0o777)
    script = (
        "echo gone > precious; rm precious; echo mine > canary; echo kept > results/report; pwd"
    )
    run = account.run("/bin/sh", "-c", script, cwd=project, results=[results])
    assert (run.returncode, run.stdout) == (0, f"{project}\n"), run.stderr
    assert (project / "precious").read_text(encoding="ascii") == "whole"
    assert sorted(path.name for path in project.iterdir()) == ["precious", "results"]
    assert (results / "report").read_text(encoding="ascii") == "kept\n"


def test_temporary_folders_and_the_real_home_are_protected(account: Account) -> None:
    canary = f"lab-canary-{secrets.token_hex(6)}"
    home = os.path.expanduser("~")
    script = (
        f"touch /tmp/{canary} /var/tmp/{canary} $TMPDIR/{canary} $HOME/{canary} && "
        f"(touch {home}/{canary} || true) && ls /tmp/{canary} && echo $HOME"
    )
    run = account.run("/bin/sh", "-c", script)
    assert run.returncode == 0, run.stderr
    assert run.stdout == f"/tmp/{canary}\n/dev/shm/home\n"
    for folder in ("/tmp", "/var/tmp", "/dev/shm", home):
        assert not Path(folder, canary).exists()


def test_results_may_be_the_working_folder_itself(account: Account, project: Path) -> None:
    run = account.run("/bin/sh", "-c", "echo kept > report", cwd=project, results=[project])
    assert run.returncode == 0, run.stderr
    assert (project / "report").read_text(encoding="ascii") == "kept\n"


_CONNECT = """
import socket, sys
client = socket.socket(socket.AF_UNIX)
try:
    client.connect(sys.argv[1])
    print("reached")
except OSError as refused:
    print(type(refused).__name__)
"""


@pytest.fixture
def daemon() -> Iterator[Path]:
    """A daemon of the host that listens on a socket outside every overlay."""
    folder = "/run" if _is_root() else "/dev/shm"
    with tempfile.TemporaryDirectory(prefix="lab-daemon-", dir=folder) as name:
        path = Path(name) / "socket"
        Path(name).chmod(0o755)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            path.chmod(0o666)
            listener.listen()
            yield path


def test_a_daemons_socket_is_masked_unless_it_is_needed(account: Account, daemon: Path) -> None:
    connect = (account.python, "-c", _CONNECT, str(daemon))
    assert account.run(*connect).stdout == "ConnectionRefusedError\n"
    if _is_root():
        assert account.run(*connect, leave=[daemon]).stdout == "reached\n"


def test_an_abstract_socket_of_the_host_is_out_of_reach(account: Account) -> None:
    name = f"\0lab-{secrets.token_hex(6)}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        listener.listen()
        script = _CONNECT.replace("sys.argv[1]", repr(name))
        assert account.run_python(script).stdout == "ConnectionRefusedError\n"


@pytest.mark.parametrize("mode", ["sealed", "loopback"])
def test_the_environment_is_scrubbed(caller: Account, mode: str) -> None:
    betraying = {
        "https_proxy": "http://proxy", "ALL_PROXY": "x", "SSL_CERT_DIR": "/x",
        "CURL_CA_BUNDLE": "/x", "KOYEB_API": "x", "NUAGE_X": "x", "AGENTS_SDK_X": "x",
        "MISTRAL_API_KEY": "x", "GITHUB_TOKEN": "x", "GH_TOKEN": "x", "AWS_PROFILE": "x",
        "GOOGLE_X": "x", "AZURE_X": "x", "MY_SECRET_THING": "x", "DB_PASSWORD": "x",
        "openai_api_key": "x", "SSH_AUTH_SOCK": "/x", "DOCKER_HOST": "tcp://x",
        "DBUS_SESSION_BUS_ADDRESS": "x",
    }  # fmt: skip
    betraying = {name: f"betrayed-{value}" for name, value in betraying.items()}
    kept = {"ALLOW_DANGEROUS_LOCAL_HOST": "1", "MY_SETTING": "kept"}
    environ = {**betraying, **kept}
    run = caller.run("env", mode=mode, environ=environ)
    inside = dict(line.partition("=")[::2] for line in run.stdout.splitlines())
    assert inside.keys() & betraying.keys() == set()
    assert {name: inside[name] for name in kept} == kept
    above = caller.run("/bin/sh", "-c", "cat /proc/$PPID/environ", mode=mode, environ=environ)
    assert "MY_SETTING" in above.stdout
    assert "betrayed-" not in above.stdout
    assert Path(inside["SSL_CERT_FILE"]).name == "ca.pem"
    assert inside["HOME"] != os.path.expanduser("~")


def test_the_system_trusts_the_lab_and_asks_its_resolver(account: Account) -> None:
    run = account.run("cat", "/etc/resolv.conf", "/etc/hosts")
    assert run.stdout.startswith("nameserver 11.77.0.254\n"), run.stderr
    assert "127.0.0.1 localhost" in run.stdout
    bundle = "/etc/ssl/certs/ca-certificates.crt"
    if Path(bundle).exists():
        same = account.run("/bin/sh", "-c", f"cmp {bundle} $SSL_CERT_FILE")
        assert same.returncode == 0, same.stdout + same.stderr
