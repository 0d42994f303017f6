"""What a sandbox adds to a command: each group holds the bare call and the sandbox's.

Compare within a run (the figures in brackets), never between machines or days.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from sandboxes import BashkitSandbox, DangerousLocalSandbox, LocalDockerSandbox
from sandboxes.bubblewrap_sandbox import BubblewrapSandbox
from sandboxes.contract import OpenRequest, Sandbox
from tests.sandboxes import docker_help

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    import docker

    Timed = Callable[[Callable[[], Awaitable[str]]], None]

COMMAND = "echo done"
ROUNDS = 200
IMAGE = "sandbox-tests/busybox:plain"


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    with asyncio.Runner() as runner:
        yield runner.get_loop()


@pytest.fixture
def timed(benchmark: Any, loop: asyncio.AbstractEventLoop) -> Timed:
    def measure(call: Callable[[], Awaitable[str]]) -> None:
        def once() -> str:
            return loop.run_until_complete(call())

        answer = benchmark.pedantic(once, rounds=ROUNDS, warmup_rounds=10)
        assert answer.strip() == "done"

    return measure


async def bare_process() -> str:
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        COMMAND,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    stdout, _ = await process.communicate()
    return stdout.decode()


async def bare_bashkit() -> str:
    from bashkit import Bash

    return (await Bash().execute(COMMAND)).stdout


@contextlib.contextmanager
def opened(
    sandbox: Sandbox, loop: asyncio.AbstractEventLoop
) -> Iterator[Callable[[], Awaitable[str]]]:
    """Keep a session open, and give what runs the command in it."""
    entered = sandbox.open(OpenRequest(session_id="benchmark"))
    running = loop.run_until_complete(entered.__aenter__())

    async def call() -> str:
        return (await running.execute(COMMAND)).stdout

    try:
        yield call
    finally:
        loop.run_until_complete(entered.__aexit__(None, None, None))


@pytest.mark.benchmark(group="local")
def test_the_same_shell_without_a_sandbox(timed: Timed) -> None:
    timed(bare_process)


@pytest.mark.benchmark(group="local")
def test_local(
    timed: Timed, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALLOW_DANGEROUS_LOCAL_HOST", "1")
    with pytest.warns(UserWarning, match="DangerousLocalSandbox"):
        sandbox = DangerousLocalSandbox()
    with opened(sandbox, loop) as call:
        timed(call)


@pytest.mark.benchmark(group="local")
def test_bubblewrap(timed: Timed, loop: asyncio.AbstractEventLoop) -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("there is no bwrap; apt-get install bubblewrap")
    with opened(BubblewrapSandbox(), loop) as call:
        timed(call)


@pytest.mark.benchmark(group="bashkit")
def test_the_library_without_a_sandbox(timed: Timed) -> None:
    timed(bare_bashkit)


@pytest.mark.benchmark(group="bashkit")
def test_bashkit(timed: Timed, loop: asyncio.AbstractEventLoop) -> None:
    with opened(BashkitSandbox(), loop) as call:
        timed(call)


@pytest.fixture(scope="module")
def engine() -> Iterator[docker.DockerClient]:
    with contextlib.ExitStack() as stack:
        try:
            address = stack.enter_context(docker_help.engine())
            client = stack.enter_context(docker_help.client(address))
            docker_help.make_image(client, "plain")
        except docker_help.NoEngine as reason:
            pytest.skip(str(reason))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DOCKER_HOST", address)
            yield client


@pytest.fixture
def container(engine: docker.DockerClient) -> Iterator[Any]:
    made = engine.containers.run(
        IMAGE, ["sleep", "infinity"], detach=True, init=True, network_mode="none"
    )
    yield made
    made.remove(force=True)


@pytest.mark.benchmark(group="docker")
def test_an_exec_without_a_sandbox(timed: Timed, container: Any) -> None:
    async def bare() -> str:
        output: bytes = container.exec_run(["sh", "-c", COMMAND], demux=True).output[0]
        return output.decode()

    timed(bare)


@pytest.mark.benchmark(group="docker")
def test_docker(timed: Timed, loop: asyncio.AbstractEventLoop, engine: docker.DockerClient) -> None:
    del engine
    with opened(LocalDockerSandbox(image=IMAGE, shell="sh"), loop) as call:
        timed(call)
