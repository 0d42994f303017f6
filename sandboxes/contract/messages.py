"""Every refusal, in one voice: subject, fact, remedy, one line.

The two sentences that the public documents quote for `MistralSandbox` under
"Common issues" are the pattern for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

NETWORK_SPELLINGS = {
    "none": "Network.none()",
    "all": "Network.all()",
    "allow": "Network.allow()",
}
"""How a user writes each network mode."""


def _either(choices: Iterable[str]) -> str:
    return " or ".join(choices)


def unsupported_network(sandbox: str, mode: str, supported: frozenset[str]) -> str:
    """Say that a sandbox cannot enforce a network mode, and which ones it can."""
    remedy = _either(
        f"network={text}" for name, text in NETWORK_SPELLINGS.items() if name in supported
    )
    return f"{sandbox} does not support {NETWORK_SPELLINGS[mode]}; pass {remedy}"


def unsupported_binding(sandbox: str, binding: str, supported: Iterable[str]) -> str:
    """Say that a sandbox cannot enforce a header binding, and which ones it can."""
    names = [f"agents.{name}" for name in sorted(supported)]
    remedy = f"pass only {_either(names)}" if names else "leave header_bindings out"
    return f"{sandbox} does not support agents.{binding}; {remedy}"


def unsupported_access(sandbox: str, access: str, widest: str) -> str:
    """Say that an access level is wider than the sandbox serves."""
    return f'{sandbox} does not support access="{access}"; pass access="{widest}" or leave it out'


def unreachable_binding(sandbox: str, binding: str, hosts: Iterable[str], mode: str) -> str:
    """Say that the network does not reach the hosts that a binding needs."""
    remedy = "Network.all()" if mode == "none" else "Network.all() or list these hosts"
    return (
        f"{sandbox}: agents.{binding} needs network access to {', '.join(hosts)}, "
        f"which {NETWORK_SPELLINGS[mode]} blocks; pass network={remedy}"
    )


def wrong_option(sandbox: str, option: str, got: object, remedy: str) -> str:
    """Say that an option's value is unusable.

    The value's type is named and not the value, which could be a secret put in
    the wrong place.
    """
    return f"{sandbox}: {option} is of type {type(got).__name__}; {remedy}"


def frozen(sandbox: str, name: str) -> str:
    """Say that a configured sandbox cannot be changed."""
    return (
        f"{sandbox} is a frozen configuration and {name} cannot be changed; "
        "build another one with the options that you want"
    )


def invalid_entry(entry: str, fact: str, remedy: str) -> str:
    """Say why a text is no allow-list entry."""
    return f"{entry!r} is no host[:port] entry: it {fact}; {remedy}"


def closed(subject: str, action: str) -> str:
    """Say that something was asked of a closed sandbox or session."""
    return f"{subject} is closed and cannot {action}; start another session"


def missing_extra(sandbox: str, package: str, extra: str) -> str:
    """Say which extra brings the package that a sandbox needs."""
    return (
        f"{sandbox} needs the package {package}, which is not installed; "
        f"pip install 'sandbox-conformance[{extra}]'"
    )


def unsupported_hook(sandbox: str, hook: str, reason: str, remedy: str) -> str:
    """Say why a hook has no place in a sandbox."""
    return f"{sandbox} does not support the hook {hook}: {reason}; {remedy}"


def local_host_not_allowed(sandbox: str, variable: str) -> str:
    """Say that running commands without isolation was not allowed."""
    return (
        f"{sandbox} would run commands on this machine, as your user and with no isolation; "
        f"set {variable}=1 to allow it, or use a sandbox with isolation"
    )


def local_host(sandbox: str) -> str:
    """Warn that commands run without isolation."""
    return (
        f"{sandbox} runs commands on this machine, as your user and with NO ISOLATION: they can "
        "read, change and delete all that you can; use it for development only, and "
        "BashkitSandbox() or a container otherwise"
    )


def of_a_part(subject: str, refusal: str) -> str:
    """Say whose part it is that was refused."""
    return f"{subject}: {refusal}"


def unusable_option(sandbox: str, option: str, fact: str, remedy: str) -> str:
    """Say why an option's value is unusable though its type is right."""
    return f"{sandbox}: {option} {fact}; {remedy}"


def opens_nothing(sandbox: str) -> str:
    """Say that there is no sandbox to open."""
    return (
        f"{sandbox} runs nothing and cannot be opened; "
        "pass an executable sandbox, such as BashkitSandbox()"
    )


def no_tuple(option: str, got: object, example: str) -> str:
    """Say that an option which takes several values got something else."""
    return f"{option} is of type {type(got).__name__}; pass a tuple, such as {example}"


def entry_of_type(entry: object) -> str:
    """Say that an allow-list entry is no text."""
    return (
        f"an allow-list entry is of type {type(entry).__name__}; "
        "write it as text, such as 'packages.example.org:8443'"
    )


def unknown_network_mode(mode: object) -> str:
    """Say that there is no such network mode."""
    return f"Network: mode {mode!r} does not exist; pass 'none', 'all' or 'allow'"


def no_hosts() -> str:
    """Say that an allow list is empty."""
    return "Network.allow() without hosts opens nothing; pass network=Network.none()"


def hosts_out_of_place(mode: str) -> str:
    """Say that hosts go with an allow list only."""
    return f"{NETWORK_SPELLINGS[mode]} takes no hosts; pass Network.allow(hosts=...)"


def unknown_egress_mode(mode: object) -> str:
    """Say that there is no such mode of an egress policy."""
    return f"EgressPolicy: mode {mode!r} does not exist; pass 'block_all', 'allow_all' or 'custom'"


def ranges_out_of_place(mode: str) -> str:
    """Say that ranges go with a custom policy only."""
    return (
        f"EgressPolicy: mode {mode!r} takes no allow_cidrs; "
        "pass EgressPolicy.custom(allow_cidrs=...)"
    )


def _custom(fact: str, remedy: str) -> str:
    return f"EgressPolicy.custom(): {fact}; {remedy}"


def no_ranges() -> str:
    """Say that a custom policy is empty."""
    return _custom("allow_cidrs is empty", "list at least one address or range")


def range_of_type(entry: object) -> str:
    """Say that an entry of a custom policy is no text."""
    return _custom(f"an entry is of type {type(entry).__name__}", "write addresses as text")


def no_range(entry: str) -> str:
    """Say that a text is no address and no range."""
    return _custom(f"{entry!r} is no IP address or CIDR range", "resolve names to addresses first")


def no_bare_range(entry: str) -> str:
    """Say that an address has something around it."""
    return _custom(f"{entry!r} has a zone or white space", "write the bare address")


def every_address(entry: str) -> str:
    """Say that a range is a whole family."""
    return _custom(f"{entry!r} is every address", "pass network=Network.all() instead")


def every_address_together() -> str:
    """Say that ranges are a whole family together."""
    return _custom("the ranges together are every address", "pass network=Network.all() instead")


def host_bits(entry: str, network: str) -> str:
    """Say which range was meant."""
    return _custom(f"{entry!r} has host bits set", f"write {network!r}")


def unspecified_address(entry: str) -> str:
    """Say that the address of no host is listed."""
    return _custom(f"{entry!r} is the unspecified address", "list the address you mean")


def wrong_lifetime(binding: str) -> str:
    """Say that a credential's lifetime is unusable."""
    return f"{binding}: ttl_seconds is no positive whole number; pass seconds, as 3600"


def wrong_header_name() -> str:
    """Say that a header has no name that could be sent."""
    return "HeaderBinding: header is no header name; pass a token, such as 'X-Api-Key'"


def empty_secret_name() -> str:
    """Say that no secret is named."""
    return "HeaderBinding: secret_name is empty; name one of Agent(secrets=...)"


def wrong_path_prefix() -> str:
    """Say that a path prefix is none."""
    return "HeaderBinding: path_prefix does not begin with '/'; pass such as '/v1/'"


def several_lines(option: str) -> str:
    """Say that a text would break out of its line of the request."""
    return f"HeaderBinding: {option} is no single line of text; leave CR, LF, NUL out"


def wrong_repository(repo: object) -> str:
    """Say that an entry names no repository."""
    return f"GitHubBinding: {repo!r} is no repository; write 'owner/repository'"


def unsupported_github_host(host: object) -> str:
    """Say that there is one GitHub only."""
    return f"GitHubBinding: host {host!r} is not supported; leave host out"


def unreachable_authorizer(authorizer: str, host: str, mode: str) -> str:
    """Say that the network does not reach a host that an authorizer is of no use without."""
    return (
        f"EgressProxy: {authorizer} needs network access to {host}, "
        f"which {NETWORK_SPELLINGS[mode]} blocks; list it, or pass Network.all()"
    )


def authorizers_in_conflict(host: str) -> str:
    """Say that two would judge the same requests."""
    return f"EgressProxy: two authorizers claim {host}; leave one of them out"


def header_of_an_authorizer(authorizer: str, host: str) -> str:
    """Say that a header binding is for what an authorizer adds itself."""
    return (
        f"EgressProxy: a header binding claims what {authorizer} adds to {host}; "
        "leave one of them out"
    )


def no_switch(option: str) -> str:
    """Say that an option is neither on nor off."""
    return f"{option} is neither True nor False; pass one of them"


def wrong_integration(integration: object) -> str:
    """Say that a proxy has no such integration."""
    return (
        f"SandboxProxy: an entry of integrations is of type {type(integration).__name__}; "
        "pass GitHubProxyConfig(...) or SecretInjectionProxyConfig()"
    )


def integration_twice(kind: str) -> str:
    """Say that a proxy has two integrations of a kind."""
    return f"SandboxProxy: integrations holds two of {kind}; leave one out"


def unknown_run_as(run_as: object) -> str:
    """Say that there is one identity only."""
    return f"MistralApiBinding: run_as {run_as!r} does not exist; leave run_as out"


_OWN_PAIR = "write to_unified_state and from_unified_state"


def nameless_arguments(hook: str, name: str) -> str:
    """Say that a hook's arguments cannot be recorded by name."""
    return f"{hook}: *{name} cannot be rebuilt by name; take keyword arguments, or {_OWN_PAIR}"


def no_json(hook: str, name: str, got: object) -> str:
    """Say that an argument of a hook cannot be recorded."""
    return (
        f"{hook}: argument {name} is of type {type(got).__name__} and no JSON value; "
        "pass null, booleans, numbers, text, lists and objects with text keys, "
        f"or {_OWN_PAIR}"
    )


def wrong_git_identity(option: str) -> str:
    """Say that git could not use a name or an address."""
    return f"GitIdentity: {option} is no text, empty or has a NUL; pass such as 'Acme Bot'"


def no_json_state(hook: str, reason: str) -> str:
    """Say that a hook's own state cannot be recorded."""
    return (
        f"hook {hook}: to_unified_state() gives no JSON value ({reason}); "
        "return what can be written as JSON"
    )


def unknown_runtime() -> str:
    """Say that there is no such way to run an agent."""
    return 'Agent: runtime is none that there is; pass "in_process" or "deployed"'


def no_caller(sandbox: str, bindings: Iterable[str]) -> str:
    """Say that a deployed session has nobody to act for."""
    kinds = ", ".join(f"agents.{binding}" for binding in bindings)
    return (
        f"{sandbox}: {kinds} acts as the session's caller, and this deployed session has none; "
        "start it with identity=, or pass hardened=False to act as who deployed the agent"
    )


def unusable_identity() -> str:
    """Say that a credential is none that could be sent."""
    return (
        "the identity of a session is no single word of text; "
        "pass the caller's credential as it was issued"
    )


def wrong_tool_pattern() -> str:
    """Say that an entry disables no tool."""
    return (
        "Agent: an entry of disabled_tools is no text, or empty; "
        'pass names or patterns, such as "process.*"'
    )


def nameless_tool(tool: str) -> str:
    """Say that a model could not call a tool."""
    return (
        f"Agent: an entry of tools has no name ({tool}); pass functions that were defined with def"
    )


def tools_of_one_name(name: str) -> str:
    """Say that a model could not tell two tools apart."""
    return f"Agent: two entries of tools are called {name!r}; give each a name of its own"


def tool_of_the_sandbox(name: str, sandbox: str) -> str:
    """Say that a tool has the name of one that the sandbox brings."""
    return (
        f"Agent: an entry of tools is called {name!r}, as a tool of {sandbox}; give it another name"
    )


def wrong_session_limit(limit: str) -> str:
    """Say that a session cannot be limited so."""
    return f"Limits: {limit} is no positive number; pass one, or None for no limit"


def binding_without_proxy(binding: str) -> str:
    """Say that a proxy cannot add what a binding asks for."""
    return f"EgressProxy does not support agents.{binding}; pass only agents.HeaderBinding"


def ambiguous_path_prefix() -> str:
    """Say that servers would not agree on what lies under a prefix."""
    return (
        "HeaderBinding: path_prefix is no plain path; "
        "leave encodings, queries, empty segments and dot segments out"
    )


def header_of_the_connection(header: str) -> str:
    """Say that a header belongs to the proxy itself."""
    return f"HeaderBinding: header {header!r} steers the connection; bind another header"


def bindings_in_conflict(host: str, header: str, path_prefix: str) -> str:
    """Say that two bindings claim the same place."""
    return (
        f"HeaderBinding: two bindings add the header {header!r} to {host} under {path_prefix!r}; "
        "leave one of them out"
    )
