"""CFG: a sandbox without isolation is built on purpose, loudly, and never by accident."""

from __future__ import annotations

import secrets
import warnings
from typing import TYPE_CHECKING

import pytest

from conformance.marks import needs, verifies
from conformance.requirements import CFG_01, CFG_09, CFG_10, reference
from conformance.subject.blame import shown
from conformance.verdicts import NotApplicable, Violation
from sandboxes.pattern.sandbox_hook import GitIdentity, SandboxHook

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.subject.targets import Target

ALLOW_VARIABLE = "ALLOW_DANGEROUS_LOCAL_HOST"
_NOT_ALLOWED = (None, "", "0", "false", "no")


def _must_be_local(target: Target) -> None:
    if not reference.is_a(target.cls, "DangerousLocalSandbox"):
        raise NotApplicable(f"{target.cls.__name__} is no DangerousLocalSandbox")


@verifies(CFG_01)
def test_a_local_sandbox_always_has_all_of_the_network(target: Target) -> None:
    """`DangerousLocalSandbox.network` is always `Network.all()`."""
    _must_be_local(target)
    network = target.build().network
    if network.mode != "all" or network != target.Network.all():
        raise Violation(
            f"a sandbox on the machine itself has network={network!r}",
            remedy="give it Network.all(): it can enforce nothing less",
        )


@verifies(CFG_09)
def test_building_a_local_sandbox_warns(target: Target) -> None:
    """Building a `DangerousLocalSandbox` warns, each time and whatever else was warned of."""
    _must_be_local(target)
    for time in ("first", "second"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            target.build()
        words = " ".join(str(one.message) for one in caught).lower()
        if "isolation" not in words or not any(
            issubclass(one.category, UserWarning) for one in caught
        ):
            raise Violation(
                f"building it for the {time} time warned of {words or 'nothing'}",
                remedy="warn with a UserWarning that there is no isolation",
            )


@verifies(CFG_09)
@needs(opens=True)
@pytest.mark.parametrize("value", _NOT_ALLOWED)
def test_a_local_sandbox_must_be_allowed(
    target: Target, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str | None
) -> None:
    """Without ALLOW_DANGEROUS_LOCAL_HOST=1 building or starting it raises, and nothing runs."""
    _must_be_local(target)
    canary = tmp_path / secrets.token_hex(4)
    with monkeypatch.context() as patch:
        patch.delenv(ALLOW_VARIABLE, raising=False)
        if value is not None:
            patch.setenv(ALLOW_VARIABLE, value)
        error = _refusal(target, canary)
    if error is None:
        raise Violation(f"with {ALLOW_VARIABLE}={value!r} it was built and started", remedy=_REFUSE)
    if canary.exists():
        raise Violation(f"with {ALLOW_VARIABLE}={value!r} a command ran", remedy=_REFUSE)
    if ALLOW_VARIABLE not in str(error):
        raise Violation(
            f"the refusal does not name {ALLOW_VARIABLE}: {shown(error)}", remedy=_REFUSE
        )


_REFUSE = f"refuse to be built unless {ALLOW_VARIABLE} is 1, and name it"


def _refusal(target: Target, canary: Path) -> Exception | None:
    try:
        with target.open() as box:
            box.execute(f"touch {canary}")
    except Exception as error:  # noqa: BLE001 - any error is a refusal
        return error
    return None


class _SessionIdentity(GitIdentity):
    """The same hook under another name."""


@verifies(CFG_10)
@pytest.mark.parametrize("kind", [GitIdentity, _SessionIdentity])
def test_a_local_sandbox_refuses_the_git_identity(target: Target, kind: type[GitIdentity]) -> None:
    """`DangerousLocalSandbox` refuses `GitIdentity`, which would change the user's own settings."""
    _must_be_local(target)
    others = (GitIdentity(name="Ada", email="ada@example.org"),)
    for hooks in ((kind(name="Ada", email="ada@example.org"),), (_Nothing(), *others)):
        error = target.refusal(hooks=hooks)
        if error is None:
            raise Violation(
                f"it accepted {[type(hook).__name__ for hook in hooks]}",
                remedy="refuse GitIdentity, wherever it is in hooks",
            )
        if "GitIdentity" not in str(error) and kind.__name__ not in str(error):
            raise Violation(
                f"its refusal does not name the hook: {shown(error)}",
                remedy="name the hook that is refused",
            )
    if (error := target.refusal(hooks=(_Nothing(),))) is not None:
        raise Violation(
            f"it refused another hook too: {shown(error)}", remedy="refuse GitIdentity alone"
        )


class _Nothing(SandboxHook):
    """A hook that does nothing."""
