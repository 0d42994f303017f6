"""CFG-08: to run without a sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.lab.census import Census
from conformance.marks import alone, needs, verifies
from conformance.probes.agents import Stage, an_agent
from conformance.probes.inside import describe
from conformance.probes.watch import Watch, prove_watching
from conformance.requirements import CFG_08, reference
from conformance.strategies.options import PlainHook
from conformance.verdicts import NotApplicable, Violation
from sandboxes.contract import SandboxCallbackContext, SandboxHook

if TYPE_CHECKING:
    from conformance.lab.client import Lab
    from conformance.subject.targets import Target

_ran: list[str] = []


class Telltale(SandboxHook):
    """A hook that must not run."""

    async def on_create(self, ctx: SandboxCallbackContext) -> None:
        """Tell that it ran."""
        _ran.append("on_create")

    async def on_destroy(self, ctx: SandboxCallbackContext) -> None:
        """Tell that it ran."""
        _ran.append("on_destroy")


def _is_no_sandbox(cls: type[Any]) -> bool:
    return reference.public_class(cls).__name__ == "NoSandbox"


def _is_asked(target: Target) -> None:
    if not _is_no_sandbox(target.cls):
        raise NotApplicable(f"{target.cls.__name__} is no NoSandbox, of which alone this speaks")


@verifies(CFG_08)
def test_it_takes_hooks_and_nothing_else(target: Target) -> None:
    """`NoSandbox` takes `hooks`, and no other option."""
    _is_asked(target)
    others = {"network": target.Network.none(), "access": "none", "header_bindings": ()}
    known = dict.fromkeys(name for row in reference.SANDBOXES.values() for name in row)
    for option, value in {**known, **others, "no_such_option": None}.items():
        if option != "hooks" and target.refusal(**{option: value}) is None:
            raise Violation(
                f"built with {option}={value!r} it raised nothing", remedy="take hooks alone"
            )
    refusal = target.refusal(hooks=[PlainHook()])
    if refusal is not None:
        raise Violation(
            f"built with a hook it raised {refusal!r}",
            remedy="take hooks, so that an agent can switch sandboxes",
        )


@verifies(CFG_08)
@needs(opens=False)
@alone
def test_it_opens_and_creates_nothing(target: Target, lab: Lab) -> None:
    """To build `NoSandbox` and to use it in a session creates, starts, calls and sends nothing."""
    _is_asked(target)
    prove_watching()
    with Stage() as stage, lab.alone():
        mark, before = lab.mark(), Census.take()
        with Watch() as watch:
            sandbox = target.build(hooks=(PlainHook(),))
            session = stage.start(an_agent(environment=sandbox))
            running = session.running is not None or stage.opens(sandbox)
            stage.close(session)
        deeds = [*watch.deeds, *Census.take().left_since(before)]
        traffic = lab.traffic(mark)
    if running:
        raise Violation("it gave a running sandbox", remedy="raise from open()")
    if deeds or traffic:
        raise Violation(
            f"a session without a sandbox did {'; '.join(deeds) or 'work'}",
            saw=describe(traffic) if traffic else "",
            remedy="do nothing at all",
        )


@verifies(CFG_08)
def test_its_hooks_never_run(target: Target) -> None:
    """The hooks of `NoSandbox` run at no point of a session."""
    _is_asked(target)
    _ran.clear()
    with Stage() as stage:
        sandbox = target.build(hooks=(Telltale(),))
        session = stage.start(an_agent(environment=sandbox))
        stage.opens(sandbox)
        stage.close(session)
    if _ran:
        raise Violation(
            f"a session without a sandbox ran {' and '.join(_ran)}", remedy="never run its hooks"
        )


@verifies(CFG_08)
def test_an_agent_keeps_its_own_tools_and_gets_no_other(target: Target) -> None:
    """With `NoSandbox`, which is what it has by itself, an agent has its own tools and no other."""
    _is_asked(target)

    def add(left: int, right: int) -> int:
        return left + right

    sandbox, by_itself = target.build(), an_agent(tools=[add])
    if not _is_no_sandbox(type(by_itself.environment)):
        raise Violation(
            f"an agent without environment has {by_itself.environment!r}",
            remedy="take a missing environment as NoSandbox()",
        )
    if sandbox.access != "none":
        raise Violation(
            f"without a sandbox it has access={sandbox.access!r}",
            remedy='declare supported_access = "none"',
        )
    with Stage() as stage:
        for agent in (by_itself, an_agent(tools=[add], environment=sandbox)):
            session = stage.start(agent)
            names = sorted(session.tools)
            result = stage.call(session, "add", 2, 3) if "add" in names else None
            stage.close(session)
            if names != ["add"] or result != 5:
                raise Violation(
                    f"the agent whose own tool is `add` had {', '.join(names) or 'no tools'}, "
                    f"and add(2, 3) gave {result!r}",
                    remedy="give an agent its own tools, and no sandbox tool",
                )
