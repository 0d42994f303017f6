"""The first process of a sealed lab: builds it, runs the command, and takes all with it.

It is the init of the pid namespace, so that whatever the command leaves behind, and
the lab's servers, are killed by the kernel the moment it ends.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

from conformance.lab import addresses, kernel
from conformance.lab.cloud.keeper import CLOUD
from conformance.lab.devices import SCRATCH, mount_devices, mount_scratch
from conformance.lab.engine import CONTROL_SOCKET, Offer
from conformance.lab.engine_keeper import start_keeper
from conformance.lab.engine_place import images_folder
from conformance.lab.environment import inside
from conformance.lab.errors import LabUnavailable
from conformance.lab.files import bind_bundle, bind_configuration, mask_sockets
from conformance.lab.github.keeper import GITHUB
from conformance.lab.overlays import FileSeal
from conformance.lab.plan import BUNDLE_NAME, Facts, Plan
from conformance.lab.processes import close_all, exec_command, exit_code_of, fork, leave_group
from conformance.lab.sandbox_proxy.keeper import SANDBOX_PROXY
from conformance.lab.seal import namespace_ids, verify_seal
from conformance.lab.servers.start import ServerProcess, start_servers
from conformance.lab.services import start_keeper as start_service

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_LAB_FOLDER = SCRATCH / "lab"
_SERVICES = (CLOUD, SANDBOX_PROXY, GITHUB)


def run_init(
    plan: Plan,
    lifeline: int,
    host: Mapping[str, str],
    sockets: Sequence[str],
    offered: Offer | str,
) -> NoReturn:
    """Build the lab, run the command, and end with its exit code.

    Args:
        plan: the launch.
        lifeline: read end of a pipe that the launcher holds open while it lives.
        host: ids of the caller's namespaces.
        sockets: paths of the host's unix sockets.
        offered: the container engine that there may be, or why there is none.

    Raises:
        OSError: the kernel refused a step.
        LabError: the keeper of the engine ended.
        LabUnavailable: a step did not come to its end.
        SealBroken: the lab has a way out.
    """
    kernel.die_with_parent(signal.SIGKILL)
    if select.select([lifeline], [], [], 0)[0]:  # end of file: the launcher is gone already
        os._exit(128 + signal.SIGKILL)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    kernel.raise_loopback()
    kernel.leave_session_keyring()
    seal = FileSeal(plan)
    handle = -1 if isinstance(offered, str) else _opened(offered.ancestor)
    seal.protect()
    kernel.set_read_only("/proc", on=False)
    mount_devices()
    mount_scratch()
    _LAB_FOLDER.mkdir(mode=0o700)
    others = (*plan.pass_fds, *seal.handles, handle, lifeline, plan.status)
    servers = start_servers("sealed", _LAB_FOLDER, close=others)
    _build_network(servers)
    _seal_files(plan, seal, sockets)
    proxies = servers.await_ready()
    bundle = _LAB_FOLDER / BUNDLE_NAME
    bind_bundle(bundle)
    os.chdir(plan.cwd)  # the old handle points below the overlay
    environ = inside(plan.environ, scratch=SCRATCH, lab=_LAB_FOLDER, bundle=bundle)
    ours = (*plan.pass_fds, lifeline, plan.status)
    keeper = 0
    if not isinstance(offered, str):
        keeper = start_keeper(offered, handle, environ, ours)
    keepers = [start_service(service, servers.pid, ours) for service in _SERVICES]
    facts = Facts(
        mode="sealed",
        namespaces=namespace_ids(),
        host_namespaces=host,
        proxies=proxies,
        hidden=tuple(seal.hidden),
        engine=str(CONTROL_SOCKET) if keeper else "",
        engine_missing=offered if isinstance(offered, str) else "",
        engine_keeper=keeper,
        engine_images=str(images_folder(plan.environ)),
        services={service.name: str(service.control) for service in _SERVICES},
        service_keepers=tuple(keepers),
    )
    facts.write(_LAB_FOLDER)
    kernel.drop_capabilities(kernel.MACHINE_CAPABILITIES if os.geteuid() == 0 else None)
    verify_seal(facts)
    os.write(plan.status, b"ready\n")
    os._exit(_run_command(plan, environ, servers))


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_PATH | os.O_DIRECTORY)


def _build_network(servers: ServerProcess) -> None:
    servers.await_namespace()

    def build() -> None:
        # Only here: the library is slow to import, and the servers are importing meanwhile.
        from conformance.lab import network

        network.build(servers.pid)

    builder = fork(build)
    _, status = os.waitpid(builder, 0)
    if status != 0:
        raise LabUnavailable(
            f"the lab's network was not built (its builder ended with {exit_code_of(status)}); "
            "see the message above, or use --lab=loopback"
        )
    servers.network_is_built(addresses.SUBJECT_DEVICE)


def _seal_files(plan: Plan, seal: FileSeal, sockets: Sequence[str]) -> None:
    seal.apply()
    configuration = _LAB_FOLDER / "etc"
    configuration.mkdir()
    bind_configuration(configuration)
    mask_sockets(sockets, plan.leave_sockets)
    _LAB_FOLDER.chmod(0o755)


def _run_command(plan: Plan, environ: Mapping[str, str], servers: ServerProcess) -> int:
    command = fork(lambda: exec_command(plan, environ))
    leave_group()
    close_all((plan.status, *plan.pass_fds))
    while True:
        pid, status = os.wait()
        if pid == command:
            _tell_end(status)
            return exit_code_of(status)
        if pid == servers.pid:
            sys.stderr.write(
                f"sandbox-conformance: the lab's servers ended with {exit_code_of(status)}; "
                "no judgment can be made any more\n"
            )
            sys.stderr.flush()


def _tell_end(status: int) -> None:
    """Say why a run ends without a word of its own: all inside can be killed at one blow."""
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGINT:
        number = os.WTERMSIG(status)
        sys.stderr.write(
            f"\nsandbox-conformance: the run was ended by signal {number} and has no result; "
            "if you did not end it, a process inside the lab did (as `kill -1` does)\n"
        )
        sys.stderr.flush()
