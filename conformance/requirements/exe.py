"""Commands: what running one returns, and what it may see."""

from conformance.requirements.requirement import Requirement

EXE_01 = Requirement(
    "EXE-01",
    "M",
    ("000", "004"),
    "Running a command returns its exit code and what it wrote to stdout and stderr; a "
    "failing command does not raise.",
)
EXE_02 = Requirement(
    "EXE-02",
    "R",
    ("ours",),
    "Exit codes 0 to 255 come back exact, with 127 for a command that is not found, 126 "
    "for one that cannot run and, with processes, 128+n for death by signal n.",
)
EXE_03 = Requirement(
    "EXE-03",
    "R",
    ("ours",),
    "stdout and stderr come back apart, complete and in order, from nothing at all to 10 "
    "MB, with line ends and byte-order marks untouched.",
)
EXE_04 = Requirement(
    "EXE-04",
    "R",
    ("ours",),
    "Output of any bytes comes back without a crash: valid UTF-8 exactly, the rest replaced.",
)
EXE_05 = Requirement(
    "EXE-05",
    "R",
    ("ours",),
    "The text of a command arrives exactly, with its quotes, newlines, dollars and "
    "unicode, up to 100 kB; a NUL raises a clear error.",
)
EXE_06 = Requirement(
    "EXE-06",
    "M",
    ("004",),
    "Commands run in the workspace, and what they leave there is there for the next "
    "command, for `read_file` and for the agent's tools.",
)
EXE_07 = Requirement(
    "EXE-07",
    "R",
    ("ours",),
    "The standard input of a command is empty.",
)
EXE_08 = Requirement(
    "EXE-08",
    "R",
    ("ours",),
    "A background child that keeps stdout open does not keep its command from returning "
    "within 5 seconds.",
)
EXE_09 = Requirement(
    "EXE-09",
    "R",
    ("ours",),
    "Commands that run at the same time do not mix their output.",
)
EXE_10 = Requirement(
    "EXE-10",
    "R",
    ("ours",),
    "Cancelling the caller ends the command and its children, and the session stays usable.",
)
EXE_11 = Requirement(
    "EXE-11",
    "M",
    ("001",),
    "Commands of `DangerousLocalSandbox` run as the user of the process and see its environment.",
    documented_for=("DangerousLocalSandbox",),
)
EXE_12 = Requirement(
    "EXE-12",
    "M",
    ("000", "001"),
    'The option `shell` is bash by default, and "sh" runs sh.',
    documented_for=("DangerousLocalSandbox", "LocalDockerSandbox"),
)
