"""Header bindings: credentials that requests get outside of the sandbox."""

from conformance.requirements.requirement import Requirement

BND_01 = Requirement(
    "BND-01",
    "R",
    ("ours",),
    "`HeaderBinding` checks its host, header name, `path_prefix`, prefix and suffix when "
    "it is built.",
)
BND_02 = Requirement(
    "BND-02",
    "M",
    ("000",),
    "The header is prefix, value and suffix in one, and joins every matching HTTPS request.",
)
BND_03 = Requirement(
    "BND-03",
    "M",
    ("000",),
    "The header joins no request to another host, to another path or over plain HTTP, and"
    " none after a redirect elsewhere.",
)
BND_04 = Requirement(
    "BND-04",
    "R",
    ("ours",),
    "Paths match in normal form: dot segments, encodings and doubled slashes move no "
    "request under the prefix.",
)
BND_05 = Requirement(
    "BND-05",
    "R",
    ("ours",),
    "A header of that name that the command sent on a matching request is replaced, never"
    " sent beside the bound one.",
)
BND_06 = Requirement(
    "BND-06",
    "M",
    ("000", "002"),
    "The value is nowhere in the sandbox: not in its environment, files, process list or "
    "output of commands.",
)
BND_07 = Requirement(
    "BND-07",
    "M",
    ("000",),
    "`secret_name` picks one of the secrets that the agent declares.",
)
BND_08 = Requirement(
    "BND-08",
    "R",
    ("ours",),
    "A missing secret raises before the sandbox is created and names the secret, never a "
    "value; values with line breaks or NUL and bindings that collide raise too.",
)
BND_09 = Requirement(
    "BND-09",
    "M",
    ("000", "001"),
    '`GitHubBinding` takes owner/repository names or "all", grants nothing for an empty '
    "tuple, and takes no host but github.com.",
)
BND_10 = Requirement(
    "BND-10",
    "M",
    ("000",),
    "Every request through a `GitHubBinding` is checked against its repositories: fetch "
    "and push, REST, GraphQL, uploads and archives.",
)
BND_11 = Requirement(
    "BND-11",
    "R",
    ("ours",),
    "Letter case, a .git suffix, encoded slashes, dot segments, numeric ids, renames and "
    "redirects do not get round the repository check.",
)
BND_12 = Requirement(
    "BND-12",
    "M",
    ("000", "001"),
    "git and gh are set up so that cloning from https://github.com works while the token "
    "never enters the sandbox.",
)
BND_13 = Requirement(
    "BND-13",
    "M",
    ("000", "001"),
    "A credential is renewed before its `ttl_seconds` elapse.",
)
BND_14 = Requirement(
    "BND-14",
    "M",
    ("000",),
    "`MistralApiBinding` gives the sandbox a MISTRAL_API_KEY that the proxy alone accepts"
    " and the proxy's URL in MISTRAL_API_HTTP_PROXY; requests through it act as the "
    'session\'s user, and `run_as` is "auto".',
)
BND_15 = Requirement(
    "BND-15",
    "M",
    ("000", "001"),
    "`WorkspaceHeaderBindings` applies the rules stored for the workspace, while neither "
    "rules nor secrets are in the sandbox or its configuration.",
)
BND_16 = Requirement(
    "BND-16",
    "M",
    ("001",),
    "The proxy's environment is a protected file that is read before each command and "
    "renewed before it expires.",
)
BND_17 = Requirement(
    "BND-17",
    "R",
    ("ours",),
    "A proxy or bootstrap that fails stops the session with a clear error and deletes the"
    " sandbox, which never runs without its bindings.",
)
BND_18 = Requirement(
    "BND-18",
    "M",
    ("000", "001"),
    "Credentials are those of the user of MISTRAL_API_KEY in process and of the session's"
    " caller under a worker, never the deployer's where hardened; the worker holds no "
    "GitHub credential.",
)
BND_19 = Requirement(
    "BND-19",
    "M",
    ("001",),
    "A session does not start for an identity whose connector lacks one of the requested "
    "repositories.",
)
BND_20 = Requirement(
    "BND-20",
    "M",
    ("001",),
    "In the older spelling `all_accessible_repos` outranks `repo_whitelist`, and "
    "`SecretInjectionProxyConfig` takes no options.",
)
BND_21 = Requirement(
    "BND-21",
    "S",
    ("ours",),
    "An origin that echoes the bound header does not reveal its value to the sandbox.",
)
BND_22 = Requirement(
    "BND-22",
    "S",
    ("ours",),
    "A bound header that the command sends itself does not pass on the other paths of that host.",
)
BND_23 = Requirement(
    "BND-23",
    "R",
    ("ours",),
    "The value shows in no log, exception, `repr` or hook state outside of the sandbox.",
)
BND_24 = Requirement(
    "BND-24",
    "R",
    ("ours",),
    "`ttl_seconds` is a positive number.",
)
