"""Background processes: commands that outlive the call that started them."""

from conformance.requirements.requirement import Requirement

PRC_01 = Requirement(
    "PRC-01",
    "M",
    ("001",),
    "Background processes are offered only where they are declared, never by `NoSandbox`,"
    " Bashkit or a custom image that does not declare them.",
)
PRC_02 = Requirement(
    "PRC-02",
    "M",
    ("001",),
    "A background process can be started, read, written to, listed and stopped.",
)
PRC_03 = Requirement(
    "PRC-03",
    "R",
    ("ours",),
    "Output from a cursor is exactly what is new, `write` reaches the standard input, "
    "`stop` ends the whole tree with SIGTERM and then SIGKILL, and the exit code is kept.",
)
PRC_04 = Requirement(
    "PRC-04",
    "M",
    ("001",),
    "Ids, cursors and final states stay available across turns and across a deployed continuation.",
)
PRC_05 = Requirement(
    "PRC-05",
    "R",
    ("ours",),
    "All background processes are gone when the session closes.",
)
PRC_06 = Requirement(
    "PRC-06",
    "R",
    ("ours",),
    "Unknown ids, closed inputs and bad cursors give a clear error, and what is kept of a"
    " process is bounded and says what was dropped.",
)
PRC_07 = Requirement(
    "PRC-07",
    "R",
    ("001",),
    "Background processes that are declared without the shell, `python3 -I`, socket and "
    "subprocess they need are found out and reported.",
)
