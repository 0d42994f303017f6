"""A lab passes on what it runs, and whatever happens, nothing of it stays."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.lab.launch import run_in_lab
from tests.lab.accounts import ROOT, Account

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SECONDS = 20.0


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {_SECONDS} s: {what}"
        time.sleep(0.02)


def _processes_with(mark: str) -> list[str]:
    """Give the command lines of processes that carry `mark` in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if mark.encode() in (folder / "environ").read_bytes():
                    found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
    return found


@pytest.fixture
def folder() -> Iterator[Path]:
    """A temporary folder for a caller, to be found empty."""
    with tempfile.TemporaryDirectory(prefix="lab-test-") as name:
        Path(name).chmod(0o777)
        yield Path(name)


def _host_state(folder: Path) -> dict[str, object]:
    return {
        "mounts": Path("/proc/self/mountinfo").read_text(encoding="utf-8"),
        "devices": Path("/proc/net/dev").read_text(encoding="utf-8").count("\n"),
        "folder": os.listdir(folder),
        "shared memory": {"lab", "upper", "home"} & set(os.listdir("/dev/shm")),
    }


@pytest.mark.parametrize("mode", ["sealed", "loopback"])
@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 7", 7), ("kill -TERM $$", 128 + signal.SIGTERM), ("sleep 600 & exit 0", 0)],
)
def test_the_exit_code_is_the_commands(caller: Account, mode: str, script: str, code: int) -> None:
    run = caller.run("/bin/sh", "-c", script, mode=mode)
    assert run.returncode == code, run.stderr


@pytest.mark.parametrize("mode", ["sealed", "loopback"])
def test_a_command_that_is_missing_is_named(caller: Account, mode: str) -> None:
    run = caller.run("no-such-command", mode=mode)
    assert run.returncode == 127
    assert "the command no-such-command cannot be run: No such file" in run.stderr


def test_descriptors_and_standard_streams_are_handed_on(tmp_path: Path) -> None:
    read, written = os.pipe()
    code = run_in_lab(
        [sys.executable, "-c", f"import os; os.write({written}, b'through')"],
        mode="loopback",
        cwd=tmp_path,
        results=[],
        environ=os.environ,
        pass_fds=[written],
        on_fallback=pytest.fail,
    )
    os.close(written)
    with open(read, "rb") as pipe:  # ends only if no server holds it open
        assert (code, pipe.read()) == (0, b"through")


@pytest.mark.parametrize("mode", ["sealed", "loopback"])
def test_the_command_inherits_no_descriptor_of_the_lab(caller: Account, mode: str) -> None:
    run = caller.run("ls", "/proc/self/fd", mode=mode)
    assert run.stdout.split() == ["0", "1", "2", "3"]  # the last is the listing itself


def test_no_process_of_the_lab_holds_a_folder_of_the_host(caller: Account) -> None:
    folders = "|".join(("/tmp", "/var/tmp", os.path.expanduser("~"), str(ROOT)))
    script = f"ls -l /proc/2/cwd /proc/[12]/fd | grep -c -E ' ({folders})' || true"
    run = caller.run("/bin/sh", "-c", script)
    assert run.stdout == "0\n", run.stderr


@pytest.mark.parametrize("mode", ["sealed", "loopback"])
def test_nothing_outlives_the_end_of_the_command(account: Account, mode: str, folder: Path) -> None:
    before, mark = _host_state(folder), f"lab-end-{os.getpid()}-{mode}"
    run = account.run("/bin/sh", "-c", "setsid sleep 600 & exit 3", mode=mode,
                      environ={"LAB_TEST": mark, "TMPDIR": str(folder)})  # fmt: skip
    assert run.returncode == 3, run.stderr
    assert _processes_with(mark) == []
    assert _host_state(folder) == before


@pytest.mark.parametrize("mode", ["sealed", "loopback"])
def test_nothing_outlives_a_caller_that_is_killed(
    account: Account, mode: str, folder: Path
) -> None:
    before, mark = _host_state(folder), f"lab-kill-{os.getpid()}-{mode}"
    caller = _start(
        account, "setsid sleep 600 & echo up; sleep 600", mode=mode, mark=mark, folder=folder
    )
    assert caller.stdout is not None
    assert caller.stdout.readline() == b"up\n"
    caller.kill()
    caller.wait(_SECONDS)
    caller.stdout.close()
    _until(lambda: not _processes_with(mark), "every process of the lab is gone")
    _until(lambda: _host_state(folder) == before, "every mount, device and folder is gone")


def _start(
    account: Account, script: str, *, mode: str, mark: str, folder: Path
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        account.caller(["/bin/sh", "-c", script], mode=mode),
        env={**os.environ, **account.environ, "LAB_TEST": mark, "TMPDIR": str(folder)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        process_group=0,
    )


@pytest.mark.parametrize("mode", ["sealed", "loopback"])
def test_a_command_that_kills_its_own_group_ends_alone(
    caller: Account, mode: str, folder: Path
) -> None:
    before = _host_state(folder)
    environ = {"TMPDIR": str(folder)}
    run = caller.run("/bin/sh", "-c", "kill -KILL 0", mode=mode, environ=environ)
    assert run.returncode == 128 + signal.SIGKILL, run.stderr
    assert _host_state(folder) == before


@pytest.mark.parametrize("mode", ["sealed", "loopback"])
@pytest.mark.parametrize("whole_group", [False, True])
def test_ctrl_c_reaches_the_command_and_its_answer_counts(
    caller: Account, mode: str, whole_group: bool, folder: Path
) -> None:
    process = _start(caller, "trap 'exit 42' INT; echo up; while :; do sleep 0.1; done",
                     mode=mode, mark="int", folder=folder)  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
    assert process.wait(_SECONDS) == 42
    process.stdout.close()


@pytest.mark.parametrize("mode", ["sealed", "loopback"])
def test_a_second_ctrl_c_kills(caller: Account, mode: str, folder: Path) -> None:
    before = _host_state(folder)
    script = "trap 'echo no' INT; echo up; while :; do sleep 0.1; done"
    process = _start(caller, script, mode=mode, mark="int2", folder=folder)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == b"no\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(_SECONDS) == 128 + signal.SIGKILL
    process.stdout.close()
    assert _host_state(folder) == before


def test_the_command_may_use_the_terminal_and_the_caller_gets_it_back(caller: Account) -> None:
    inner = caller.caller(["/bin/sh", "-c", "read line; echo heard $line"])
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        joined = " ".join(map(_quoted, inner))
        os.execv("/bin/sh", ["sh", "-c", f"{joined}; read again; echo then $again"])
    os.write(terminal, b"one\ntwo\n")
    try:
        output = _read_terminal(terminal, b"then two")
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    assert b"heard one" in output


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _read_terminal(terminal: int, end: bytes) -> bytes:
    output, deadline = b"", time.monotonic() + _SECONDS
    while end not in output and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                output += os.read(terminal, 4096)
            except OSError:  # the other end is closed
                break
    assert end in output, output
    return output


def _without_namespaces(caller: Account) -> Account:
    """An account that the kernel gives no network namespace."""
    limit = 'echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"'
    prefix = ("unshare", "--user", "--map-root-user", "sh", "-c", limit, "sh")
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("needs user namespaces")
    return Account(prefix)


def test_without_namespaces_a_sealed_lab_is_refused_in_one_line(caller: Account) -> None:
    run = _without_namespaces(caller).run("true", mode="sealed")
    assert run.returncode == 99
    (line,) = run.stderr.splitlines()
    assert line.startswith("UNAVAILABLE the kernel refused the lab's namespaces")
    assert line.endswith("or use --lab=loopback")


def test_without_namespaces_auto_says_so_and_takes_loopback(caller: Account) -> None:
    script = "from conformance.lab.client import Lab; print(Lab.connect('w').mode)"
    run = _without_namespaces(caller).run_python(script, mode="auto")
    assert (run.returncode, run.stdout) == (0, "loopback\n"), run.stderr
    assert run.stderr.startswith("FALLBACK the kernel refused the lab's namespaces")


def test_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="mode is 'off'"):
        run_in_lab(["true"], mode="off", cwd=tmp_path, results=[], environ={},  # type: ignore[arg-type]
                   on_fallback=pytest.fail)  # fmt: skip


def test_a_lab_starts_in_reasonable_time(caller: Account) -> None:
    begin = time.monotonic()
    assert caller.run("true").returncode == 0
    assert time.monotonic() - begin < 10  # 0.7 s on two idle cores; this is a guard, no benchmark


if sys.platform != "linux":
    pytest.skip("these tests read /proc", allow_module_level=True)
