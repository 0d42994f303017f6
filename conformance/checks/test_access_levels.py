"""ACC: the tools of a session at each access, live, and what is the same at all of them."""

from __future__ import annotations

import re
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import pytest

from conformance.marks import needs, verifies
from conformance.probes.at_work import at_work
from conformance.probes.choices import wider
from conformance.probes.declared import said
from conformance.probes.inside import connections, describe
from conformance.probes.places import destination
from conformance.requirements import ACC_01, ACC_02, ACC_03, ACC_05, ACC_06
from conformance.verdicts import NotApplicable, Violation
from sandboxes.contract import SandboxCallbackContext, SandboxHook
from sandboxes.tools import FILE_TOOLS, PROCESS_TOOLS
from sandboxes.truncation import MOST_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.lab.client import Lab
    from conformance.probes.at_work import AtWork
    from conformance.probes.clients import Scheme
    from conformance.probes.inside import Inside
    from conformance.subject.targets import Target
    from sandboxes.contract import AccessLevel

Level = Literal["none", "files", "full"]

# What hooks saw, by the token that they were constructed with.
_saw: dict[str, list[str]] = {}


class UsesTheSandbox(SandboxHook):
    """Run commands, and read and write a file, at both points."""

    def __init__(self, token: str, commands: list[str]) -> None:
        self.token = token
        self.commands = commands

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        """Leave a file by one way and read it by the other."""
        seen = _saw.setdefault(self.token, [])
        await ctx.sandbox.write_file(f"{self.token}.1", self.token.encode())
        seen.append((await ctx.sandbox.execute(f"cat {self.token}.1")).stdout.strip())
        await ctx.sandbox.execute(f"printf %s {self.token} > {self.token}.2")
        seen.append((await ctx.sandbox.read_file(f"{self.token}.2")).decode(errors="replace"))
        for command in self.commands:
            await ctx.sandbox.execute(command, timeout_seconds=10.0)

    async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
        """Read it again."""
        result = await ctx.sandbox.execute(f"cat {self.token}.1")
        _saw.setdefault(self.token, []).append(result.stdout.strip())


def _built_with(target: Target, access: Level) -> dict[str, AccessLevel]:
    """The options that give this access.

    Raises:
        NotApplicable: It has no such access, or no other.
    """
    if wider(target, access):
        raise NotApplicable(f'{target.cls.__name__} declares no access="{access}"')
    if target.has_option("access"):
        return {"access": access}
    if target.build().access != access:
        raise NotApplicable(f"{target.cls.__name__} has no option access")
    return {}


@contextmanager
def _session_with(target: Target, access: Level, wanted: set[str]) -> Iterator[AtWork]:
    """Start a session with an access, whose hooks use the sandbox and whose tools are these."""
    token = f"hook-{secrets.token_hex(4)}"
    options = _built_with(target, access)
    with at_work(target, **options, hooks=(UsesTheSandbox(token, []),)) as work:
        if work.tools != wanted:
            raise Violation(
                f'with access="{access}" a model gets {sorted(work.tools)}, not {sorted(wanted)}',
                remedy="keep the access that the constructor was given, and declare what is so",
            )
        yield work
    # Whether hooks run, and how often, is another requirement's.
    if seen := [text for text in _saw.get(token, []) if text != token]:
        raise Violation(
            f'with access="{access}" a hook found {seen[0]!r} in a file that it had written',
            remedy="let hooks and tools use the whole sandbox, whatever the model gets",
        )


def _file_tools_work(work: AtWork) -> None:
    """The file tools do to files what they say.

    Raises:
        Violation: They do not.
    """
    name = f"tool-{secrets.token_hex(4)}"
    work.call("write_file", f"{name}/a.txt", "one\ntwo\n")
    work.call("edit_file", f"{name}/a.txt", "two", "zwei")
    got = work.call("read_file", f"{name}/a.txt"), work.call("list_files", name)
    if got != ("one\nzwei\n", ["a.txt"]):
        raise Violation(
            f"after write_file and edit_file the file tools gave {got!r}",
            remedy="give file calls and commands the same files, whatever the access",
        )


@verifies(ACC_01)
@needs(opens=True)
def test_without_access_a_model_has_no_tool_and_hooks_use_the_sandbox(target: Target) -> None:
    """With access "none" a model gets no sandbox tool, and hooks use the sandbox all the same."""
    with _session_with(target, "none", set()):
        pass


@verifies(ACC_02)
@needs(opens=True, access="files")
def test_with_access_to_files_a_model_has_file_tools_and_no_bash(target: Target) -> None:
    """With access "files" a model gets the file tools, which work, and neither bash nor more."""
    with _session_with(target, "files", set(FILE_TOOLS)) as work:
        _file_tools_work(work)


@verifies(ACC_03)
@needs(opens=True, access="full")
def test_with_full_access_a_model_has_every_tool_that_there_is(target: Target) -> None:
    """With access "full" a model gets file tools, bash, and `process.*` only where declared."""
    background = target.declared.fact("supports_background_processes")
    wanted = {*FILE_TOOLS, "bash", *(PROCESS_TOOLS if background else ())}
    with _session_with(target, "full", wanted) as work:
        _file_tools_work(work)
        name = f"tool-{secrets.token_hex(4)}"
        work.call("bash", f"printf by-bash > {name}")
        if (text := work.call("read_file", name)) != "by-bash":
            raise Violation(f"read_file gave {text!r} of bash's file", remedy="share the files")


def _goes_out(inside: Inside, access: Level, way: str, lab: Lab) -> None:
    target, token, site = inside.target, f"hook-{secrets.token_hex(4)}", lab.site()
    options = _built_with(target, access) | inside.known({"network": target.Network.none()})
    schemes: tuple[Scheme, ...] = ("https", "http", "tcp")
    ways = {scheme: client for client, scheme in reversed(inside.ways("none", *schemes))}
    # By its address too: where nobody answers for names there may still be a way out.
    commands = [
        client.command(one, destination(one, site, host=host))
        for one, client in ways.items()
        for host in ("", site.address)
    ]
    if way == "a hook":
        options["hooks"] = (UsesTheSandbox(token, commands),)
    else:
        if target.refusal(setup_script="true") is not None:
            raise NotApplicable("its setup_script is no text, but something of its own")
        options["setup_script"] = "\n".join([*commands, "true"])
    with target.session(**options):
        seen = connections(lab.seen(site), site)
    if seen:
        raise Violation(
            f'with access="{access}" and none(), it let a request of {way} out',
            saw=describe(seen),
            remedy="put the policy in force whatever tools the model gets",
        )
    inside.proven("none", *schemes)
    inside.control(site, "https")


both_levels = pytest.mark.parametrize("access", ["none", "files"])


@verifies(ACC_05)
@needs(opens=True, network="none")
@both_levels
def test_the_network_limits_hooks_whatever_the_access(
    inside: Inside, lab: Lab, access: Level
) -> None:
    """With access "none" or "files" the network policy is in force for what hooks run."""
    _goes_out(inside, access, "a hook", lab)


@verifies(ACC_05)
@needs(opens=True, network="none", option="setup_script")
@both_levels
def test_the_network_limits_setup_scripts_whatever_the_access(
    inside: Inside, lab: Lab, access: Level
) -> None:
    """With access "none" or "files" the network policy is in force for the setup script."""
    _goes_out(inside, access, "the setup script", lab)


_LINES = 2 * MOST_CHARACTERS // 9


@verifies(ACC_06)
@needs(opens=True, access="full")
def test_tool_output_that_is_too_long_is_cut_and_kept(target: Target) -> None:
    """Long tool output is cut, and is whole in a file of the sandbox where Python can write one."""
    mark = secrets.token_hex(4)
    whole = "".join(f"{mark[:3]}{number:05}\n" for number in range(_LINES))
    with at_work(target, **_built_with(target, "full")) as work:
        box = target.box(work.session.sandbox)
        box.write_file(f"{mark}.txt", whole.encode())
        python = "written=42" in said(box, "python3 -I -c 'print(f\"written={40 + 2}\")'").split()
        kept = _kept(work.call("bash", f"cat {mark}.txt").stdout, whole)
        if bool(kept) != python:
            raise Violation(
                f"there is {'a' if python else 'no'} Python inside, and the rest of long output "
                f"{f'is said to be in {kept}' if kept else 'was not kept'}",
                remedy="let `python3 -I -c ''` tell whether there is one, and write what is told",
            )
        if not kept:
            return
        found = [box.read_file(kept), box.execute(f"cat {kept}").stdout.encode()]
    if {data.rstrip() for data in found} != {whole.encode().rstrip()}:
        raise Violation(
            f"{kept} holds {len(found[0])} of {len(whole)} bytes, {len(found[1])} to commands",
            remedy="keep what is written to the workspace whole, where commands find it",
        )


def _kept(shown: str, whole: str) -> str:
    """Judge what is shown of long output, and give the file that is said to have all of it."""
    ends = shown.startswith(whole[:900]) and shown.rstrip().endswith(whole[-900:].rstrip())
    if len(shown) >= len(whole) or not ends:
        raise Violation(
            f"of {len(whole)} characters of output bash gave {len(shown)}, beginning with "
            f"{shown[:20]!r} and ending with {shown[-20:]!r}",
            remedy="give commands' output whole, so that its middle alone is left out",
        )
    found = re.search(r"the whole is in ([\w./-]+)", shown)
    return found[1] if found else ""
