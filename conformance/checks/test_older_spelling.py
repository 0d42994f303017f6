"""BND-20: the older spelling of header bindings, a proxy with integrations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.marks import needs, verifies
from conformance.probes import values
from conformance.probes.choices import networks
from conformance.probes.github import World, as_user, ask, stays_within
from conformance.requirements import BND_20
from conformance.strategies import github_bindings, github_requests
from conformance.strategies.each import each
from conformance.verdicts import NotRun, Violation
from sandboxes.contract import GitHubBinding, WorkspaceHeaderBindings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.lab.client import Lab
    from conformance.probes.inside import Inside
    from conformance.subject.targets import Target

_MAPS = "map a whitelist to repos, or to 'all' where all_accessible_repos is True"


def _proxy(target: Target, fields: Mapping[str, Any] | None, *, injects: bool) -> Any:  # noqa: ANN401 - the subject's own value type
    kind = target.SandboxProxy
    github, injection = kind.integration_types
    integrations: list[object] = []
    if fields is not None:
        integrations.append(values.built(github, **fields))
    if injects:
        integrations.append(values.built(injection))
    return values.built(kind, integrations=tuple(integrations))


@verifies(BND_20)
@needs(option="sandbox_proxy")
@given(fields=github_bindings.older, everything=st.booleans(), injects=st.booleans())
@each("fields", github_bindings.OLDER, everything=True, injects=True)
@each("fields", github_bindings.OLDER, everything=False, injects=False)
def test_the_older_spelling_maps_to_bindings(
    target: Target, fields: dict[str, Any], everything: bool, injects: bool
) -> None:
    """A whitelist becomes `repos`, and `all_accessible_repos` outranks it."""
    fields = {**fields, "all_accessible_repos": everything} if everything else fields
    sandbox = values.built(target.build, sandbox_proxy=_proxy(target, fields, injects=injects))
    found: dict[type[Any], Any] = {type(one): one for one in sandbox.header_bindings}
    kinds = {GitHubBinding, *([WorkspaceHeaderBindings] if injects else [])}
    wanted = ("all" if everything else fields["repo_whitelist"], fields.get("ttl_seconds", 3600))
    if found.keys() != kinds or _said(found[GitHubBinding]) != wanted:
        raise Violation(
            f"GitHubProxyConfig(**{fields!r}){' and secret injection' * injects} came to "
            f"header_bindings={sandbox.header_bindings!r}",
            remedy=_MAPS,
        )


def _said(binding: GitHubBinding) -> tuple[object, int]:
    return binding.repos, binding.ttl_seconds


@verifies(BND_20)
@needs(option="sandbox_proxy")
def test_secret_injection_takes_no_options(target: Target) -> None:
    """`SecretInjectionProxyConfig` is built with nothing, and with nothing else."""
    kind = target.SandboxProxy.integration_types[1]
    values.built(kind)
    for options in ({"ttl_seconds": 60}, {"policy": "x"}, {"host": "github.com"}, {"rules": ()}):
        if values.refusal(kind, **options) is None:
            raise Violation(f"SecretInjectionProxyConfig(**{options!r}) raised nothing",
                            remedy="give it no options: the workspace has the policy")  # fmt: skip
    if values.refusal(kind, "x") is None:
        raise Violation("SecretInjectionProxyConfig('x') raised nothing", remedy="take nothing")


@verifies(BND_20)
@needs(option="sandbox_proxy")
@given(wrong=github_bindings.wrong)
@each("wrong", github_bindings.WRONG)
def test_a_wrong_part_of_the_older_spelling_raises(target: Target, wrong: dict[str, Any]) -> None:
    """Entries that are no owner/repository, and hosts other than github.com, raise."""
    fields = {"repo_whitelist": ("acme/api",), "host": "github.com"}
    github = target.SandboxProxy.integration_types[0]
    values.built(github, **fields)
    repos = wrong.get("repos", fields["repo_whitelist"])
    wrong_fields = {"repo_whitelist": repos, "host": wrong.get("host", "github.com")}
    if values.refusal(github, **wrong_fields) is None:
        raise Violation(
            f"GitHubProxyConfig(**{wrong_fields!r}) raised nothing",
            remedy="look at its parts as at those of GitHubBinding",
        )


@verifies(BND_20)
@needs(option="sandbox_proxy")
def test_both_spellings_at_once_are_refused(target: Target) -> None:
    """`sandbox_proxy` beside `header_bindings`, or of another type, raises; alone it does not."""
    proxy = _proxy(target, {"repo_whitelist": ("acme/api",)}, injects=True)
    binding = target.GitHubBinding(repos=("acme/api",))
    for network in networks(target):
        mode = network["network"].mode if network else ""
        if mode == "none":
            continue
        if (refusal := target.refusal(sandbox_proxy=proxy, **network)) is not None:
            raise Violation(
                f"sandbox_proxy={proxy!r} alone was refused with {refusal!r}",
                remedy="take the older spelling, with a network that it can be used on",
            )
        wide = network or {"network": target.Network.all()}
        if target.refusal(sandbox_proxy=proxy, header_bindings=(binding,), **wide) is None:
            raise Violation(
                "sandbox_proxy and header_bindings were taken together",
                remedy="refuse two spellings at once: one would be ignored",
            )
    for stranger in ((), "github", [proxy], {"integrations": ()}):
        if target.refusal(sandbox_proxy=stranger) is None:
            raise Violation(f"sandbox_proxy={stranger!r} was taken",
                            remedy="take a SandboxProxy, or nothing")  # fmt: skip


@verifies(BND_20)
@needs(option="sandbox_proxy", opens=True)
@pytest.mark.parametrize("everything", [True, False])
def test_the_older_spelling_grants_what_it_says(inside: Inside, lab: Lab, everything: bool) -> None:
    """GitHub sees the credential for listed repositories, or with the switch for all."""
    world, target = World.made(lab), inside.target
    listed, hidden = world.listed.full_name, world.hidden.full_name
    fields = {"repo_whitelist": (listed,), "all_accessible_repos": everything}
    rows = [row for name in (listed, hidden) for row in github_requests.rest(name)]
    with as_user(target, lab, world), inside.opened(
        sandbox_proxy=_proxy(target, fields, injects=True)
    ) as box:  # fmt: skip
        ask(inside, box, world, rows)
    reached = {name for one in world.credentialed() for name in one.meant}
    did = f"with GitHubProxyConfig(**{fields!r}), a command asked for {listed} and {hidden}"
    if listed.lower() not in reached:
        raise NotRun("no request to a listed repository got the credential: see BND-10")
    if everything and hidden.lower() not in reached:
        raise Violation(f"{did}, and the latter got no credential", remedy=_MAPS)
    if not everything:
        stays_within(world, [listed], did=did, remedy=_MAPS)
