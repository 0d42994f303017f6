"""The launcher: a process of its own that makes a lab, runs one command in it, and ends it.

Started by `conformance.lab.launch` as `python -m conformance.lab.launcher DESCRIPTOR`.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
from pathlib import Path
from typing import NoReturn

from conformance.lab import engine, kernel, loopback
from conformance.lab.errors import LabError, LabUnavailable
from conformance.lab.files import unix_sockets
from conformance.lab.inside import run_init
from conformance.lab.plan import Plan
from conformance.lab.processes import close_all, exit_code_of, leave_group
from conformance.lab.seal import namespace_ids

_RESTRICTION = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_ANYWAY = "or use --lab=loopback"


def main() -> NoReturn:
    """Read the plan, carry it out, and end with the command's exit code."""
    plan = _read_plan(int(sys.argv[1]))
    os.set_inheritable(plan.status, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored, no child can be waited for
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if os.isatty(0):
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)  # nobody could continue what stopped
    try:
        code = loopback.run(plan) if plan.mode == "loopback" else _run_sealed(plan)
    except LabError as failure:
        os.write(plan.status, f"{failure.reason}\n".encode())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _read_plan(descriptor: int) -> Plan:
    with open(descriptor, "rb") as file:
        size = int.from_bytes(file.read(8), "big")
        return Plan.from_json(file.read(size).decode())


def _run_sealed(plan: Plan) -> int:
    if sys.platform != "linux":
        raise LabUnavailable("a sealed lab needs Linux; use --lab=loopback")
    host = namespace_ids()
    sockets = unix_sockets()
    _check_owner_of(plan)
    offered = engine.offer(plan)
    if not isinstance(offered, str):
        engine.clear_stale_cgroups(offered)
    try:
        _enter_namespaces()
    except OSError as refused:
        raise LabUnavailable(_explained("namespaces", refused)) from refused
    kernel.die_with_parent(signal.SIGKILL)  # new credentials have cleared any earlier setting
    if os.getppid() != plan.caller:
        os._exit(128 + signal.SIGKILL)
    lifeline, held = os.pipe()
    init = os.fork()
    if init == 0:
        os.close(held)
        try:
            run_init(plan, lifeline, host, sockets, offered)
        except OSError as refused:
            reason = _explained("set-up", refused)
        except LabError as failure:
            reason = failure.reason
        os.write(plan.status, f"{reason}\n".encode())
        os._exit(1)
    leave_group(os.getpgid(plan.caller))
    close_all((lifeline, plan.status, *plan.pass_fds))
    _, status = os.waitpid(init, 0)
    if not isinstance(offered, str):
        engine.clear_cgroups(offered)
    return exit_code_of(status)


def _check_owner_of(plan: Plan) -> None:
    """See that the working folder can be written to inside as it can outside.

    An overlay gives each file that it copies the owner and group of the original, and the
    namespace of an ordinary user has nobody but himself: the kernel answers EOVERFLOW then.
    """
    if kernel.has_capability(kernel.CAP_SYS_ADMIN) or plan.cwd in plan.results:
        return
    info = os.stat(plan.cwd)
    own = (info.st_uid, info.st_gid) == (os.geteuid(), os.getegid())
    if own or info.st_mode & stat.S_IWOTH or not os.access(plan.cwd, os.W_OK):
        return
    raise LabUnavailable(
        f"the working folder {plan.cwd} is of user {info.st_uid}, group {info.st_gid}, and a "
        f"sealed lab of user {os.geteuid()} can write for group {os.getegid()} of his only; "
        f"give him the folder (chown -R), start from another one, run as root, {_ANYWAY}"
    )


def _enter_namespaces() -> None:
    flags = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWNET
    flags |= kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS
    user, group = os.geteuid(), os.getegid()
    if kernel.has_capability(kernel.CAP_SYS_ADMIN):
        kernel.unshare(flags)
        return
    kernel.unshare(flags | kernel.CLONE_NEWUSER)
    kernel.map_only(user, group)


def _explained(step: str, refused: OSError) -> str:
    where = f" ({refused.filename})" if refused.filename else ""
    remedy = "allow unprivileged user namespaces, or run as root"
    if _RESTRICTION.exists() and _RESTRICTION.read_text(encoding="ascii").strip() == "1":
        remedy = f"set {_RESTRICTION} to 0, or run as root"
    return f"the kernel refused the lab's {step}{where}: {refused.strerror}; {remedy}, {_ANYWAY}"


if __name__ == "__main__":
    main()
