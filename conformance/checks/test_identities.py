"""BND-18, BND-19: as whom a session acts, and what that user must reach."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from conformance.marks import alone, needs, verifies
from conformance.probes import searching
from conformance.probes.acting import KEY, acting, options_of, sandbox_proxy, start_error
from conformance.probes.binding import new_secret
from conformance.probes.clouds import told_since, told_so_far
from conformance.probes.leftovers import counting
from conformance.requirements import BND_18, BND_19
from conformance.subject.blame import VERDICTS, blamed, shown
from conformance.verdicts import NotRun, Violation
from sandboxes.contract import GitHubBinding, MistralApiBinding, SandboxStartError

if TYPE_CHECKING:
    import pytest

    from conformance.lab.client import Lab
    from conformance.lab.sandbox_proxy.client import User
    from conformance.probes.inside import Inside
    from conformance.subject.targets import Target

_BINDINGS = (MistralApiBinding(),)
_CALLER = "act as the session's caller, and never as who deployed the agent"


@verifies(BND_18)
@needs(opens=True, binding=MistralApiBinding)
def test_in_process_it_is_the_user_of_the_environment(
    inside: Inside, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session without a caller acts as the user of MISTRAL_API_KEY; one with, as its caller."""
    proxy = sandbox_proxy(lab)
    user, caller = proxy.user(), proxy.user()
    monkeypatch.setenv(KEY, user.credential)
    for identity, wanted, other in ((None, user, caller), (caller.credential, caller, user)):
        before = len(wanted.bootstraps()), len(other.bootstraps())
        error = start_error(inside.target, _BINDINGS, identity)
        now = len(wanted.bootstraps()), len(other.bootstraps())
        if error is not None or now[0] == before[0] or now[1] != before[1]:
            raise Violation(
                f"a session {'with' if identity else 'without'} a caller asked {now[0] - before[0]}"
                f" times as the right user and {now[1] - before[1]} times as the other"
                f"{'; ' + shown(error) if error else ''}",
                remedy="ask as the caller, or without one as the user of MISTRAL_API_KEY",
            )


@verifies(BND_18)
@needs(opens=True, binding=MistralApiBinding)
@alone
def test_without_a_user_nothing_starts(
    inside: Inside, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a caller and without MISTRAL_API_KEY no session starts, and nothing is made."""
    monkeypatch.delenv(KEY, raising=False)
    with counting(inside.target, lab) as left:
        error = start_error(inside.target, _BINDINGS, None)
    if not isinstance(error, SandboxStartError) or KEY not in str(error):
        raise Violation(
            f"without {KEY} and a caller, open() raised {shown(error) if error else 'nothing'}",
            remedy=f"raise SandboxStartError that names {KEY}",
        )
    left.judge("after a session that had nobody to act for,")


def _deployed(target: Target, identity: str | None, *, hardened: bool) -> Exception | None:
    """What starting and closing a deployed session raises, or None."""
    from sandboxes.session import Session
    from sandboxes.session_options import SessionOptions

    sandbox = target.build(**options_of(target, _BINDINGS))
    request = target.request(identity=identity)
    options = SessionOptions(deployed=True, hardened=hardened)

    async def live() -> None:
        session = await Session.start(sandbox, request, options)
        await session.close()

    try:
        target.run(live, "a deployed session")
    except VERDICTS:
        raise
    except Exception as error:
        if blamed(error) is None:
            raise
        return error
    return None


@verifies(BND_18)
@needs(opens=True, binding=MistralApiBinding)
def test_a_deployed_session_acts_as_its_caller(
    inside: Inside, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hardened, it is the caller, and without one nobody; otherwise it may be the deployer."""
    proxy = sandbox_proxy(lab)
    deployer, caller = proxy.user(), proxy.user()
    monkeypatch.setenv(KEY, deployer.credential)
    error = _deployed(inside.target, caller.credential, hardened=True)
    if error is not None or not caller.bootstraps():
        raise Violation(
            f"a deployed session asked {len(caller.bootstraps())} times as its caller"
            f"{'; ' + shown(error) if error else ''}",
            remedy=_CALLER,
        )
    error = _deployed(inside.target, None, hardened=True)
    if not isinstance(error, SandboxStartError) or deployer.bootstraps():
        raise Violation(
            f"a hardened session without a caller raised {shown(error) if error else 'nothing'}, "
            f"and asked {len(deployer.bootstraps())} times as who deployed it",
            remedy=_CALLER,
        )
    error = _deployed(inside.target, None, hardened=False)
    if error is not None or not deployer.bootstraps():
        raise Violation(
            f"a session that is not hardened asked {len(deployer.bootstraps())} times as who "
            f"deployed it{'; ' + shown(error) if error else ''}",
            remedy="fall back on MISTRAL_API_KEY where hardened is False",
        )


@verifies(BND_18)
@needs(opens=True, cloud=True, binding=GitHubBinding)
def test_no_github_token_of_the_worker_is_used(
    inside: Inside, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token in the environment of the worker is neither sent anywhere nor put inside."""
    user, token = sandbox_proxy(lab).user(repositories=None), new_secret()
    before = told_so_far(inside.target, lab)
    for name in ("GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN"):
        monkeypatch.setenv(name, token)
    with acting(inside, user, [GitHubBinding(repos=())]) as box:
        found = searching.places(box, lab, token)
    sent = json.dumps(user.bootstraps()) + told_since(inside.target, lab, before)
    if found or token in sent:
        raise Violation(
            f"a GitHub token of the worker was {'found inside' if found else 'sent away'}",
            remedy="read no GitHub token; the user's connector has one",
        )


def _starts(inside: Inside, user: User, *repos: str) -> Exception | None:
    return start_error(inside.target, [GitHubBinding(repos=repos)], user.credential)


@verifies(BND_19)
@needs(opens=True, cloud=True, binding=GitHubBinding)
@alone
def test_a_repository_out_of_reach_stops_the_start(inside: Inside, lab: Lab) -> None:
    """A session does not start where one requested repository is none of the connector's."""
    user = sandbox_proxy(lab).user(repositories=("acme/site", "acme/docs"))
    with counting(inside.target, lab) as left:
        errors = [
            _starts(inside, user, "acme/secret"),
            _starts(inside, user, "acme/site", "acme/secret"),
        ]
    for error in errors:
        if not isinstance(error, SandboxStartError) or "acme/secret" not in str(error):
            raise Violation(
                "a session asked for acme/secret, which the user's connector does not reach, and "
                f"open() raised {shown(error) if error else 'nothing'}",
                remedy="raise SandboxStartError that names the repository",
            )
    left.judge("after a session that asked for a repository out of reach,")
    for repos in ((), ("acme/site",), ("ACME/Docs", "acme/site")):
        error = _starts(inside, user, *repos)
        if error is not None:
            raise Violation(
                f"a session asked for {repos}, which the user's connector reaches, and open() "
                f"raised {shown(error)}",
                remedy="start where every requested repository is reached",
            )
    user.connect(())
    if _starts(inside, user, "acme/site") is None:
        raise NotRun("the lab's connector reaches what it was told not to")
