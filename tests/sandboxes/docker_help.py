"""A Docker engine for tests: one that is named, or one of their own with no way out."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import docker
from docker.errors import DockerException

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NAMED = "SANDBOX_TESTS_DOCKER_HOST"
_BUSYBOX = Path("/bin/busybox")
# BusyBox's own shell has its other programs within itself, links or no links.
_SHELL = Path("/bin/dash")
_START_SECONDS = 60.0
_STOP_SECONDS = 20.0


class NoEngine(Exception):
    """There is none, and why."""


@contextlib.contextmanager
def engine() -> Iterator[str]:
    """Give the address of an engine.

    Raises:
        NoEngine: None is named, and none can be started.
    """
    if named := os.environ.get(NAMED):
        yield named
        return
    missing = [name for name in ("dockerd", "unshare", "ip") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        raise NoEngine(
            f"no engine: {' and '.join(missing) or 'root'} is missing; "
            f"set {NAMED} to an engine's address"
        )
    folder = Path(tempfile.mkdtemp(prefix="sbx-docker-"))
    try:
        with (folder / "log").open("wb") as log:
            started = _started(folder, log)
        try:
            _wait_for(started, folder)
            yield f"unix://{folder}/socket"
        finally:
            started.terminate()
            started.wait(_STOP_SECONDS)
    finally:
        for left in (folder / "run" / "netns").glob("*"):
            subprocess.run(["umount", left], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def _started(folder: Path, log: io.BufferedWriter) -> subprocess.Popen[bytes]:
    # In a network namespace without a way out: no image is pulled, and nothing leaves.
    words = ["dockerd", "--data-root", folder / "data", "--exec-root", folder / "run"]
    words += ["--pidfile", folder / "pid", "-H", f"unix://{folder}/socket"]
    words += ["--shutdown-timeout", "2", "--log-level", "warn", "--dns", "127.0.0.1"]
    inside = 'ip link set lo up && exec "$@"'
    return subprocess.Popen(
        ["unshare", "--net", "sh", "-c", inside, "sh", *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )


def _wait_for(started: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not (folder / "socket").exists() or not _answers(f"unix://{folder}/socket"):
        if started.poll() is not None or time.monotonic() > deadline:
            raise NoEngine(f"no engine: {(folder / 'log').read_text()[-500:]}")
        time.sleep(0.05)


def _answers(address: str) -> bool:
    with contextlib.suppress(DockerException), client(address):
        return True
    return False


@contextlib.contextmanager
def client(address: str) -> Iterator[docker.DockerClient]:
    """Give a client of our own, the witness of what sandboxes do."""
    with contextlib.closing(docker.DockerClient(address, version="auto", timeout=60)) as made:
        yield made


def make_image(
    of: docker.DockerClient, tag: str, *, without: Sequence[str] = (), changes: Sequence[str] = ()
) -> str:
    """Make an image of BusyBox and another shell, and give its name.

    Args:
        of: The engine.
        tag: The image's.
        without: Programs that it is to lack.
        changes: Lines as in a Dockerfile.

    Raises:
        NoEngine: This machine has no static BusyBox, or no dash.
    """
    for program in (_BUSYBOX, _SHELL):
        if not program.exists():
            raise NoEngine(f"no image: {program} is missing; install busybox-static and dash")
    names = subprocess.run([_BUSYBOX, "--list"], check=True, capture_output=True, text=True).stdout
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for folder, mode in (("bin", 0o755), ("tmp", 0o1777), ("etc", 0o755), ("root", 0o700)):
            _add(tar, folder, tarfile.DIRTYPE, mode)
        _add(tar, "bin/busybox", tarfile.REGTYPE, 0o755, _BUSYBOX.read_bytes())
        users = b"root:x:0:0::/root:/bin/sh\nworker:x:1000:1000::/tmp:/bin/sh\n"
        _add(tar, "etc/passwd", tarfile.REGTYPE, 0o644, users)
        if "sh" not in without:
            for path in (Path("/bin/sh"), *_libraries()):
                data = (_SHELL if path.name == "sh" else path).read_bytes()
                _add(tar, str(path).lstrip("/"), tarfile.REGTYPE, 0o755, data)
        for name in {*names.split()} - {"busybox", "sh", *without}:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    of.api.import_image_from_data(
        archive.getvalue(),
        repository="sandbox-tests/busybox",
        tag=tag,
        changes=["ENV PATH=/bin", *changes],
    )
    return f"sandbox-tests/busybox:{tag}"


def _libraries() -> list[Path]:
    told = subprocess.run(["ldd", _SHELL], check=True, capture_output=True, text=True).stdout
    return [Path(word) for word in told.split() if word.startswith("/")]


def _add(tar: tarfile.TarFile, name: str, kind: bytes, mode: int, data: bytes = b"") -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.size = kind, mode, len(data)
    tar.addfile(entry, io.BytesIO(data))
