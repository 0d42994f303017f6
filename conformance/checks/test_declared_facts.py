"""CFG: what a sandbox says of itself, against what it shows when it runs."""

from __future__ import annotations

import os
import secrets
import shlex
from typing import TYPE_CHECKING

import pytest

from conformance.lab.plan import LAB_VARIABLE
from conformance.marks import needs, side_by_side, verifies
from conformance.probes import declared
from conformance.probes.inside import connections, describe, needs_of_lab
from conformance.probes.places import destination, entry
from conformance.probes.variables import variable
from conformance.requirements import CFG_15, CFG_19, reference
from conformance.verdicts import NotApplicable, Violation

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.oracle import Mode
    from conformance.probes.inside import Inside
    from conformance.subject.targets import Target


def _of_bashkit(target: Target) -> None:
    if not reference.is_a(target.cls, "BashkitSandbox"):
        raise NotApplicable(f"{target.cls.__name__} is no BashkitSandbox")


@verifies(CFG_15)
@needs(opens=True)
@pytest.mark.parametrize("program", ["python3", "python"])
def test_bashkit_has_no_python(target: Target, inside: Inside, program: str) -> None:
    """A `BashkitSandbox` runs no Python, whatever it says of it."""
    _of_bashkit(target)
    box = inside.narrowest()
    name = f"ran{secrets.token_hex(4)}"
    code = f"print(f'ran={{40 + 2}}'); open('{name}', 'w').write('left')"
    printed = declared.said(box, shlex.join([program, "-c", code])).split()
    left = "left" in declared.said(box, f"cat {name}").split()
    if left or "ran=42" in printed:
        raise Violation(
            f"{program} ran inside and {'left a file' if left else 'printed 40 + 2'}",
            remedy="leave Python out of a BashkitSandbox",
        )


@verifies(CFG_15)
@needs(opens=True)
def test_bashkit_has_no_containers(target: Target, inside: Inside) -> None:
    """A `BashkitSandbox` has no command that runs containers."""
    _of_bashkit(target)
    for program in ("docker", "podman"):
        line = f"command -v {program} >/dev/null 2>&1 && echo there=$((40 + 2))"
        if "there=42" in declared.said(inside.narrowest(), line).split():
            raise Violation(
                f"the shell inside finds {program}",
                remedy="leave containers out of a BashkitSandbox",
            )


@verifies(CFG_15)
@needs(opens=True)
def test_bashkit_has_no_background_processes(target: Target, inside: Inside) -> None:
    """A `BashkitSandbox` declares no processes, and a job ends before its command returns."""
    _of_bashkit(target)
    for fact in ("has_processes", "supports_background_processes"):
        if target.declared.fact(fact):
            raise Violation(f"it declares {fact}", remedy=f"declare {fact} = False")
    if name := declared.late_file(inside.narrowest()):
        raise Violation(
            f"a job of the shell wrote {name} after its command had returned",
            remedy="return when all jobs of a command have ended, or end them",
        )


@verifies(CFG_19)
@needs(opens=True)
def test_commands_are_processes_exactly_where_declared(target: Target, inside: Inside) -> None:
    """Commands are operating-system processes where `has_processes` says so, and only there."""
    has = target.declared.fact("has_processes")
    probe = declared.process_shared if has else declared.process_seen
    if shown := probe(inside.narrowest()):
        raise Violation(
            f"it declares has_processes = {has}, and {shown}",
            remedy=f"declare has_processes = {not has}",
        )


@verifies(CFG_19)
@needs(opens=True, isolated=True)
def test_an_isolated_sandbox_shows_nothing_of_the_host(inside: Inside) -> None:
    """With `isolated`, commands see no file and no process of the host."""
    with declared.canaries() as canaries:
        seen = canaries.seen(inside.narrowest())
    if seen:
        raise Violation(
            f"it declares isolated, and a command read {' and '.join(seen)}",
            remedy="keep the host's files and processes out, or declare isolated = False",
        )


_ENVIRONMENTS = "env; export -p; cat /proc/self/environ /proc/[0-9]*/environ"


@verifies(CFG_19)
@needs(opens=True, isolated=True)
def test_an_isolated_sandbox_has_an_environment_of_its_own(target: Target) -> None:
    """With `isolated`, commands see no variable of the process that opened the sandbox."""
    name, value = f"CONFORMANCE_{secrets.token_hex(4).upper()}_KEY", f"key-{secrets.token_hex(12)}"
    with variable(name, value), target.open() as box:
        told = declared.said(box, f'printf "%s\n" "${name}"; {_ENVIRONMENTS}')
    # What a class copied when it was loaded has the one of these, and not the other.
    leaked = [one for one in (value, os.environ.get(LAB_VARIABLE)) if one and one in told]
    if leaked:
        raise Violation(
            f"it declares isolated, and a command read {leaked[0]!r} in its environment, which is "
            "that of the process that opened the sandbox",
            remedy="start commands with an environment of their own, without the user's keys",
        )


@side_by_side
@verifies(CFG_19)
@needs(opens=True, background=True)
def test_declared_background_processes_outlive_their_command(inside: Inside) -> None:
    """With `supports_background_processes`, what Python starts inside outlives its command."""
    if lack := declared.stays_behind(inside.narrowest()):
        raise Violation(
            f"it declares supports_background_processes, and {lack}",
            remedy="provide `python3 -I` and let processes live on, or declare it False",
        )


@verifies(CFG_19)
@needs(opens=True, resume=True)
def test_a_sandbox_that_resumes_can_be_detached(target: Target) -> None:
    """With `supports_resume`, a sandbox can be detached and opened again, with what it held."""
    session = f"resumes-{secrets.token_hex(6)}"
    left = f"left-{secrets.token_hex(6)}"
    with target.open(session_id=session) as box:
        box.execute(f"echo {left} > left.txt")
        was_there = left in declared.said(box, "cat left.txt")
        try:
            state = box.detach()
        except NotImplementedError as error:
            raise Violation(
                f"it declares supports_resume, and detach() raised NotImplementedError: {error}",
                remedy="write detach() and take OpenRequest.resume, or declare it False",
            ) from error
    with target.open(session_id=session, resume=state) as box:
        if was_there and left not in declared.said(box, "cat left.txt"):
            raise Violation(
                "it declares supports_resume, and what a command wrote before detach() was gone "
                "when it was resumed",
                remedy="take what OpenRequest.resume says up again, or declare it False",
            )


@verifies(CFG_19)
@needs(opens=False)
def test_what_opens_nothing_cannot_be_opened(target: Target) -> None:
    """Without `opens`, `open` gives no sandbox."""
    try:
        with target.enter(target.build(), insist=True):
            pass
    except Violation:
        raise
    except Exception:  # noqa: BLE001 - any error is a refusal
        return
    raise Violation(
        "it declares opens = False, and open() gave a sandbox",
        remedy="raise from open(), or declare opens = True",
    )


@verifies(CFG_19)
@needs(opens=True, option="block_private_ips")
def test_what_no_longer_blocks_private_addresses_does_not_say_so(
    target: Target, lab: Lab, inside: Inside
) -> None:
    """Built with `block_private_ips=False`, it declares nothing that a request disproves."""
    # By default, whether private addresses stay refused is what EGR-16 judges.
    if target.refusal(block_private_ips=False) is not None:
        raise NotApplicable(f"{target.cls.__name__} chooses block_private_ips itself")
    if not target.build(block_private_ips=False).blocks_private_addresses:
        return
    needs_of_lab(lab, "private")
    site = lab.site(addresses=["10.99.0.2"])
    box = inside.wide(entry(site.address, 443), private=True)
    if box is None:
        raise NotApplicable(f"{target.cls.__name__} opens nothing")
    mode: Mode = "all" if "all" in target.declared.network else "allow"
    for client, scheme in inside.ways(mode, "https"):
        inside.attempt(box, client, scheme, destination(scheme, site, host=site.address))
    if seen := connections(lab.seen(site), site):
        raise Violation(
            "built with block_private_ips=False it declares blocks_private_addresses, and a "
            f"request reached {site.address}",
            saw=describe(seen),
            remedy="set blocks_private_addresses by the option",
        )
