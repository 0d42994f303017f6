"""Whatever a command in a sealed lab tries, the machine that it runs on stays as it was."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.lab import kernel
from tests.lab.accounts import ROOT, Account

if TYPE_CHECKING:
    from collections.abc import Iterator

if sys.platform != "linux":
    pytest.skip("a sealed lab needs Linux", allow_module_level=True)

_SECONDS = 20.0
_NOBODY = 65534
_needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what is refused")

_PLACES = sorted(
    {
        *("/", "/dev", "/dev/shm", "/etc", "/run/lock", "/sys", "/sys/fs/cgroup", "/tmp"),
        *("/usr/local", "/var/cache", "/var/lib", "/var/log", "/var/spool", "/var/tmp", str(ROOT)),
        *(entry.path for entry in os.scandir("/") if entry.is_dir(follow_symlinks=False)),
    }
)
_WRITE = """
import sys
canary, *places = sys.argv[1:]
for place in places:
    try:
        with open(f"{place}/{canary}", "w") as file:
            file.write("written")
        print(place)
    except OSError as refused:
        assert refused.errno in (1, 2, 13, 30), f"{place}: {refused}"
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of the host's that is none of the temporary ones, nor a home, where possible."""
    with tempfile.TemporaryDirectory(
        prefix="lab-host-", dir="/var/lib" if os.geteuid() == 0 else None
    ) as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_nothing_that_is_written_reaches_the_host(account: Account) -> None:
    canary = f"lab-canary-{secrets.token_hex(6)}"
    run = account.run(account.python, "-c", _WRITE, canary, *_PLACES)
    left = [place for place in _PLACES if os.path.lexists(f"{place}/{canary}")]
    for place in left:
        os.unlink(f"{place}/{canary}")
    assert left == []
    assert run.returncode == 0, run.stderr
    writable = set(run.stdout.split())
    assert {"/tmp", "/var/tmp", "/dev/shm"} <= writable
    assert writable.isdisjoint({"/", "/sys", "/sys/fs/cgroup"})
    if account.prefix == () and os.geteuid() == 0:
        assert {"/etc", "/usr/local", "/var/lib", "/srv", "/home", "/boot"} <= writable


_REACH = """
import os, socket, sys
folder = sys.argv[1]
print("up", flush=True)
sys.stdin.readline()
client = socket.socket(socket.AF_UNIX)
for attempt in (
    lambda: client.connect(f"{folder}/socket"),
    lambda: os.open(f"{folder}/fifo", os.O_WRONLY | os.O_NONBLOCK),
):
    try:
        attempt()
        print("reached")
    except OSError as refused:
        print(refused.errno in (2, 6, 111) or refused)
"""


def test_a_socket_or_fifo_of_the_host_that_came_later_is_out_of_reach(
    account: Account, folder: Path
) -> None:
    process = subprocess.Popen(
        account.caller([account.python, "-c", _REACH, str(folder)]),
        env={**os.environ, **account.environ},
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    os.mkfifo(folder / "fifo")
    reader = os.open(folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
        listener.listen()
        for name in ("fifo", "socket"):
            (folder / name).chmod(0o666)
        output, _ = process.communicate("go\n", _SECONDS)
    os.close(reader)
    assert output == "True\nTrue\n"


def test_the_devices_are_the_labs_own_and_work(account: Account) -> None:
    script = (
        "import os, pty; print(os.stat('/dev').st_dev); open('/dev/null', 'w').write('x');"
        "assert len(open('/dev/urandom', 'rb').read(8)) == 8;"
        "main, other = pty.openpty(); os.write(other, b'through'); print(os.read(main, 7));"
        "print(os.ttyname(other), sorted(set(os.listdir('/dev')) - {'kvm', 'fuse', 'net'}))"
    )
    run = account.run_python(script)
    device, through, names = run.stdout.splitlines()
    assert int(device) != os.stat("/dev").st_dev
    assert through == "b'through'"
    assert names == (
        "/dev/pts/0 ['fd', 'full', 'null', 'ptmx', 'pts', 'random', 'shm', 'stderr', 'stdin', "
        "'stdout', 'tty', 'urandom', 'zero']"
    )


def test_shared_memory_and_host_name_are_the_labs_own(account: Account) -> None:
    run = account.run("readlink", "/proc/self/ns/ipc", "/proc/self/ns/uts")
    theirs = set(run.stdout.split())
    assert len(theirs) == 2, run.stderr
    assert theirs.isdisjoint({os.readlink("/proc/self/ns/ipc"), os.readlink("/proc/self/ns/uts")})


@pytest.mark.parametrize("kind", ["CapEff", "CapPrm", "CapBnd"])
def test_what_root_may_inside_does_not_reach_the_machine(caller: Account, kind: str) -> None:
    run = caller.run("cat", "/proc/self/status")
    (line,) = (line for line in run.stdout.splitlines() if line.startswith(kind))
    held = int(line.split()[1], 16)
    assert [number for number in kernel.MACHINE_CAPABILITIES if held >> number & 1] == []
    if os.geteuid() == 0:
        assert held >> kernel.CAP_SYS_ADMIN & 1  # a sandbox may be built on namespaces


@pytest.mark.parametrize("cwd", ["/", "/usr"])
def test_a_lab_starts_from_anywhere_and_without_a_home(account: Account, cwd: str) -> None:
    homeless = replace(account, prefix=(*account.prefix, "env", "-u", "HOME"))
    run = homeless.run("/bin/sh", "-c", "pwd; touch $HOME/x", cwd=Path(cwd))
    assert (run.returncode, run.stdout) == (0, f"{cwd}\n"), run.stderr


def test_nothing_of_the_working_folder_is_imported_outside_the_lab(
    caller: Account, folder: Path
) -> None:
    for name in ("conformance", "trustme", "sitecustomize"):
        text = f"open({str(folder / 'imported')!r}, 'a').write('{name} ')"
        (folder / f"{name}.py").write_text(text, encoding="ascii")
    *before, python, option, script, options = caller.caller(["true"], cwd=folder)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), ".", ""))}
    start = f"import os, sys; os.chdir({str(folder)!r}); {script}"
    run = subprocess.run(
        [*before, python, "-P", option, start, options],
        env=environ, cwd="/", capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert not (folder / "imported").exists()


@_needs_root
def test_a_folder_that_cannot_be_written_to_inside_is_refused(
    ordinary: Account, folder: Path
) -> None:
    os.chown(folder, _NOBODY, 0)
    run = ordinary.run("true", cwd=folder)
    assert run.returncode == 99
    (line,) = run.stderr.splitlines()
    assert line.startswith(f"UNAVAILABLE the working folder {folder} is of user 65534, group 0")
    assert line.endswith("or use --lab=loopback")
    os.chown(folder, _NOBODY, _NOBODY)
    (folder / "precious").write_text("whole", encoding="ascii")
    os.chown(folder / "precious", _NOBODY, _NOBODY)
    run = ordinary.run("/bin/sh", "-c", "echo gone > precious; cat precious", cwd=folder)
    assert run.stdout == "gone\n", run.stderr
    assert (folder / "precious").read_text(encoding="ascii") == "whole"


@pytest.mark.parametrize("mode", ["sealed", "loopback"])
def test_a_caller_that_ignores_its_children_still_learns_the_end(
    caller: Account, mode: str
) -> None:
    ignore = "import os, signal as s, sys; s.signal(s.SIGCHLD, s.SIG_IGN)"
    prefix = (caller.python, "-c", f"{ignore}; os.execv(sys.argv[1], sys.argv[1:])")
    run = replace(caller, prefix=prefix).run("/bin/sh", "-c", "exit 7", mode=mode)
    assert run.returncode == 7, run.stderr


def test_a_command_that_kills_everything_ends_alone(caller: Account) -> None:
    run = caller.run("/bin/sh", "-c", "/bin/sh -c 'kill -KILL -1'; exit 5")
    assert run.returncode == 128 + signal.SIGKILL, run.stderr
    assert "the run was ended by signal 9 and has no result" in run.stderr


def test_a_loopback_launcher_that_is_killed_leaves_nothing(caller: Account, folder: Path) -> None:
    mark = f"lab-launcher-{secrets.token_hex(6)}"
    script = "setsid sleep 600 & echo $PPID; sleep 600"
    process = subprocess.Popen(
        caller.caller(["/bin/sh", "-c", script], mode="loopback"),
        env={**os.environ, "TMPDIR": str(folder), "LAB_TEST": mark},
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    os.kill(int(process.stdout.readline()), signal.SIGKILL)
    assert process.wait(_SECONDS) == 128 + signal.SIGKILL
    process.stdout.close()
    deadline = time.monotonic() + _SECONDS
    while os.listdir(folder) or _marked(mark):
        assert time.monotonic() < deadline, (os.listdir(folder), _marked(mark))
        time.sleep(0.02)


def _marked(mark: str) -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (place / "environ").read_bytes():
                found.append((place / "cmdline").read_text(encoding="utf-8"))
        except OSError:
            continue
    return found


@_needs_root
def test_what_is_mounted_below_a_folder_is_seen_and_protected(
    account: Account, folder: Path
) -> None:
    # In a mount namespace of the test's own; the marks are made there, and looked for there.
    arrange = (
        'd=$1; shift; mount -t tmpfs -o mode=777 lab-test "$d" && mkdir "$d/plain" "$d/in" && '
        'mount -t tmpfs -o mode=777 lab-test "$d/in" && echo real > "$d/in/precious" && '
        'chmod 777 "$d/plain" && chmod 666 "$d/in/precious" && "$@"; find "$d" -name canary; '
        'echo end; cat "$d/in/precious"'
    )
    prefix = ("unshare", "--mount", "sh", "-c", arrange, "sh", str(folder), *account.prefix)
    script = 'cat "$0/in/precious"; for d in plain in; do touch "$0/$d/canary" && echo wrote; done'
    run = replace(account, prefix=prefix).run("/bin/sh", "-c", script, str(folder))
    assert run.stdout == "real\nwrote\nwrote\nend\nreal\n", run.stderr
