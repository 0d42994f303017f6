"""Every refusal, as a user meets it: who refuses, what was refused, what to pass instead."""

from __future__ import annotations

import ast
import re
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import sandboxes as agents
from sandboxes.contract import BINDING_TYPES, InvalidHostEntry
from sandboxes.egress import EgressProxy
from sandboxes.egress.github import GitHubAuthorizer
from sandboxes.experimental import CustomSandbox
from sandboxes.pattern.sandbox_hook import GitIdentity

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from sandboxes.contract import AccessLevel, AnyBinding, NetworkMode

PACKAGE = Path(agents.__file__).parent
REFUSALS = ("RefusedConfiguration", "InvalidHostEntry", "MissingExtra")
ALLOW = agents.Network.allow(hosts=("a.test",))
GITHUB = agents.GitHubBinding(repos="all")
HEADER = agents.HeaderBinding(host="a.test", header="X", secret_name="S")


class Mine(CustomSandbox):
    supported_access: ClassVar[AccessLevel] = "files"
    supported_network: ClassVar[frozenset[NetworkMode]] = frozenset({"none", "allow"})
    supported_header_bindings: ClassVar[frozenset[type[AnyBinding]]] = frozenset(
        {*BINDING_TYPES} - {agents.GitHubBinding}
    )

    def open(
        self, request: agents.OpenRequest
    ) -> AbstractAsyncContextManager[agents.RunningSandbox]:
        raise NotImplementedError


class Positional(agents.SandboxHook):
    def __init__(self, *names: Any) -> None:
        pass


class Keeps(agents.SandboxHook):
    def __init__(self, *, value: Any) -> None:
        pass


def binding(**changed: Any) -> Any:
    return agents.HeaderBinding(**{"host": "a.test", "header": "X", "secret_name": "S"} | changed)


def allowed(*entries: Any) -> Any:
    return agents.Network.allow(hosts=entries)


def egress(*ranges: Any) -> Any:
    return agents.EgressPolicy.custom(allow_cidrs=ranges)


def bound(*bindings: Any) -> Any:
    with socket.socket() as listener:
        return EgressProxy(
            agents.Network.all(), listen=listener, bindings=bindings, secrets={"S": "value"}
        )


def judged_twice(network: agents.Network, header: str = "X") -> Any:
    async def token() -> str:
        return "value"

    mine = GitHubAuthorizer("all", token)
    with socket.socket() as listener:
        EgressProxy(
            network,
            listen=listener,
            bindings=[binding(host="github.com", header=header)],
            authorizers=[mine] if header != "X" else [mine, mine],
            secrets={"S": "value"},
        )


def asked(**options: Any) -> Any:
    return agents.Agent(**options)


def tool() -> None:
    """Does nothing."""


# What refuses, who it says it is, what it says was refused, what it says to pass instead.
CASES: list[tuple[Callable[[], Any], str, str, str]] = [
    (lambda: Mine(network=agents.Network.all()), "Mine", "Network.all()", "network=Network.none()"),
    (lambda: Mine(network="none"), "Mine", "network", "pass Network.none()"),  # type: ignore[arg-type]
    (lambda: Mine(access="full"), "Mine", 'access="full"', 'access="files"'),
    (lambda: Mine(access="all"), "Mine", "access", '"none", "files" or "full"'),  # type: ignore[arg-type]
    (lambda: Mine(hooks=("x",)), "Mine", "hooks", "agents.SandboxHook"),  # type: ignore[arg-type]
    (lambda: Mine(hooks="x"), "Mine", "hooks", "pass a tuple"),  # type: ignore[arg-type]
    (lambda: Mine(header_bindings=[GITHUB]), "Mine", "GitHubBinding", "pass only agents.Header"),
    (lambda: Mine(header_bindings=["x"]), "Mine", "header_bindings", "a header binding"),  # type: ignore[list-item]
    (lambda: Mine(header_bindings=[HEADER]), "Mine", "a.test", "pass network=Network.all()"),
    (
        lambda: Mine(header_bindings=[agents.MistralApiBinding()], network=ALLOW),
        *("Mine", "api.mistral.ai", "list these hosts"),
    ),
    (
        lambda: agents.BashkitSandbox(instance_id="a/b"),
        *("BashkitSandbox", "instance_id", "pass a short name"),
    ),
    (
        lambda: agents.BashkitSandbox(block_private_ips=1),  # type: ignore[arg-type]
        *("BashkitSandbox", "block_private_ips", "pass True or False"),
    ),
    (lambda: agents.Network(mode="some"), "Network", "'some'", "pass 'none', 'all'"),  # type: ignore[arg-type]
    (lambda: agents.Network(mode="allow"), "Network.allow()", "without hosts", "Network.none()"),
    (
        lambda: agents.Network(mode="all", hosts=("a.test",)),
        *("Network.all()", "hosts", "pass Network.allow(hosts=...)"),
    ),
    (lambda: agents.Network.allow(hosts="a.test"), "Network", "hosts", "pass a tuple"),
    (lambda: allowed(1), "an allow-list entry", "type int", "write it as text"),
    *(
        (lambda entry=entry: allowed(entry), repr(entry), "is no host", "; ")
        for entry in ("https://a.test", "a.test/b", "*.test", "a b", "", "a.test:0", "127.1", "ü!")
    ),
    (lambda: agents.EgressPolicy(mode="some"), "EgressPolicy", "'some'", "pass 'block_all'"),  # type: ignore[arg-type]
    (
        lambda: agents.EgressPolicy(allow_cidrs=("203.0.113.1",)),
        *("EgressPolicy", "takes no allow_cidrs", "EgressPolicy.custom(allow_cidrs=...)"),
    ),
    (egress, "EgressPolicy.custom()", "allow_cidrs is empty", "at least one"),
    (lambda: egress(1), "EgressPolicy.custom()", "type int", "as text"),
    (lambda: egress("a.test"), "EgressPolicy.custom()", "'a.test'", "resolve names"),
    (lambda: egress("fe80::1%1"), "EgressPolicy.custom()", "'fe80::1%1'", "the bare address"),
    (lambda: egress("::/0"), "EgressPolicy.custom()", "'::/0'", "network=Network.all()"),
    (
        lambda: egress("0.0.0.0/1", "128.0.0.0/1"),
        *("EgressPolicy.custom()", "together", "network=Network.all()"),
    ),
    (lambda: egress("10.0.0.1/8"), "EgressPolicy.custom()", "'10.0.0.1/8'", "write '10.0.0.0/8'"),
    (lambda: egress("0.0.0.0"), "EgressPolicy.custom()", "'0.0.0.0'", "the address you mean"),
    (lambda: binding(host="https://a.test"), "HeaderBinding", "has a scheme", "only the host"),
    (lambda: binding(header="a b"), "HeaderBinding", "header", "pass a token"),
    (lambda: binding(secret_name=""), "HeaderBinding", "secret_name", "Agent(secrets=...)"),
    (lambda: binding(path_prefix="v1"), "HeaderBinding", "path_prefix", "pass such as '/v1/'"),
    (lambda: binding(prefix="a\r\nb"), "HeaderBinding", "prefix", "leave CR, LF, NUL out"),
    (lambda: bound(GITHUB), "EgressProxy", "GitHubBinding", "pass only agents.HeaderBinding"),
    (
        lambda: bound(binding(path_prefix="/a/../b")),
        *("HeaderBinding", "path_prefix", "leave encodings"),
    ),
    (
        lambda: bound(binding(header="Host")),
        *("HeaderBinding", "header 'Host'", "bind another header"),
    ),
    (lambda: bound(HEADER, HEADER), "HeaderBinding", "'X' to a.test", "leave one of them out"),
    (
        lambda: agents.GitHubBinding(repos=("acme",)),
        *("GitHubBinding", "'acme'", "write 'owner/repository'"),
    ),
    (
        lambda: agents.GitHubBinding(repos="all", host="git.test"),
        *("GitHubBinding", "host 'git.test'", "leave host out"),
    ),
    (
        lambda: agents.GitHubBinding(repos="all", ttl_seconds=0),
        *("GitHubBinding", "ttl_seconds", "pass seconds"),
    ),
    (
        lambda: agents.GitHubProxyConfig(repo_whitelist=("acme",)),
        *("GitHubBinding", "'acme'", "write 'owner/repository'"),
    ),
    (
        lambda: agents.GitHubProxyConfig(all_accessible_repos="yes"),  # type: ignore[arg-type]
        *("GitHubProxyConfig", "all_accessible_repos", "pass one of them"),
    ),
    (
        lambda: agents.SandboxProxy(integrations=(GITHUB,)),  # type: ignore[arg-type]
        *("SandboxProxy", "of type GitHubBinding", "pass GitHubProxyConfig(...)"),
    ),
    (
        lambda: agents.SandboxProxy(integrations=(agents.SecretInjectionProxyConfig(),) * 2),
        *("SandboxProxy", "two of SecretInjectionProxyConfig", "leave one out"),
    ),
    (
        lambda: judged_twice(agents.Network.all()),
        *("EgressProxy", "two authorizers", "leave one of them out"),
    ),
    (
        lambda: judged_twice(agents.Network.allow(hosts=("github.com",))),
        *("EgressProxy", "needs network access to api.github.com", "list it"),
    ),
    (
        lambda: judged_twice(agents.Network.all(), "Authorization"),
        *("EgressProxy", "claims what GitHubAuthorizer adds", "leave one of them out"),
    ),
    (
        lambda: agents.MistralApiBinding(run_as="me"),  # type: ignore[arg-type]
        *("MistralApiBinding", "run_as 'me'", "leave run_as out"),
    ),
    (lambda: Positional(1), "Positional", "*names", "take keyword arguments"),
    (lambda: Keeps(value={1}), "Keeps", "argument value", "pass null"),
    (lambda: GitIdentity(name="", email="a@b"), "GitIdentity", "name", "pass such as"),
    (lambda: asked(environment="bashkit"), "Agent", "environment", "BashkitSandbox()"),
    (lambda: asked(limits=3), "Agent", "limits", "pass agents.Limits(...)"),
    (lambda: asked(runtime="cloud"), "Agent", "runtime", '"in_process" or "deployed"'),
    (lambda: asked(disabled_tools=("",)), "Agent", "disabled_tools", "pass names or patterns"),
    (lambda: asked(tools=(1,)), "Agent", "an entry of tools", "pass functions"),
    (lambda: asked(tools=(lambda: None,)), "Agent", "an entry of tools", "defined with def"),
    (lambda: asked(tools=(tool, tool)), "Agent", "'tool'", "a name of its own"),
    (lambda: agents.Limits(max_turns=0), "Limits", "max_turns", "None for no limit"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(case[1:3]))
def test_a_refusal_says_who_what_and_what_instead(
    case: tuple[Callable[[], Any], str, str, str],
) -> None:
    build, who, what, instead = case
    with pytest.raises((agents.RefusedConfiguration, InvalidHostEntry)) as raised:
        build()

    message = str(raised.value)
    assert message.startswith(who)
    assert what in message
    assert instead in message
    fact, separator, remedy = message.partition("; ")
    assert separator
    assert fact
    assert remedy
    assert message.splitlines() == [message]
    assert not message.endswith(".")
    assert len(message) < 250
    assert_no_machine_detail(message)


def assert_no_machine_detail(message: str) -> None:
    for detail in (str(Path.cwd()), str(Path.home()), socket.gethostname(), sys.prefix):
        assert detail not in message
    assert not re.search(r"0x[0-9a-f]{6,}|\bobject at\b|\.py\b", message)


def test_a_missing_package_is_told_in_the_same_voice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bashkit", None)
    with pytest.raises(agents.MissingExtra) as raised:
        agents.BashkitSandbox()
    message = str(raised.value)
    assert message.startswith("BashkitSandbox needs the package bashkit")
    assert message.endswith("; pip install 'sandbox-conformance[bashkit]'")
    assert_no_machine_detail(message)


def test_a_value_that_could_be_a_secret_is_not_repeated() -> None:
    for option in ("network", "access", "hooks", "header_bindings"):
        options: dict[str, Any] = {option: "hunter2"}
        with pytest.raises(agents.RefusedConfiguration) as raised:
            Mine(**options)
        assert "hunter2" not in str(raised.value)


def raises(module: Path) -> list[ast.Raise]:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and getattr(node.exc.func, "id", "") in REFUSALS
    ]


def test_all_refusals_are_worded_in_one_module() -> None:
    modules = sorted(PACKAGE.rglob("*.py"))
    found = [(module, node) for module in modules for node in raises(module)]
    assert len(found) > 30

    elsewhere = []
    for module, node in found:
        assert isinstance(node.exc, ast.Call)
        words = node.exc.args[0]
        made = isinstance(words, ast.Call) and ast.unparse(words.func).startswith("messages.")
        if not made:
            elsewhere.append(f"{module.relative_to(PACKAGE)}:{node.lineno}")
    assert elsewhere == []
