"""What commands inside see, and what is left of them; needs bwrap, and no network."""

from __future__ import annotations

import asyncio
import inspect
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sandboxes import OpenRequest, SandboxStartError
from sandboxes.bubblewrap_sandbox import BubblewrapSandbox
from sandboxes.contract import HeaderBinding, MissingExtra, Network, RefusedConfiguration
from sandboxes.timeouts import Commands
from tests.sandboxes.used import REQUEST, used

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sandboxes import RunningSandbox

PATIENCE = 20.0
LIST = Network.allow(hosts=("api.test",))
BINDING = HeaderBinding(host="api.test", header="X-Key", secret_name="key")


class Quick(BubblewrapSandbox):
    """Whose processes have less time to end."""

    @staticmethod
    def commands_type(**options: Any) -> Commands:  # type: ignore[override] # called like the class
        return Commands(grace_seconds=0.3, **options)


def works() -> bool:
    namespaces = ["--unshare-all", "--unshare-user", "--disable-userns"]
    command = ["bwrap", *namespaces, "--ro-bind", "/", "/", "true"]
    found = shutil.which("bwrap") is not None
    return found and subprocess.run(command, check=False, capture_output=True).returncode == 0


needs_bwrap = pytest.mark.skipif(not works(), reason="bwrap 0.8 and user namespaces are needed")


def inside(use: Callable[[RunningSandbox], Awaitable[None]], **options: Any) -> None:
    """Open a Bubblewrap sandbox, and use it; see `used`."""
    used(lambda: Quick(**options), use)


def says(command: str, **options: Any) -> str:
    """What a command inside writes, with its exit code behind it."""
    said: list[str] = []

    async def use(box: RunningSandbox) -> None:
        done = await box.execute(command)
        said.append(f"{done.stdout}{done.stderr}[{done.exit_code}]")

    inside(use, **options)
    return said[0]


def test_it_declares_what_it_is() -> None:
    box = BubblewrapSandbox()
    assert (box.network, box.access) == (Network.none(), "full")
    assert box.supported_network == {"none", "allow"}
    assert box.supported_header_bindings == {HeaderBinding}
    assert (box.has_processes, box.isolated, box.blocks_private_addresses) == (True, True, True)
    assert box.default_exec_timeout_seconds == 600
    parameters = inspect.signature(BubblewrapSandbox.__init__).parameters.values()
    assert {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY} == {
        **dict.fromkeys(("default_exec_timeout_seconds", "network", "access")),
        "header_bindings": (),
        "hooks": (),
    }


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"network": Network.all()}, "Network.all"),
        ({"header_bindings": (BINDING,)}, "api.test"),
        ({"default_exec_timeout_seconds": 0}, "default_exec_timeout_seconds"),
        ({"default_exec_timeout_seconds": float("nan")}, "default_exec_timeout_seconds"),
    ],
)
def test_what_it_cannot_enforce_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(RefusedConfiguration, match=f"BubblewrapSandbox.*{told}"):
        BubblewrapSandbox(**options)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h11", None)

    with pytest.raises(MissingExtra, match=r"needs the package h11.*\[bubblewrap\]"):
        BubblewrapSandbox()


def refusal(request: OpenRequest = REQUEST, **options: Any) -> str:
    """What a sandbox says that does not open."""

    async def run() -> None:
        async with BubblewrapSandbox(**options).open(request):
            raise AssertionError("it opened")

    with pytest.raises(SandboxStartError) as caught:
        asyncio.run(run())
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def test_a_missing_bwrap_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "there is no bwrap on PATH; install bubblewrap" in refusal()


@pytest.mark.parametrize(
    ("complaint", "remedy"),
    [
        ("bwrap: No permissions to create new namespace", "let your user make user namespaces"),
        ("bwrap: setting up uid map: Permission denied", "let your user make user namespaces"),
        ("bwrap: Unknown option --disable-userns", "install bubblewrap 0.8 or newer"),
        ("", "install bubblewrap 0.8 or newer"),
    ],
)
def test_a_bwrap_that_fails_is_quoted_and_leaves_nothing(
    complaint: str, remedy: str, temp: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bwrap = tmp_path / "bwrap"
    bwrap.write_text(f"#!/bin/sh\necho '{complaint}' >&2\nexit 1\n")
    bwrap.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    told = refusal()

    assert complaint in told
    assert remedy in told
    assert list(temp.iterdir()) == []


def test_a_missing_secret_is_named_before_anything_is_made(temp: Path) -> None:
    told = refusal(network=LIST, header_bindings=(BINDING,))

    assert "'key'" in told
    assert list(temp.iterdir()) == []


@pytest.mark.parametrize("network", [Network.none(), LIST])
def test_a_bundle_that_cannot_be_read_is_named(network: Network, temp: Path) -> None:
    request = OpenRequest(session_id="s", ca_bundle=temp / "none.pem")

    assert "ca_bundle" in refusal(request, network=network)
    assert list(temp.iterdir()) == []


@needs_bwrap
def test_nothing_of_this_process_or_its_user_is_inside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("A_SECRET", "hunter2")
    (tmp_path / "canary").write_text("hunter2")

    said = says(
        f"env; cat {tmp_path}/canary /etc/shadow; ls -A ~ /root /home; hostname; ls -d /proc/[0-9]*"
    )

    assert "hunter2" not in said
    assert said.count("No such file or directory") == 3
    assert "\nsandbox\n/proc/1\n" in said
    # The server, a supervisor, the shell and ls.
    assert said.count("/proc/") <= 4


@needs_bwrap
def test_only_the_workspace_the_home_and_tmp_are_written_to() -> None:
    said = says("for place in /workspace ~ /tmp / /usr /etc /run; do touch $place/x; done 2>&1")

    assert said.count("Read-only file system") == 4
    assert [place for place in ("/workspace/x", "/home/sandbox/x", "/tmp/x") if place in said] == []


@needs_bwrap
def test_commands_have_no_privilege_and_may_gain_none() -> None:
    said = says("grep -E '^(Cap(Prm|Eff|Bnd)|NoNewPrivs|Seccomp):' /proc/self/status; id -u")

    assert said.split() == [
        *("CapPrm:", "0" * 16, "CapEff:", "0" * 16, "CapBnd:", "0" * 16),
        *("NoNewPrivs:", "1", "Seccomp:", "2", "1000", "[0]"),
    ]


@needs_bwrap
def test_what_no_namespace_holds_back_is_refused() -> None:
    said = says(
        "python3 -I -c 'if 1:\n"
        " import ctypes, os, socket\n"
        " socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()\n"
        " libc = ctypes.CDLL(None, use_errno=True)\n"
        ' key = {"x86_64": 250, "aarch64": 219}[os.uname().machine]\n'
        " for call in ((key, 0, -3, 0), (425, 1, 0)):\n"
        "  print(libc.syscall(*call), os.strerror(ctypes.get_errno()))\n"
        " try: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)\n"
        " except OSError as error: print(error.strerror)'"
    )

    assert said.splitlines() == [
        *["-1 Function not implemented"] * 2,
        "Address family not supported by protocol",
        "[0]",
    ]


@needs_bwrap
def test_the_supervisors_show_commands_nothing_but_that_they_are_there() -> None:
    said = says("cat /proc/1/environ; ls -l /proc/1/fd/0; cat /proc/$$/environ | tr '\\0' '\\n'")

    assert said.count("Permission denied") == 2
    assert "HOME=/home/sandbox" in said


@needs_bwrap
def test_a_command_that_kills_and_stops_everything_ends_alone() -> None:
    async def use(box: RunningSandbox) -> None:
        await box.write_file("kept", b"kept")
        killed = await box.execute("kill -STOP 1; kill -9 1; kill -9 -1; sleep 60")
        assert killed.exit_code == 137
        stopped = await box.execute("sleep 60 & kill -STOP $PPID; sleep 60", timeout_seconds=1)
        assert stopped.exit_code == 124
        assert (await box.execute("cat kept")).stdout == "kept"
        assert await box.read_file("kept") == b"kept"

    inside(use)


@needs_bwrap
def test_a_limit_ends_what_escaped_its_parent_and_leaves_the_background_alone() -> None:
    async def use(box: RunningSandbox) -> None:
        await box.execute("(trap '' TERM; while :; do echo x >> other; sleep 0.1; done) & true")
        late = await box.execute(
            "setsid sh -c '(trap \"\" TERM; while :; do echo x >> mine; sleep 0.1; done) &';"
            "sleep 60",
            timeout_seconds=1,
        )
        assert late.exit_code == 124
        mine, other = await box.read_file("mine"), await box.read_file("other")
        assert mine
        deadline = time.monotonic() + PATIENCE
        while await box.read_file("other") == other:
            assert time.monotonic() < deadline
        assert await box.read_file("mine") == mine

    inside(use)


@needs_bwrap
def test_nothing_outlives_the_session_and_its_folder_goes(temp: Path) -> None:
    seen: list[str] = []

    async def use(box: RunningSandbox) -> None:
        await box.execute("setsid sh -c 'trap \"\" TERM; sleep 600 & sleep 600' & mkdir -m 0 a")
        seen.extend(await box.inventory())

    inside(use)

    assert [line.partition(" ")[0] for line in seen] == ["folder", "process"]
    assert list(temp.iterdir()) == []
    assert not Path(f"/proc/{seen[1].split()[1]}").exists()


@needs_bwrap
def test_files_are_those_of_the_inside_whatever_links_say(tmp_path: Path) -> None:
    outside = tmp_path / "canary"
    outside.write_text("whole")

    async def use(box: RunningSandbox) -> None:
        await box.execute(f"ln -s {outside} out; ln -s /etc/passwd users; ln -s /proc/1/root root")
        with pytest.raises(FileNotFoundError):
            await box.read_file("out")
        with pytest.raises(PermissionError):
            await box.read_file("root/etc/passwd")
        await box.write_file(str(outside), b"another")
        with pytest.raises(OSError, match="Read-only"):
            await box.write_file("users", b"broken")
        assert b"sandbox:x:1000" in await box.read_file("users")
        await box.write_file("/tmp/new/file", b"\0\xff")
        assert (await box.execute("od -An -tx1 /tmp/new/file")).stdout.split() == ["00", "ff"]

    inside(use)

    assert outside.read_text() == "whole"


@needs_bwrap
def test_sessions_side_by_side_share_nothing(temp: Path) -> None:
    async def use(one: RunningSandbox) -> None:
        async with Quick().open(REQUEST) as other:
            await one.execute("echo x > /tmp/a; echo x > a; echo x > ~/a; sleep 600 & true")
            seen = await other.execute("ls /tmp . ~; pgrep sleep")
            assert "a\n" not in seen.stdout
            assert seen.exit_code == 1

    inside(use)
