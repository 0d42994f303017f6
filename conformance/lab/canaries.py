"""A person's own container engine, with the lab's servers in a container on its network.

What a subject's containers reach is judged at these canaries alone; nothing else is
dialled. The servers are the lab's, run from the machine's own files, so that any image
will do that has `chroot`.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from docker.errors import DockerException
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from conformance.lab.client import Lab
from conformance.lab.errors import LabError, LabUnavailable
from conformance.lab.plan import CANARY_NAME, FACTS_NAME, Facts
from conformance.lab.servers.line import Line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.lab.journal import Sighting
    from conformance.lab.sites import Site

LINE_NAME = "line.sock"
LOG_NAME = "canary.log"
_MACHINE = "/machine"
_REMEDY = "run as root with dockerd installed, and without --lab=loopback"

MISSING = {
    "names": f"a lab on your own engine has no host names; {_REMEDY}",
    "private": f"a lab on your own engine has no addresses but its container's; {_REMEDY}",
    "packets": f"a lab on your own engine does not see packets that go elsewhere; {_REMEDY}",
    "dns": f"a lab on your own engine has no resolver; {_REMEDY}",
    "files": f"a lab on your own engine does not protect the files of this machine; {_REMEDY}",
}
_READY_SECONDS = 40.0
_ROOT = Path(__file__).resolve().parents[2]


class CanaryLab(Lab):
    """A lab whose sites are a container's, beside the one of the subject's own host.

    Args:
        host: the loopback lab.
        worker: name of this worker.
    """

    def __init__(self, host: Lab, worker: str) -> None:
        folder = host.folder / CANARY_NAME
        super().__init__(folder, Facts.read(folder), worker)
        self._host = host
        self._of_host: set[str] = set()

    def loopback_site(self, family: Literal[4, 6] = 4) -> Site:
        """Give a service of the subject's own host, on its loopback address."""
        site = self._host.loopback_site(family)
        self._of_host.add(site.nonce)
        return site

    def seen(self, site: Site) -> list[Sighting]:
        """Give everything of `site` that came before this call, in its order."""
        return self._host.seen(site) if site.nonce in self._of_host else super().seen(site)

    def reach(
        self, site: Site, scheme: Literal["https", "http", "tcp", "udp", "dns"] = "https"
    ) -> list[Sighting]:
        """Go to `site` with the harness's own unrestricted client, which must arrive."""
        if site.nonce in self._of_host:
            return self._host.reach(site, scheme)
        return super().reach(site, scheme)


def with_canaries(lab: Lab, worker: str, image: str) -> CanaryLab:
    """Have the lab's servers on the engine's network, and give the lab that they make.

    Args:
        lab: a loopback lab.
        worker: name of this worker.
        image: one that has `chroot`, and that the engine has.

    Raises:
        LabUnavailable: they cannot be had there.
    """
    folder = lab.folder / CANARY_NAME
    folder.mkdir(exist_ok=True)
    with _one_at_a_time(folder):
        if not (folder / FACTS_NAME).exists():
            _start(lab, folder, image)
    return CanaryLab(lab, worker)


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    with (folder / "start.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _start(lab: Lab, folder: Path, image: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(folder / LINE_NAME))
        listener.listen(1)
        listener.settimeout(_READY_SECONDS)
        container = _container(lab, folder, image)
        os.environ["DOCKER_HOST"] = lab.start_engine()  # the library's own settings may differ
        try:
            container.start()
            connection, _ = listener.accept()
            proxies = Line(connection).hear("ready")
        except (OSError, LabError, DockerException) as cause:
            with suppress(DockerException):  # it removes itself where its servers ended
                container.stop()
            raise LabUnavailable(
                f"the lab's servers did not start on your engine ({_last_words(folder) or cause}); "
                "use an engine of this machine, or run as root with dockerd installed"
            ) from cause
    facts = Facts(
        mode="loopback",
        proxies=proxies,
        missing=MISSING,
        own_engine=lab.start_engine(),
        place="",
    )
    facts.write(folder)


def _last_words(folder: Path) -> str:
    log = folder / LOG_NAME
    lines = log.read_text(encoding="utf-8").strip().splitlines() if log.exists() else []
    return lines[-1][:300] if lines else ""


def _container(lab: Lab, folder: Path, image: str) -> DockerContainer:
    # Its clean-up would need an image from a registry: this one goes with the launcher's lock.
    testcontainers_config.ryuk_disabled = True
    program = [sys.executable, "-P", "-m", "conformance.lab.servers.canary", str(folder)]
    path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH", ""))))
    return DockerContainer(
        image,
        docker_client_kw={"environment": {**os.environ, "DOCKER_HOST": lab.start_engine()}},
        env={"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        volumes=[("/", _MACHINE, "ro"), (str(lab.folder), f"{_MACHINE}{lab.folder}", "rw")],
        entrypoint=["chroot", _MACHINE, *program, str(os.geteuid()), str(os.getegid())],
        user="0",
        working_dir="/",
        cap_add=["NET_ADMIN"],
        network_mode="default",
        auto_remove=True,
    )
