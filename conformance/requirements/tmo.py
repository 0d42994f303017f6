"""Time limits: how a command ends when its time is up."""

from conformance.requirements.requirement import Requirement

TMO_01 = Requirement(
    "TMO-01",
    "M",
    ("000", "card"),
    "A command that exceeds its limit ends with exit code 124 and does not raise.",
)
TMO_02 = Requirement(
    "TMO-02",
    "M",
    ("000",),
    "After a timeout the command and its children are gone, those in other process groups"
    " included.",
    documented_for=("LocalDockerSandbox",),
)
TMO_03 = Requirement(
    "TMO-03",
    "R",
    ("ours",),
    "After a timeout those children are gone too that made a session of their own or forked twice.",
)
TMO_04 = Requirement(
    "TMO-04",
    "M",
    ("000",),
    "A command over its limit gets SIGTERM, so that a trap can run, and SIGKILL 5 seconds later.",
    documented_for=("LocalDockerSandbox",),
)
TMO_05 = Requirement(
    "TMO-05",
    "R",
    ("ours",),
    "Output that was written before the limit is kept.",
)
TMO_06 = Requirement(
    "TMO-06",
    "M",
    ("000", "001"),
    "A command without a limit of its own gets the documented default, or "
    "`default_exec_timeout_seconds`, and `default_timeout_seconds` tells it.",
    documented_for=("BashkitSandbox", "LocalDockerSandbox", "DangerousLocalSandbox"),
)
TMO_07 = Requirement(
    "TMO-07",
    "M",
    ("000", "004"),
    "An explicit `timeout_seconds` wins over the default, be it longer or shorter, and "
    "the default also bounds the commands of hooks.",
)
TMO_08 = Requirement(
    "TMO-08",
    "R",
    ("ours",),
    "The caller waits at least for the limit and at most 5 seconds and some slack beyond "
    "it, whether the command computes, sleeps, is stopped, ignores SIGTERM or floods its "
    "output.",
)
TMO_09 = Requirement(
    "TMO-09",
    "R",
    ("ours",),
    "A command that ends in time is not disturbed, and one that exits with 124 by itself "
    "passes that through.",
)
TMO_10 = Requirement(
    "TMO-10",
    "R",
    ("ours",),
    "The session stays usable after a timeout.",
)
TMO_11 = Requirement(
    "TMO-11",
    "R",
    ("ours",),
    "The timeout or cancellation of one command touches neither background processes nor "
    "the commands beside it.",
)
TMO_12 = Requirement(
    "TMO-12",
    "R",
    ("ours",),
    "A limit that is zero, negative, NaN or infinite raises, and fractions of a second count.",
)
TMO_13 = Requirement(
    "TMO-13",
    "R",
    ("000",),
    "`LocalDockerSandbox` says so clearly when its image has no setsid command.",
)
