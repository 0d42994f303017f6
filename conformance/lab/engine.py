"""The container engine of a sealed lab: whether one can be had, and asking for it.

A run has at most one, which starts when the first subject that needs it is loaded; see
`engine_keeper`.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.lab import kernel
from conformance.lab.devices import SCRATCH
from conformance.lab.engine_api import EngineApi
from conformance.lab.engine_place import engine_folder
from conformance.lab.errors import LabUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.lab.plan import Facts, Plan

PROGRAM = "dockerd"
RUNTIME = "crun"
"""What starts containers and commands, if it is there: in half the time of the engine's own."""

DEVICES = ("docker", "br-", "veth")
"""Beginnings of the names of network devices that an engine makes."""

SOCKET = SCRATCH / "lab" / "docker.sock"
CONTROL_SOCKET = SCRATCH / "lab" / "engine.sock"
_USUAL_SOCKET = "/var/run/docker.sock"
_OWN = "or pass --lab=loopback to use the one that you have"
_START_SECONDS = 150.0
_CGROUPS = "sandbox-conformance-"


@dataclass(frozen=True)
class Offer:
    """What a lab needs to start an engine when it is asked to.

    Args:
        program: the engine.
        ancestor: the nearest folder of the account's that exists above its engine folder.
        rest: what is to be made below that.
        cgroup: name of the control groups of its containers.
        cgroup_mounts: where control groups are mounted.
        unified: those of them that are of the second version beside ones of the first.
        runtime: what is to start containers; the engine's own if empty.
    """

    program: str
    ancestor: Path
    rest: str
    cgroup: str
    cgroup_mounts: tuple[str, ...]
    unified: tuple[str, ...]
    runtime: str


def offer(plan: Plan) -> Offer | str:
    """Give what a sealed lab of this account can offer, or why it cannot.

    Call it in the launcher, whose id is that of the lab on the machine.
    """
    if os.geteuid() != 0:
        return f"only root starts an engine in the lab; run as root, {_OWN}"
    path = plan.environ.get("PATH")
    program = shutil.which(PROGRAM, path=path)
    if program is None:
        return f"{PROGRAM} is not on the PATH; install it (apt-get install docker.io), {_OWN}"
    folder = Path(os.path.realpath(engine_folder(plan.environ)))
    ancestor = next(path for path in (folder, *folder.parents) if path.is_dir())
    rest = str(folder.relative_to(ancestor))
    mounts = _cgroup_mounts()
    second = tuple(place for place, version in mounts.items() if version == "cgroup2")
    return Offer(
        program=program,
        ancestor=ancestor,
        rest=rest,
        cgroup=f"{_CGROUPS}{os.getpid()}",
        cgroup_mounts=tuple(mounts),
        unified=second if len(second) < len(mounts) else (),
        runtime=shutil.which(RUNTIME, path=path) or "",
    )


def own_engine(environ: Mapping[str, str]) -> str:
    """Give the address of an engine that the account may use on this machine, if there is one."""
    address = environ.get("DOCKER_HOST") or f"unix://{_USUAL_SOCKET}"
    path = address.removeprefix("unix://")
    return address if path != address and EngineApi(path).answers() else ""


def request(facts: Facts) -> str:
    """Have the lab's engine started, unless it is up, and give its address.

    Raises:
        LabUnavailable: there is none; the message says what to do.
    """
    if facts.own_engine:
        return facts.own_engine
    if not facts.engine:
        raise LabUnavailable(facts.engine_missing)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
        control.settimeout(_START_SECONDS)
        try:
            control.connect(facts.engine)
            answer = control.makefile("rb").read()
        except OSError as cause:
            raise LabUnavailable(f"the lab's engine did not start: {cause}; run again") from cause
    fields = json.loads(answer or b'{"reason": "its keeper ended; run again"}')
    if "reason" in fields:
        raise LabUnavailable(f"the lab's engine did not start: {fields['reason']}")
    return str(fields["address"])


def require_image(api: EngineApi, facts: Facts, name: str) -> None:
    """Check that the engine has an image.

    Raises:
        LabUnavailable: it has not; the message names those that there are.
    """
    images = api.images()
    if name not in images and f"{name}:latest" not in images:
        raise LabUnavailable(
            f"the engine has no image {name!r} and reaches no registry; pass one of "
            f"{', '.join(images) or '(none)'} as in --sandbox-option image='\"NAME\"', "
            f"or docker save one into {facts.engine_images}/"
        )


def clear_stale_cgroups(offered: Offer) -> None:
    """Remove the control groups of labs whose launcher was killed; call it before the seal."""
    for mounted in offered.cgroup_mounts:
        for group in Path(mounted).glob(f"{_CGROUPS}*"):
            if not Path("/proc", group.name.removeprefix(_CGROUPS)).exists():
                _remove(group)


def clear_cgroups(offered: Offer) -> None:
    """Remove the control groups of a lab that has ended, whose /proc is gone as well."""
    for mounted in offered.cgroup_mounts:
        group = Path(mounted, offered.cgroup)
        if group.exists():
            with suppress(OSError):  # what cannot be removed now is stale to the next lab
                kernel.set_read_only(mounted, on=False)
            _remove(group)


def _cgroup_mounts() -> dict[str, str]:
    lines = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    rows = (line.split() for line in lines)
    return {row[1]: row[2] for row in rows if row[2] in ("cgroup", "cgroup2")}


def _remove(group: Path) -> None:
    for folder, _, _ in os.walk(group, topdown=False):
        with suppress(OSError):  # in use, or gone meanwhile
            os.rmdir(folder)
