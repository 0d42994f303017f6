"""Construction: what a sandbox accepts, and what its constructor refuses."""

from conformance.requirements.requirement import Requirement

CFG_01 = Requirement(
    "CFG-01",
    "M",
    ("000", "002"),
    "A sandbox built without `network`, or with `None`, has `Network.none()`; "
    "`DangerousLocalSandbox` always has `Network.all()`.",
)
CFG_02 = Requirement(
    "CFG-02",
    "M",
    ("000", "002"),
    "The constructor refuses every network mode that the type does not list in "
    "`supported_network`, whatever hosts go with it.",
)
CFG_03 = Requirement(
    "CFG-03",
    "M",
    ("000", "002"),
    "The constructor refuses every header binding whose type is not in "
    "`supported_header_bindings`, alone or among supported ones.",
)
CFG_04 = Requirement(
    "CFG-04",
    "M",
    ("000",),
    "The constructor refuses an `access` that is wider than `supported_access`, where "
    "none is narrower than files and files than full.",
)
CFG_05 = Requirement(
    "CFG-05",
    "M",
    ("000",),
    "Without `access` a sandbox serves the widest level that its type supports.",
)
CFG_06 = Requirement(
    "CFG-06",
    "M",
    ("002",),
    "The constructor refuses a header binding whose hosts the network does not reach; a "
    "`GitHubBinding` needs github.com and api.github.com.",
)
CFG_07 = Requirement(
    "CFG-07",
    "M",
    ("002",),
    "A refusal comes from the constructor: nothing has been created, started, called or "
    "sent by then.",
)
CFG_08 = Requirement(
    "CFG-08",
    "M",
    ("000", "001", "002", "004"),
    "`NoSandbox` takes `hooks` alone, opens and creates nothing, offers no sandbox tool "
    "and runs no hook; an agent without `environment` has it and keeps its own tools.",
    documented_for=("NoSandbox",),
)
CFG_09 = Requirement(
    "CFG-09",
    "M",
    ("001",),
    "Building a `DangerousLocalSandbox` warns loudly, and without "
    "ALLOW_DANGEROUS_LOCAL_HOST=1 building or starting it raises before any command runs.",
    documented_for=("DangerousLocalSandbox",),
)
CFG_10 = Requirement(
    "CFG-10",
    "M",
    ("000",),
    "`DangerousLocalSandbox` refuses the `GitIdentity` hook, which would overwrite the "
    "user's own settings.",
    documented_for=("DangerousLocalSandbox",),
)
CFG_11 = Requirement(
    "CFG-11",
    "R",
    ("ours",),
    "Building a sandbox checks its options: unusable limits, empty names, wrong types and"
    " entries of `hooks` that are no hooks raise an error that names the option.",
)
CFG_12 = Requirement(
    "CFG-12",
    "R",
    ("ours",),
    "A sandbox cannot be changed once it is built, and its `repr` shows no secret.",
)
CFG_13 = Requirement(
    "CFG-13",
    "R",
    ("ours",),
    "One configuration opens any number of sessions, one after another and side by side, "
    "unless it names a single thing such as a workspace.",
)
CFG_14 = Requirement(
    "CFG-14",
    "R",
    ("001",),
    "A sandbox whose optional package is missing names the extra to install when it is "
    "built, while importing the library still works.",
)
CFG_15 = Requirement(
    "CFG-15",
    "M",
    ("001",),
    "`BashkitSandbox` has no Python, no container and no background processes.",
    documented_for=("BashkitSandbox",),
)
CFG_16 = Requirement(
    "CFG-16",
    "M",
    ("000",),
    "Every public class has exactly the parameters of the reference, with their names, "
    "defaults and keyword-only kind.",
)
CFG_17 = Requirement(
    "CFG-17",
    "S",
    ("002",),
    "A refusal names the sandbox class, what was refused and what to pass instead.",
)
CFG_18 = Requirement(
    "CFG-18",
    "R",
    ("ours",),
    "A `MistralApiBinding` needs a network that reaches api.mistral.ai, and "
    "`WorkspaceHeaderBindings` needs one other than `Network.none()`.",
)
CFG_19 = Requirement(
    "CFG-19",
    "R",
    ("ours",),
    "A live sandbox contradicts none of the facts that its type declares.",
)
CFG_20 = Requirement(
    "CFG-20",
    "M",
    ("002",),
    "`MistralSandbox` refuses `Network.allow()` and an unreachable `GitHubBinding` with "
    "the very sentences of the network guide.",
    documented_for=("MistralSandbox",),
)
CFG_21 = Requirement(
    "CFG-21",
    "M",
    ("002",),
    "Each built-in sandbox declares the network modes and header bindings that the "
    "network guide lists for it.",
)
