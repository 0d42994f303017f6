"""Hooks: code at the two ends of a session."""

from conformance.requirements.requirement import Requirement

HOK_01 = Requirement(
    "HOK-01",
    "M",
    ("000", "004"),
    "`on_create` runs once when the sandbox is ready and before the agent starts, "
    "`on_destroy` once when the session closes, and the base class's do nothing.",
)
HOK_02 = Requirement(
    "HOK-02",
    "M",
    ("004",),
    "When `on_create` raises, the sandbox is deleted, the session does not start, and the"
    " caller gets that very exception.",
)
HOK_03 = Requirement(
    "HOK-03",
    "M",
    ("004",),
    "A deployed session with a failing hook ends failed with a message of hook and "
    "exception type only, while the log has everything and a server shows it under "
    "AGENTS_SDK_DEBUG=1 alone.",
)
HOK_04 = Requirement(
    "HOK-04",
    "M",
    ("004",),
    "When `on_destroy` raises, the error is logged and the other hooks still run.",
)
HOK_05 = Requirement(
    "HOK-05",
    "M",
    ("004",),
    "A session closes on cancel, at a limit, when its `local_runtime()` block exits, or "
    "at the end of a run without idempotency key, and `on_destroy` runs each time.",
)
HOK_06 = Requirement(
    "HOK-06",
    "M",
    ("004",),
    "`ctx.sandbox.execute` and `ctx.sandbox.read_file` work at both points of a hook.",
)
HOK_07 = Requirement(
    "HOK-07",
    "M",
    ("000", "004"),
    "Both points of a hook declare session inputs with `Annotated[T, Depends()]`.",
)
HOK_08 = Requirement(
    "HOK-08",
    "M",
    ("004",),
    "The session inputs of hooks are checked before the sandbox is created.",
)
HOK_09 = Requirement(
    "HOK-09",
    "M",
    ("000",),
    "`to_unified_state` gives the arguments that a hook was built with, all of them JSON "
    "values, and `from_unified_state` calls the constructor with them.",
)
HOK_10 = Requirement(
    "HOK-10",
    "M",
    ("000",),
    "A hook with its own pair of state methods replaces the recording of arguments.",
)
HOK_11 = Requirement(
    "HOK-11",
    "M",
    ("000", "004"),
    "A hook keeps no state between its points: deployed it is rebuilt, and `now()` and "
    "`sleep()` replay.",
)
HOK_12 = Requirement(
    "HOK-12",
    "M",
    ("000",),
    "`GitIdentity` sets the sandbox's global user.name and user.email exactly and changes"
    " nothing on the host.",
)
HOK_13 = Requirement(
    "HOK-13",
    "R",
    ("ours",),
    "Several hooks run in the listed order at the start and in reverse at the close, and "
    "none runs after one whose `on_create` failed.",
)
HOK_14 = Requirement(
    "HOK-14",
    "S",
    ("ours",),
    "A hook that hangs is bounded in time.",
)
HOK_15 = Requirement(
    "HOK-15",
    "R",
    ("ours",),
    "An error in the session's block and a cancelled task close the session as well, and "
    "`on_destroy` runs.",
)
HOK_16 = Requirement(
    "HOK-16",
    "R",
    ("ours",),
    "A hook's argument that is no JSON value raises when the hook is built and is named, "
    "unless the hook has its own state methods.",
)
HOK_17 = Requirement(
    "HOK-17",
    "R",
    ("ours",),
    "`GitIdentity` in a sandbox without git keeps the session from starting and says why.",
)
HOK_18 = Requirement(
    "HOK-18",
    "R",
    ("ours",),
    "The sandbox is deleted even after an `on_destroy` that raised.",
)
