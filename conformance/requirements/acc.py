"""Access: the tools that the model gets."""

from conformance.requirements.requirement import Requirement

ACC_01 = Requirement(
    "ACC-01",
    "M",
    ("000",),
    'With access "none" the model gets no sandbox tool, while tools, hooks and skills '
    "still use the sandbox.",
)
ACC_02 = Requirement(
    "ACC-02",
    "M",
    ("000",),
    'With access "files" the model gets the file tools and no bash.',
)
ACC_03 = Requirement(
    "ACC-03",
    "M",
    ("000", "001"),
    'With access "full" the model gets the file tools and bash, and `process.*` only '
    "where background processes are supported.",
)
ACC_04 = Requirement(
    "ACC-04",
    "M",
    ("001",),
    '`disabled_tools=["process.*"]` takes the background-process tools away.',
)
ACC_05 = Requirement(
    "ACC-05",
    "M",
    ("002",),
    'With access "files" or "none" the network policy still binds hooks and setup scripts.',
)
ACC_06 = Requirement(
    "ACC-06",
    "M",
    ("001",),
    "Tool output that is too long is cut, its rest going to a file in the sandbox where "
    "Python can write one and being dropped in place otherwise.",
)
