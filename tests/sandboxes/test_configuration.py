from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import sandboxes as agents

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from sandboxes.contract import AccessLevel, AnyBinding, NetworkMode

ALL = agents.Network.all()
ALLOW = agents.Network.allow(hosts=("github.com",))


class MistralSandbox(agents.Sandbox):
    supported_network: ClassVar[frozenset[NetworkMode]] = frozenset({"none", "all"})
    supported_header_bindings: ClassVar[frozenset[type[AnyBinding]]] = frozenset(
        {agents.GitHubBinding, agents.MistralApiBinding, agents.WorkspaceHeaderBindings}
    )

    def open(
        self, request: agents.OpenRequest
    ) -> AbstractAsyncContextManager[agents.RunningSandbox]:
        raise NotImplementedError


class Wide(MistralSandbox):
    supported_network: ClassVar[frozenset[NetworkMode]] = frozenset({"none", "all", "allow"})


def refusal(kind: type[agents.Sandbox], **options: Any) -> str:
    with pytest.raises(agents.RefusedConfiguration) as raised:
        kind(**options)
    message = str(raised.value)
    assert "\n" not in message
    assert isinstance(raised.value, ValueError)
    return message


def test_the_documented_network_refusal_is_exact() -> None:
    assert refusal(MistralSandbox, network=ALLOW) == (
        "MistralSandbox does not support Network.allow(); "
        "pass network=Network.none() or network=Network.all()"
    )


def test_the_documented_binding_refusal_is_exact() -> None:
    bindings = (agents.GitHubBinding(repos=("acme/api",)),)
    MistralSandbox(network=ALL, header_bindings=bindings)
    assert refusal(MistralSandbox, header_bindings=bindings) == (
        "MistralSandbox: agents.GitHubBinding needs network access to github.com, "
        "api.github.com, which Network.none() blocks; pass network=Network.all()"
    )


def test_a_half_reachable_binding_names_the_blocked_half() -> None:
    message = refusal(Wide, network=ALLOW, header_bindings=[agents.GitHubBinding(repos="all")])
    assert "access to api.github.com, which Network.allow() blocks" in message


def test_workspace_bindings_need_a_network_and_the_refusal_says_which_hosts() -> None:
    MistralSandbox(network=ALL, header_bindings=[agents.WorkspaceHeaderBindings()])
    message = refusal(MistralSandbox, header_bindings=[agents.WorkspaceHeaderBindings()])
    assert "access to the hosts of the workspace's rules, which Network.none() blocks" in message


def test_an_unsupported_binding_is_refused_among_supported_ones() -> None:
    bindings = (
        agents.MistralApiBinding(),
        agents.HeaderBinding(host="a.test", header="X", secret_name="S"),
    )
    message = refusal(MistralSandbox, network=ALL, header_bindings=bindings)
    assert message.startswith("MistralSandbox does not support agents.HeaderBinding; pass only")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"network": "all"}, "network"),
        ({"access": "root"}, "access"),
        ({"access": 1}, "access"),
        ({"hooks": [object()]}, "hooks"),
        ({"hooks": "x"}, "hooks"),
        ({"block_private_ips": 1}, "block_private_ips"),
        ({"block_private_ips": None}, "block_private_ips"),
        *(
            ({"instance_id": value}, "instance_id")
            for value in ("", " ", ".", "..", "a/b", "../a", "a\\b", "a\0", "a\n", "a" * 129, 1)
        ),
    ],
)
def test_a_wrong_option_is_refused_by_name(options: dict[str, Any], named: str) -> None:
    assert named in refusal(agents.BashkitSandbox, **options)


def test_an_access_wider_than_the_type_serves_is_refused() -> None:
    class Files(MistralSandbox):
        supported_access: ClassVar[AccessLevel] = "files"

    assert Files().access == "files"
    assert Files(access="none").access == "none"
    assert 'access="full"' in refusal(Files, access="full")


def test_no_sandbox_takes_hooks_only_and_cannot_be_opened() -> None:
    nothing = agents.NoSandbox(hooks=[agents.SandboxHook()])
    assert (nothing.access, nothing.network, nothing.opens) == (
        "none",
        agents.Network.none(),
        False,
    )
    with pytest.raises(TypeError):
        agents.NoSandbox(network=agents.Network.none())  # type: ignore[call-arg]
    with pytest.raises(agents.SandboxError, match="NoSandbox runs nothing"):
        nothing.open(agents.OpenRequest(session_id="s"))


def test_a_configured_sandbox_cannot_be_changed() -> None:
    sandbox = agents.BashkitSandbox()
    for name in ("network", "block_private_ips", "brand_new"):
        with pytest.raises(AttributeError, match="frozen"):
            setattr(sandbox, name, ALL)
    with pytest.raises(AttributeError, match="frozen"):
        del sandbox.network
    assert sandbox.network == agents.Network.none()


def test_a_subclass_may_set_attributes_after_the_base_constructor() -> None:
    class Mine(MistralSandbox):
        def __init__(self) -> None:
            super().__init__()
            self.region = "somewhere"

    assert Mine().region == "somewhere"
    with pytest.raises(AttributeError, match="frozen"):
        Mine().region = "elsewhere"


def test_bashkit_declares_what_its_options_say() -> None:
    assert agents.BashkitSandbox().blocks_private_addresses
    assert not agents.BashkitSandbox(block_private_ips=False).blocks_private_addresses


def test_a_missing_package_is_named_when_the_sandbox_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "bashkit", None)
    with pytest.raises(agents.MissingExtra, match=r"sandbox-conformance\[bashkit\]") as raised:
        agents.BashkitSandbox()
    assert isinstance(raised.value, ImportError)


@pytest.mark.parametrize(
    ("network", "options"),
    [
        (agents.Network.none(), None),
        (ALL, {"allow_all": True, "block_private_ips": True}),
        (
            agents.Network.allow(hosts=("A.test.", "b.test:8443", "2001:DB8::1", "[::1]:444")),
            {
                "allow": [
                    *("https://a.test", "https://b.test:8443"),
                    *("https://[2001:db8::1]", "https://[::1]:444"),
                ],
                "block_private_ips": True,
            },
        ),
    ],
)
def test_the_interpreter_gets_https_origins_only(
    network: agents.Network, options: dict[str, object] | None
) -> None:
    assert agents.BashkitSandbox(network=network)._network_options() == options
