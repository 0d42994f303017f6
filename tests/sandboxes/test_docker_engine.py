"""What needs an engine: containers, their commands and files, and that nothing is left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from sandboxes import OpenRequest, RunningSandbox, SandboxClosed, SandboxError, SandboxStartError
from sandboxes.contract import Network
from sandboxes.docker_commands import Command
from sandboxes.docker_owner import SESSION_LABEL
from sandboxes.docker_running import DockerRunning
from sandboxes.docker_sandbox import LocalDockerSandbox
from tests.sandboxes import docker_help

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from pathlib import Path

    import docker

    from sandboxes.docker_container import Container

REQUEST = OpenRequest(session_id="s")


class _Running(DockerRunning):
    """Whose processes have less time to end."""

    def _command(self, arguments: Sequence[str], limit: float) -> Command:
        return Command(self._container, arguments, limit, grace_seconds=0.3)


class _Quick(LocalDockerSandbox):
    def __init__(self, image: str, **options: Any) -> None:
        super().__init__(**{"image": image, "shell": "sh", **options})

    def _running(self, container: Container) -> DockerRunning:
        return _Running(container, self.shell, self.default_exec_timeout_seconds)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """An engine, and no way out of it."""
    with contextlib.ExitStack() as stack:
        try:
            yield stack.enter_context(docker_help.engine())
        except docker_help.NoEngine as reason:
            pytest.skip(str(reason))


@pytest.fixture(scope="module")
def witness(address: str) -> Iterator[docker.DockerClient]:
    with docker_help.client(address) as client:
        yield client


@pytest.fixture(scope="module")
def image(witness: docker.DockerClient) -> str:
    try:
        return docker_help.make_image(witness, "plain")
    except docker_help.NoEngine as reason:
        pytest.skip(str(reason))


@pytest.fixture(autouse=True)
def engine(
    address: str, witness: docker.DockerClient, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The engine that the environment names; after each test nothing of ours is left in it."""
    monkeypatch.setenv("DOCKER_HOST", address)
    yield
    assert listed(witness) == []


def listed(witness: docker.DockerClient) -> list[str]:
    ours: dict[str, str | list[str] | bool] = {"label": SESSION_LABEL}
    containers = witness.containers.list(all=True, filters=ours)
    volumes = witness.volumes.list(filters={"label": SESSION_LABEL})
    return sorted(
        [
            *(f"container {one.name}" for one in containers),
            *(f"volume {one.name}" for one in volumes),
        ]
    )


def inside(image: str, use: Callable[[RunningSandbox], Awaitable[None]], **options: Any) -> None:
    """Open a sandbox, use it, and close it."""

    async def run() -> None:
        async with asyncio.timeout(60), _Quick(image, **options).open(REQUEST) as running:
            await use(running)

    asyncio.run(run())


async def said(box: RunningSandbox, command: str, **options: Any) -> str:
    """What a command wrote that succeeded."""
    result = await box.execute(command, **options)
    assert (result.exit_code, result.stderr) == (0, ""), result
    return result.stdout


def test_a_session_is_a_container_and_a_volume_that_say_whose_they_are(
    image: str, witness: docker.DockerClient
) -> None:
    async def use(box: RunningSandbox) -> None:
        assert listed(witness) == sorted(await box.inventory())
        (container,) = witness.containers.list(filters={"label": f"{SESSION_LABEL}=s"})
        assert container.labels["sandbox-conformance.owner.process"] == str(os.getpid())
        host = container.attrs["HostConfig"]
        assert (host["NetworkMode"], host["Init"], host["Privileged"]) == ("none", True, False)
        mounts = [(mount["Type"], mount["Destination"]) for mount in container.attrs["Mounts"]]
        assert mounts == [("volume", "/workspace")]
        assert await said(box, "pwd; ls -A") == "/workspace\n"

    inside(image, use)


def test_under_none_there_is_loopback_alone_and_nobody_to_ask_for_names(image: str) -> None:
    script = "ls /sys/class/net > devices; cat /etc/resolv.conf > names"

    async def use(box: RunningSandbox) -> None:
        assert await box.read_file("devices") == b"lo\n"
        assert b"nameserver 127.0.0.1\n" in await box.read_file("names")
        assert await said(box, "ls /sys/class/net") == "lo\n"

    inside(image, use, setup_script=script)


def test_under_all_there_is_the_engines_default_network(image: str) -> None:
    async def use(box: RunningSandbox) -> None:
        assert (await said(box, "ls /sys/class/net")).split() == ["eth0", "lo"]

    inside(image, use, network=Network.all())


# Nothing of these shows whose they are: no parent, session, group or environment is left.
ESCAPES = """
(setsid sh -c 'env -i setsid sleep 71 >/dev/null 2>&1 &')
env -i setsid sh -c "trap '' TERM; sleep 72 & sleep 73" &
setsid sleep 74 &
"""
ALIVE = (
    "for one in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $one; echo; done | grep -c '^sleep 7' || :"
)


def test_at_its_limit_all_that_came_of_a_command_ends_and_nothing_else(image: str) -> None:
    async def use(box: RunningSandbox) -> None:
        await said(box, "setsid sleep 75 >/dev/null 2>&1 & sleep 76 >/dev/null 2>&1 &")
        beside = asyncio.create_task(box.execute("sleep 3; echo untouched"))
        result = await box.execute(f"{ESCAPES} echo before; sleep 77", timeout_seconds=1)
        assert (result.exit_code, result.stdout) == (124, "before\n")
        assert result.stderr == "sandbox: the command was ended at its limit of 1 s\n"
        assert (await beside).stdout == "untouched\n"
        assert await said(box, ALIVE) == "2\n"

    inside(image, use)


def test_a_cancelled_command_ends_with_all_that_came_of_it(image: str) -> None:
    async def use(box: RunningSandbox) -> None:
        task = asyncio.create_task(box.execute(f"{ESCAPES} echo > begun; sleep 77"))
        await said(box, "until test -e begun; do sleep 0.05; done", timeout_seconds=20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await said(box, ALIVE) == "0\n"
        for turns in range(6):  # wherever it is on its way
            task = asyncio.create_task(box.execute("sleep 78"))
            await asyncio.sleep(turns * 0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await said(box, ALIVE) == "0\n"

    inside(image, use)


# The parents of a command are three shells and an init.
KILL_THE_INIT = """
p=$PPID
for _ in 1 2 3; do read -r line < /proc/$p/stat; set -- ${line##*)}; p=$2; done
kill -9 $p
"""


def test_a_command_that_kills_its_supervisor_ends_and_the_session_goes_on(image: str) -> None:
    async def use(box: RunningSandbox) -> None:
        result = await box.execute("kill -9 $PPID; echo more; sleep 79", timeout_seconds=2)
        assert (result.exit_code, result.stdout) == (124, "more\n")
        for killing in ("kill -9 $PPID", f"sleep 79 & {KILL_THE_INIT} sleep 79"):
            result = await box.execute(killing)
            assert result.exit_code == 137
            assert "supervisor was killed" in result.stderr
        assert await said(box, ALIVE) == "0\n"

    inside(image, use)


def test_output_of_a_list_of_all_processes_ends_no_command(image: str) -> None:
    async def use(box: RunningSandbox) -> None:
        shown = await said(
            box, "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null; echo end"
        )
        assert shown.endswith("end\n")

    inside(image, use)


def test_a_flood_in_the_background_keeps_no_later_command_from_its_output(image: str) -> None:
    async def use(box: RunningSandbox) -> None:
        await box.execute("(while :; do echo flood; done) & echo begun")
        for _ in range(3):
            assert await said(box, "echo later") == "later\n"

    inside(image, use)


def execs(witness: docker.DockerClient) -> int:
    """How many programs the engine runs beside the main one of the only container of ours."""
    (container,) = witness.containers.list(filters={"label": SESSION_LABEL})
    return len(container.attrs["ExecIDs"] or ())


def test_one_exec_serves_what_comes_in_turn_and_none_waits_for_what_was_left(
    image: str, witness: docker.DockerClient
) -> None:
    async def use(box: RunningSandbox) -> None:
        await box.write_file("x", b"1")
        assert await said(box, "echo 2 >> x; cat x") == "12\n"
        assert await box.read_file("x") == b"12\n"
        with pytest.raises(FileNotFoundError):
            await box.read_file("y")
        # What a shell starts in the background ignores this signal.
        assert (await box.execute("sh -c 'kill -s INT $$; exit 42'")).exit_code == 130
        assert execs(witness) == 0  # the first shell comes with the container
        texts = await asyncio.gather(*(said(box, f"sleep 0.3; echo {n}") for n in range(6)))
        assert texts == [f"{n}\n" for n in range(6)]
        assert await said(box, "(sleep 1; echo late; echo late >&2) & echo begun") == "begun\n"
        assert await said(box, "sleep 1.5; echo later") == "later\n"

    inside(image, use)


def test_shells_that_are_stopped_or_killed_keep_no_later_command(image: str) -> None:
    async def use(box: RunningSandbox) -> None:
        for signal in ("STOP", "KILL"):
            await asyncio.gather(*(said(box, "sleep 0.3") for _ in range(3)))
            others = (  # all but what has this word, as the container's main process does
                "for p in /proc/[0-9]*; do case $(tr '\\0' ' ' <$p/cmdline) in "
                "*infinity*) ;; *) test $p = /proc/1 || echo ${p##*/} ;; esac; done"
            )
            await box.execute(f"kill -s {signal} $({others})", timeout_seconds=1)
            assert await said(box, "echo once >> ran; cat ran") == "once\n"
            await box.execute("rm ran")

    inside(image, use)


def test_what_is_longer_than_a_system_takes_arrives(image: str) -> None:
    async def use(box: RunningSandbox) -> None:
        text = "é" * 120_000
        assert await said(box, f"printf %s {text}") == text
        data = os.urandom(3_000_001)
        await box.write_file("a folder/a file", data)
        assert await box.read_file("a folder/a file") == data
        with pytest.raises(ValueError, match="write it to a file"):
            await box.execute("x" * 2_000_000)

    inside(image, use)


def test_errors_of_files_are_those_of_python(image: str) -> None:
    async def use(box: RunningSandbox) -> None:
        await said(
            box,
            "mkdir folder; echo x > file; mkfifo fifo; ln -s /etc/passwd link; ln -s new dangling",
        )
        for path, error in (
            ("missing", FileNotFoundError),
            ("folder", IsADirectoryError),
            ("file/below", FileNotFoundError),
            ("fifo", PermissionError),
            ("/dev/zero", PermissionError),
            ("a\0b", PermissionError),
        ):
            with pytest.raises(error):
                await box.read_file(path)
        for path, error in (
            ("folder", IsADirectoryError),
            ("new/", IsADirectoryError),
            ("file/below", FileNotFoundError),
            ("fifo", PermissionError),
            ("/sys/new", PermissionError),
        ):
            with pytest.raises(error):
                await box.write_file(path, b"x" * 1_000_000)
        await said(box, "chmod 640 file")
        await box.write_file("file", b"y")
        await box.write_file("dangling", b"through")
        assert (
            await said(box, "stat -c %a file; cat new; test -L dangling; ls -A | wc -l")
            == "640\nthrough6\n"
        )

    inside(image, use)


def test_commands_run_as_the_images_user_whose_the_workspace_is(
    image: str, witness: docker.DockerClient
) -> None:
    del image
    name = docker_help.make_image(witness, "user", changes=["USER worker"])

    async def use(box: RunningSandbox) -> None:
        assert (
            await said(box, "id -un; stat -c %U .; echo x > own; stat -c %U own") == "worker\n" * 3
        )
        await box.write_file("other", b"x")
        assert await said(box, "stat -c %U other") == "worker\n"
        with pytest.raises(PermissionError):
            await box.read_file("/root/x")
        with pytest.raises(PermissionError):
            await box.write_file("/etc/x", b"x")
        result = await box.execute("kill -9 -1; echo left")
        assert result.exit_code == 137
        assert await said(box, "echo usable") == "usable\n"

    inside(name, use)


NAMES = (
    *("token", "line", "code", "nl", "command", "read", "write", "user", "workspace", "shell"),
    *("names", "certificates", "program", "own", "name", "path", "said"),
)


def test_no_variable_of_the_images_is_taken_for_one_of_ours(
    image: str, witness: docker.DockerClient
) -> None:
    del image
    changes = [f"ENV {name}=image" for name in NAMES]
    name = docker_help.make_image(witness, "variables", changes=changes)

    async def use(box: RunningSandbox) -> None:
        for _ in range(3):  # the first shell, and those that come later
            shown = await said(box, " ".join(["echo", *(f"${one}" for one in NAMES)]))
            assert shown.split() == ["image"] * len(NAMES)
            forged = await box.execute('printf "%s 0\\n" "$token"; exit 7')
            assert (forged.exit_code, forged.stdout) == (7, "image 0\n")
            await box.execute("kill -9 $PPID")

    inside(name, use)


ENDING = ("HUP", "INT", "TERM")


def test_a_command_that_ends_its_like_ends_no_session(image: str) -> None:
    async def use(box: RunningSandbox) -> None:
        found = await said(box, "grep -l ^sleep /proc/[0-9]*/cmdline")
        ended = [
            f"kill -s {name} {one.split('/')[2]}; sleep 0.2"
            for name in ENDING
            for one in found.split()
        ]
        await box.execute("; ".join(ended))
        assert found
        assert await said(box, "echo usable") == "usable\n"

    inside(image, use)


def test_certificates_are_trusted_beside_those_of_the_image(image: str, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("further\n")
    request = OpenRequest(session_id="s", ca_bundle=bundle)

    async def run() -> None:
        async with _Quick(image).open(request) as box:
            shown = await said(box, 'cat "$SSL_CERT_FILE" "$GIT_SSL_CAINFO" "$CURL_CA_BUNDLE"')
            assert shown.splitlines().count("further") == 3

    asyncio.run(run())
    inside(image, lambda box: _has_no("SSL_CERT_FILE", box))
    missing = OpenRequest(session_id="s", ca_bundle=tmp_path / "missing.pem")
    with pytest.raises(SandboxStartError, match=r"missing\.pem"):
        asyncio.run(_open(_Quick(image), missing))


async def _has_no(variable: str, box: RunningSandbox) -> None:
    assert await said(box, f'echo "${{{variable}-unset}}"') == "unset\n"


async def _open(box: LocalDockerSandbox, request: OpenRequest = REQUEST) -> None:
    async with box.open(request):
        pass


# --- what cannot be


@pytest.mark.parametrize(
    ("without", "shell", "fact"),
    [
        (("setsid",), "sh", "no setsid command"),
        ((), "bash", "no bash"),
        (("sh",), "sh", "sh"),
        (("sleep",), "sh", "sleep"),
    ],
)
def test_an_image_that_lacks_something_is_told_by_its_name(
    image: str, witness: docker.DockerClient, without: tuple[str, ...], shell: Any, fact: str
) -> None:
    del image
    name = docker_help.make_image(witness, f"no-{'-'.join(without) or shell}", without=without)
    with pytest.raises(SandboxStartError, match=f"(?s)^_Quick: .*{fact}"):
        asyncio.run(_open(_Quick(name, shell=shell)))


def test_an_image_that_is_not_there_is_told_by_its_name() -> None:
    with pytest.raises(
        SandboxStartError, match=r"image nowhere\.test/image:1 .*could not be pulled"
    ):
        asyncio.run(_open(LocalDockerSandbox(image="nowhere.test/image:1")))


def test_a_container_that_ends_is_told_and_nothing_hangs(image: str) -> None:
    async def use(box: RunningSandbox) -> None:
        beside = asyncio.create_task(box.execute("sleep 60"))
        await asyncio.sleep(0.5)
        with pytest.raises(SandboxError, match=r"ended with exit code 137.*start another session"):
            await box.execute("kill -9 -1; sleep 5")
        with pytest.raises(SandboxError, match="137"):
            await beside
        for call in (box.execute("true"), box.read_file("x"), box.write_file("x", b"x")):
            with pytest.raises(SandboxError, match="137"):
                await call

    inside(image, use)


@contextlib.contextmanager
def cut_off(address: str, path: Path) -> Iterator[Callable[[], None]]:
    """Stand between a client and the engine, until told to end every connection."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()
    ends: list[socket.socket] = [listening]

    def relay(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                one, _ = listening.accept()
                other = socket.socket(socket.AF_UNIX)
                other.connect(address.removeprefix("unix://"))
                ends.extend((one, other))
                for pair in ((one, other), (other, one)):
                    threading.Thread(target=relay, args=pair, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()

    def cut() -> None:
        path.unlink(missing_ok=True)
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    try:
        yield cut
    finally:
        cut()
        for end in ends:
            end.close()


def test_an_engine_that_goes_away_is_told_with_what_it_keeps(
    image: str,
    address: str,
    witness: docker.DockerClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def use(cut: Callable[[], None]) -> None:
        async with _Quick(image).open(REQUEST) as box:
            command = asyncio.create_task(box.execute("sleep 60"))
            await asyncio.sleep(0.5)
            cut()
            for call in (command, box.execute("true"), box.read_file("x")):
                with pytest.raises(SandboxError):
                    await call

    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/socket")
    said_so = r"could not be removed .*docker rm -f -v sandbox-"
    with (
        cut_off(address, tmp_path / "socket") as cut,
        pytest.raises(SandboxError, match=said_so) as raised,
    ):
        asyncio.run(use(cut))
    left = listed(witness)
    assert len(left) == 2
    assert all(one.split()[1] in str(raised.value) for one in left)
    for container in witness.containers.list(all=True, filters={"label": SESSION_LABEL}):
        container.remove(force=True)
    for volume in witness.volumes.list(filters={"label": SESSION_LABEL}):
        volume.remove()


# --- nothing is left


def test_a_setup_script_that_fails_leaves_nothing(image: str, witness: docker.DockerClient) -> None:
    box = _Quick(image, setup_script="echo why >&2; exit 3")
    with pytest.raises(SandboxStartError, match=r"exit code 3.*why"):
        asyncio.run(_open(box))
    assert listed(witness) == []


def test_a_session_that_is_cancelled_anywhere_leaves_nothing(
    image: str, witness: docker.DockerClient
) -> None:
    async def life() -> None:
        async with _Quick(image).open(REQUEST) as box:
            await box.execute("sleep 0.2")
            await box.write_file("x", b"x")

    async def run() -> None:
        for share in range(12):
            task = asyncio.create_task(life())
            await asyncio.sleep(share * 0.08)
            task.cancel()
            await asyncio.wait({task}, timeout=30)
            assert task.done()
            assert listed(witness) == []

    asyncio.run(run())


def test_a_close_ends_what_runs_and_later_calls_are_refused(image: str) -> None:
    async def run() -> None:
        async with _Quick(image).open(REQUEST) as box:
            command = asyncio.create_task(box.execute("sleep 60"))
            await asyncio.sleep(0.3)
        for call in (command, box.execute("true"), box.read_file("x"), box.write_file("x", b"")):
            with pytest.raises(SandboxClosed):
                await call
        assert await box.inventory() == ()

    asyncio.run(run())


_SESSION = """
import asyncio, sys
from sandboxes import LocalDockerSandbox, OpenRequest

async def run():
    box = LocalDockerSandbox(image=sys.argv[1], shell="sh")
    async with box.open(OpenRequest(session_id="dead")):
        print("open", flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(run())
"""


def test_what_a_killed_process_left_goes_and_what_a_living_one_has_stays(
    image: str, witness: docker.DockerClient
) -> None:
    elsewhere = {SESSION_LABEL: "elsewhere", "sandbox-conformance.owner.machine": "another 1"}
    elsewhere |= {"sandbox-conformance.owner.process": "1", "sandbox-conformance.owner.began": "1"}
    strange = witness.volumes.create("strange", labels=elsewhere)
    killed = _process(image)
    killed.kill()
    killed.communicate()
    assert len(listed(witness)) == 3
    living = _process(image)  # its start removes what the killed one left
    try:
        assert len(listed(witness)) == 3
        inside(image, lambda box: _has_no("X", box))
        assert len(listed(witness)) == 3
    finally:
        living.communicate(timeout=30)  # its standard input ends, and so does it
        strange.remove()


def _process(image: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _SESSION, image],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process
