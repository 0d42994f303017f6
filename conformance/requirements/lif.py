"""Lifecycle: what a session creates, keeps and leaves behind."""

from conformance.requirements.requirement import Requirement

LIF_01 = Requirement(
    "LIF-01",
    "M",
    ("000", "004"),
    "A sandbox lives from the start of its session to the close and is deleted then, "
    "except for what its options say to keep.",
)
LIF_19 = Requirement(
    "LIF-19",
    "R",
    ("ours",),
    "After the close nothing else is left: no container, network, volume, folder, "
    "process, cloud service, socket, open file, task or thread.",
)
LIF_02 = Requirement(
    "LIF-02",
    "R",
    ("ours",),
    "The sandbox is deleted without a trace also after a failing create, setup script or "
    "hook, and after a cancellation at any point.",
)
LIF_03 = Requirement(
    "LIF-03",
    "R",
    ("ours",),
    "After the close every call raises clearly; closing twice is harmless, and closing "
    "during a command ends it.",
)
LIF_04 = Requirement(
    "LIF-04",
    "R",
    ("ours",),
    "Two sessions of an isolated sandbox do not see each other's files, processes, "
    "environment or output; without isolation their workspaces and outputs do not mix.",
)
LIF_05 = Requirement(
    "LIF-05",
    "M",
    ("000",),
    "The folders of `BashkitSandbox` lie under the system's temporary folder, named by "
    "`instance_id` and session id, or by the session alone, and any process finds them "
    "again by the same ids.",
    documented_for=("BashkitSandbox",),
)
LIF_06 = Requirement(
    "LIF-06",
    "R",
    ("ours",),
    "An id that would lead out of that folder is refused, the folders are private to the "
    "user, and links planted in them are not followed.",
)
LIF_07 = Requirement(
    "LIF-07",
    "M",
    ("000",),
    "`DangerousLocalSandbox` makes and deletes a folder under "
    "~/.cache/mistral-vibe-harness-local-host/ without `workspace`, keeps a given one, "
    "resolves a relative one, and obeys `delete_on_cleanup`.",
    documented_for=("DangerousLocalSandbox",),
)
LIF_08 = Requirement(
    "LIF-08",
    "M",
    ("000",),
    "A workspace that is to be deleted must be absolute and contain neither the home nor "
    "the working folder, or else the session fails at its start and deletes nothing.",
    documented_for=("DangerousLocalSandbox",),
)
LIF_09 = Requirement(
    "LIF-09",
    "R",
    ("ours",),
    "That protection also holds against links, dot segments and a workspace that was "
    "swapped in between.",
)
LIF_10 = Requirement(
    "LIF-10",
    "M",
    ("000",),
    "The setup script has no network under `Network.none()`, and a time limit of its own.",
    documented_for=("LocalDockerSandbox",),
)
LIF_11 = Requirement(
    "LIF-11",
    "R",
    ("ours",),
    "The setup script runs once, before the hooks, and when it fails the session fails "
    "with its output and the sandbox is removed.",
)
LIF_12 = Requirement(
    "LIF-12",
    "M",
    ("000",),
    "Options of `MistralSandbox` that are left out come from "
    "AGENTS_SDK_KOYEB_SANDBOX_<OPTION>, save the six that never do, and an explicit "
    "option wins.",
    documented_for=("MistralSandbox",),
)
LIF_13 = Requirement(
    "LIF-13",
    "M",
    ("001",),
    "Any one of the three documented variables with a Koyeb token is enough, and without "
    "one the session fails at its start with nothing created.",
    documented_for=("MistralSandbox",),
)
LIF_20 = Requirement(
    "LIF-20",
    "R",
    ("000",),
    "A user without the cloud_user role gets an error that names the role.",
)
LIF_14 = Requirement(
    "LIF-14",
    "R",
    ("ours",),
    "A cloud that refuses, never gets ready or vanishes gives a clear error within the "
    "bounds of the options, and what was created is deleted.",
)
LIF_15 = Requirement(
    "LIF-15",
    "R",
    ("ours",),
    "A `pre_provisioned_sandbox_id` is used and not deleted, and one whose live policy is"
    " weaker than the one written is refused before anything runs.",
)
LIF_17 = Requirement(
    "LIF-17",
    "R",
    ("ours",),
    "An environment default that cannot be read is named when the sandbox is built.",
)
LIF_18 = Requirement(
    "LIF-18",
    "R",
    ("ours",),
    "Where resuming is supported, a detached session continues elsewhere with the same "
    "workspace, hooks and background processes.",
)
LIF_16 = Requirement(
    "LIF-16",
    "M",
    ("000",),
    "Under `Network.none()` a container of `LocalDockerSandbox` has loopback alone, and "
    "under `Network.all()` Docker's default network.",
    documented_for=("LocalDockerSandbox",),
)
LIF_21 = Requirement(
    "LIF-21",
    "R",
    ("ours",),
    "Neither the API token of a cloud nor the secret of a sandbox's executor is inside the "
    "sandbox, or in a log, exception or `repr`.",
)
