"""What needs no engine: building one, and engines that are not there or behave badly."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import pytest

import sandboxes as agents
from conformance.lab.census import Census
from sandboxes import OpenRequest, SandboxStartError, docker_container, docker_engine
from sandboxes.contract import HeaderBinding, MissingExtra, Network, RefusedConfiguration
from sandboxes.docker_sandbox import LocalDockerSandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

REQUEST = OpenRequest(session_id="s")
PATIENCE = 20.0


def test_it_declares_what_it_is() -> None:
    box = agents.LocalDockerSandbox()
    assert (box.network, box.access, box.shell) == (Network.none(), "full", "bash")
    assert box.image == "python:3.12-bookworm"
    assert box.supported_network == {"none", "all"}
    assert (box.has_processes, box.isolated, box.blocks_private_addresses) == (True, True, False)
    assert box.default_exec_timeout_seconds == 600
    parameters = inspect.signature(LocalDockerSandbox.__init__).parameters.values()
    assert {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY} == {
        **dict.fromkeys(("image", "supports_background_processes", "shell", "setup_script")),
        **dict.fromkeys(("default_exec_timeout_seconds", "setup_script_timeout_seconds")),
        **dict.fromkeys(("network", "access")),
        "hooks": (),
    }


@pytest.mark.parametrize(
    ("options", "has_them"),
    [
        ({}, True),
        ({"image": "busybox"}, False),
        ({"image": "busybox", "supports_background_processes": True}, True),
        ({"supports_background_processes": False}, False),
    ],
)
def test_a_custom_image_has_background_processes_only_if_it_is_said(
    options: dict[str, Any], has_them: bool
) -> None:
    assert LocalDockerSandbox(**options).supports_background_processes is has_them


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("network", Network.allow(hosts=("example.test",))),
        ("image", ""),
        ("image", "--privileged"),
        ("image", "an image"),
        ("image", 3),
        ("supports_background_processes", "yes"),
        ("shell", "zsh"),
        ("setup_script", " "),
        ("setup_script", "a\0b"),
        ("setup_script_timeout_seconds", 0),
        ("default_exec_timeout_seconds", -1),
        ("default_exec_timeout_seconds", True),
    ],
)
def test_what_it_cannot_enforce_or_use_is_refused_by_name(option: str, value: Any) -> None:
    with pytest.raises(RefusedConfiguration, match=f"^LocalDockerSandbox.*{option}"):
        LocalDockerSandbox(**{option: value})


def test_there_is_no_place_for_header_bindings() -> None:
    binding = HeaderBinding(host="example.test", header="X-Key", secret_name="key")
    with pytest.raises(TypeError, match="header_bindings"):
        LocalDockerSandbox(network=Network.all(), header_bindings=(binding,))  # type: ignore[call-arg]


def test_without_the_package_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docker", None)
    with pytest.raises(MissingExtra, match=r"sandbox-conformance\[docker\]"):
        LocalDockerSandbox()


def test_naming_it_imports_no_client() -> None:
    program = (
        "import sys, sandboxes; sandboxes.LocalDockerSandbox; sys.exit('docker' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# --- engines that are none


def opened() -> None:
    """Open and close a sandbox, and see that this process is as it was before."""
    before = Census.take(folders=())

    async def run() -> None:
        async with asyncio.timeout(30), LocalDockerSandbox().open(REQUEST):
            pass

    try:
        asyncio.run(run())
    finally:
        deadline = time.monotonic() + PATIENCE
        while left := Census.take(folders=()).left_since(before, ("file", "thread")):
            assert time.monotonic() < deadline, left
            time.sleep(0.02)


@contextlib.contextmanager
def server(path: Path, answer: Callable[[bytes], bytes | None]) -> Iterator[None]:
    """Answer requests so, or never."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    listening.listen()

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection, contextlib.suppress(OSError):
                    while request := connection.recv(65_536):
                        told = answer(request)
                        if told is not None:
                            connection.sendall(told)
                            break

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
        listening.close()


def http(status: str, body: str) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


@pytest.mark.parametrize(
    ("answer", "fact"),
    [
        (None, "timed out"),
        (b"no HTTP at all\r\n\r\n", "no HTTP"),
        (http("500 Internal Server Error", '{"message": "the disk is full"}'), "the disk is full"),
        (http("403 Forbidden", '{"message": "not for you"}'), "not for you"),
        (http("200 OK", '{"ApiVersion": "1.5"}'), "no longer supported"),
        (http("200 OK", "nonsense"), ""),
    ],
    ids=["hangs", "no HTTP", "broken", "refuses", "ancient", "no JSON"],
)
def test_an_engine_that_behaves_badly_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: bytes | None, fact: str
) -> None:
    monkeypatch.setattr(docker_engine, "CALL_SECONDS", 0.3)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/socket")
    with server(tmp_path / "socket", lambda _: answer), pytest.raises(SandboxStartError) as raised:
        opened()
    text = str(raised.value)
    assert f"unix://{tmp_path}/socket" in text
    assert "set DOCKER_HOST" in text
    assert fact in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("address", "fact"),
    [
        ("unix:///nonexistent/docker.sock", "No such file"),
        ("tcp://127.0.0.1:1", "refused"),
        ("nonsense", "nonsense"),
        ("tcp://user:secret@127.0.0.1:1", "Invalid bind address"),
    ],
)
def test_an_engine_that_is_not_there_is_told_with_its_address(
    monkeypatch: pytest.MonkeyPatch, address: str, fact: str
) -> None:
    monkeypatch.setenv("DOCKER_HOST", address)
    with pytest.raises(SandboxStartError, match=f"(?s)^LocalDockerSandbox: .*{fact}") as raised:
        opened()
    assert "secret" not in str(raised.value)


VERSION = http("200 OK", '{"ApiVersion": "1.41"}')
NO_IMAGE = http("404 Not Found", '{"message": "No such image"}')
EMPTY_LISTS = http("200 OK", "[]")


def test_a_cancelled_caller_waits_for_no_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Event()

    def answer(request: bytes) -> bytes | None:
        line = request.split(b"\r\n")[0]
        if b"/images/create" in line:  # the registry never says anything
            asked.set()
            return None
        if b"/json" in line and b"/images/" in line:
            return NO_IMAGE
        if b"/volumes" in line:
            return http("200 OK", '{"Volumes": null}')
        return EMPTY_LISTS if b"/containers/json" in line else VERSION

    async def run() -> None:
        task = asyncio.create_task(_open())
        await asyncio.to_thread(asked.wait, PATIENCE)
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=PATIENCE)
        assert done == {task}
        assert task.cancelled()

    monkeypatch.setattr(docker_engine, "SILENCE_SECONDS", 2.0)  # else its thread would stay
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/socket")
    with server(tmp_path / "socket", answer):
        asyncio.run(run())
    assert asked.is_set()


class _Made:
    """A container that takes no time."""

    def __init__(self) -> None:
        self.there = threading.Event()

    def made(self, given_up: threading.Event) -> Self:
        del given_up
        self.there.set()
        return self

    def remove(self) -> None:
        self.there.clear()


@pytest.mark.parametrize("turns", range(12))
def test_a_container_that_is_made_in_the_moment_of_a_cancellation_is_removed(
    monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    container = _Made()

    class Sandbox(LocalDockerSandbox):
        def _container(self, engine: Any, plan: Any) -> Any:
            del engine, plan
            return container

    async def run() -> None:
        engine: Any = SimpleNamespace(is_local=True)
        making = asyncio.create_task(Sandbox()._made(engine, REQUEST))
        await asyncio.sleep(0)
        while not container.there.is_set():  # noqa: ASYNC110 - a thread sets it
            await asyncio.sleep(0)
        time.sleep(0.02)  # noqa: ASYNC251 - its thread tells the loop, which does not listen yet
        for _ in range(turns):
            await asyncio.sleep(0)
        making.cancel()
        await asyncio.wait({making}, timeout=PATIENCE)
        assert making.cancelled() != container.there.is_set()

    monkeypatch.setattr(docker_container, "remove_leftovers", lambda _: None)
    asyncio.run(run())


async def _open() -> None:
    async with LocalDockerSandbox().open(REQUEST):
        pass
