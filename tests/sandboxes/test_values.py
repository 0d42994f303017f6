"""Egress policies and header bindings."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandboxes import (
    EgressPolicy,
    GitHubBinding,
    GitHubProxyConfig,
    HeaderBinding,
    MistralApiBinding,
    RefusedConfiguration,
    SandboxProxy,
    SecretInjectionProxyConfig,
    WorkspaceHeaderBindings,
)


@pytest.mark.parametrize(
    "entries",
    [
        *[(), "10.0.0.0/8", ("a.test",), ("https://a.test",), (1,), (" 10.0.0.0/8",)],
        *[("0.0.0.0/0",), ("::/0",), ("0.0.0.0/0.0.0.0",), ("10.1.2.3/0",), ("fe80::1%lo",)],
        *[("0.0.0.0/1", "128.0.0.0/1"), ("::/1", "8000::/1"), ("::ffff:0.0.0.0/96",)],
        *[("::ffff:0.0.0.0/97", "128.0.0.0/1"), ("0.0.0.0",), ("::",)],
    ],
)
def test_a_custom_policy_refuses_what_is_no_range_or_everything(entries: Any) -> None:
    with pytest.raises(RefusedConfiguration, match="EgressPolicy"):
        EgressPolicy.custom(allow_cidrs=entries)


def test_host_bits_raise_and_name_the_range_meant() -> None:
    with pytest.raises(RefusedConfiguration, match=r"10\.0\.0\.0/8"):
        EgressPolicy.custom(allow_cidrs=("10.1.2.3/8",))


@given(st.ip_addresses(v=4).filter(int), st.integers(1, 32))
def test_each_true_range_is_kept_as_it_is_meant(
    address: ipaddress.IPv4Address, length: int
) -> None:
    network = ipaddress.ip_network((int(address), length), strict=False)
    if network.network_address.is_unspecified:
        return
    assert EgressPolicy.custom(allow_cidrs=(str(network),)).ranges == (network,)


def test_the_halves_of_different_families_are_not_everything() -> None:
    assert EgressPolicy.custom(allow_cidrs=("128.0.0.0/1", "8000::/1")).mode == "custom"


@pytest.mark.parametrize(
    "changed",
    [
        *[{"host": "https://a.test"}, {"header": "X Y"}, {"header": ""}, {"header": "X:"}],
        *[{"path_prefix": "v1"}, {"path_prefix": ""}, {"prefix": "a\r\nb"}, {"suffix": "\0"}],
        {"secret_name": ""},
    ],
)
def test_a_header_binding_names_what_is_wrong(changed: dict[str, str]) -> None:
    right = {"host": "a.test", "header": "X-Key", "secret_name": "KEY"}
    HeaderBinding(**right)
    with pytest.raises(ValueError, match="HeaderBinding") as raised:
        HeaderBinding(**(right | changed))
    fact = str(raised.value)
    assert next(iter(changed)) in fact or changed.get("host", "\n") in fact


@pytest.mark.parametrize(
    "options",
    [
        *[{"repos": "acme/api"}, {"repos": ("acme",)}, {"repos": ("a/b/c",)}],
        *[{"repos": "all", "host": "ghe.test"}, {"repos": "all", "ttl_seconds": 0}],
    ],
)
def test_a_github_binding_takes_repositories_of_github_only(options: dict[str, Any]) -> None:
    with pytest.raises(RefusedConfiguration):
        GitHubBinding(**options)


def test_the_older_spelling_comes_to_bindings() -> None:
    listed = GitHubProxyConfig(repo_whitelist=["acme/api"], ttl_seconds=60)  # type: ignore[arg-type]
    proxy = SandboxProxy(integrations=(listed, SecretInjectionProxyConfig()))
    assert proxy.header_bindings == (
        GitHubBinding(repos=("acme/api",), ttl_seconds=60),
        WorkspaceHeaderBindings(),
    )
    assert GitHubProxyConfig().binding == GitHubBinding(repos=())
    everything = GitHubProxyConfig(repo_whitelist=("acme/api",), all_accessible_repos=True)
    assert everything.binding == GitHubBinding(repos="all")


@pytest.mark.parametrize(
    "options",
    [
        *[{"repo_whitelist": "acme/api"}, {"repo_whitelist": ("acme",)}, {"host": "ghe.test"}],
        *[{"ttl_seconds": 0}, {"all_accessible_repos": 1}],
        {"repo_whitelist": ("acme",), "all_accessible_repos": True},
    ],
)
def test_the_older_spelling_takes_no_more_than_the_binding(options: dict[str, Any]) -> None:
    with pytest.raises(RefusedConfiguration):
        GitHubProxyConfig(**options)


def test_bindings_know_the_hosts_that_they_need() -> None:
    assert GitHubBinding(repos=()).hosts == ("github.com", "api.github.com")
    assert MistralApiBinding().hosts == ("api.mistral.ai",)
