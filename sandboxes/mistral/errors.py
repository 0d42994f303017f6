"""What goes wrong between us and the cloud, in words: subject, fact, remedy, one line."""

from __future__ import annotations

from sandboxes.contract import SandboxError

TOKEN_VARIABLES = (
    "AGENTS_SDK_KOYEB_SANDBOX_API_TOKEN",
    "NUAGE_KOYEB_SANDBOX_API_TOKEN",
    "KOYEB_API_KEY",
)
"""Any of these holds the token; the first one that is set is used."""

ROLE = "cloud_user"


class CloudError(SandboxError):
    """The cloud did not do what it was asked.

    Args:
        message: Subject, fact, remedy.
        status: The HTTP status; 0 where there was no answer.
        may_have_happened: Whether what was asked for may have been done all the same.
    """

    def __init__(self, message: str, *, status: int = 0, may_have_happened: bool = False) -> None:
        super().__init__(" ".join(message.split()))
        self.status = status
        self.may_have_happened = may_have_happened


def no_token(sandbox: str) -> str:
    """Say that there is nothing to identify oneself with."""
    return f"{sandbox} has no API token for the cloud; set {' or '.join(TOKEN_VARIABLES)}"


def refused(sandbox: str, action: str, status: int, said: str) -> str:
    """Say that the cloud refused a call, and why."""
    answer = f"HTTP {status}{': ' + said if said else ''}"
    if status == 401:
        return (
            f"{sandbox}: the cloud does not know the API token and did not {action} ({answer}); "
            f"set {' or '.join(TOKEN_VARIABLES)} to a valid one"
        )
    if status == 403:
        return (
            f"{sandbox}: the API token's user may not {action} ({answer}); have an admin give the "
            f"user the role {ROLE} (Mistral Cloud User)"
        )
    if status == 429:
        return (
            f"{sandbox}: the cloud has had too many calls to {action} ({answer}); "
            "wait, or ask for a larger quota"
        )
    if status >= 500:
        return f"{sandbox}: the cloud failed to {action} ({answer}); try again later"
    return f"{sandbox}: the cloud did not {action} ({answer}); mend the option that it names"


def unanswered(sandbox: str, action: str, fact: str, peer: str = "the cloud") -> str:
    """Say that no answer came at all."""
    return (
        f"{sandbox}: {peer} gave no answer when asked to {action} ({fact}); "
        "see whether this machine reaches it, and try again"
    )


def command_unanswered(sandbox: str, fact: str) -> str:
    """Say that nobody knows what became of a command."""
    return (
        f"{sandbox}: the answer of a command was lost ({fact}), and it is not sent again because "
        "it may have run; look at what it did before you repeat it"
    )


def gone(sandbox: str, fact: str) -> str:
    """Say that the sandbox vanished while it was in use."""
    return (
        f"{sandbox}: the sandbox in the cloud is gone ({fact}); start another session, "
        "and see ttl_seconds and idle_timeout_seconds if it ended too soon"
    )


def restarted(sandbox: str) -> str:
    """Say that what runs is not what the session was started in."""
    return (
        f"{sandbox}: the cloud started the sandbox anew and its files and processes are lost; "
        "start another session, with a longer idle_timeout_seconds if it had been idle"
    )


def not_ready(sandbox: str, option: str, bound: str, fact: str) -> str:
    """Say that a sandbox did not become ready within an option's bound."""
    return f"{sandbox}: the sandbox was not ready within {option}={bound} ({fact}); raise {option}"


def ended_early(sandbox: str, status: str, said: str) -> str:
    """Say that a deployment ended instead of becoming ready."""
    answer = f"{status or 'no status'}{': ' + said if said else ''}"
    return (
        f"{sandbox}: the sandbox ended before it was ready ({answer}); "
        "see whether image, instance_type and region are ones that the cloud has"
    )


def left_behind(sandbox: str, name: str, fact: str) -> str:
    """Say that something in the cloud may be left."""
    return f"{sandbox}: the app {name} may be left in the cloud ({fact}); delete it there by hand"


def plain_address(sandbox: str, origin: str) -> str:
    """Say that a secret would be sent in clear."""
    return (
        f"{sandbox}: {origin} is no https:// address, and a token is not sent in clear; use https"
    )


def nonsense(sandbox: str, action: str, fact: str, variable: str = "KOYEB_API_HOST") -> str:
    """Say that an answer is not what the protocol says."""
    return (
        f"{sandbox}: the answer to {action} cannot be read ({fact}); "
        f"see whether {variable} names the right place"
    )


def no_identity(sandbox: str, variable: str) -> str:
    """Say that there is nobody to act for."""
    return (
        f"{sandbox}: header_bindings act as a user, and there is none: {variable} is not set; "
        "set it, or start the session with identity="
    )


def no_bootstrap(sandbox: str, status: int, said: str) -> str:
    """Say that Sandbox Proxy refused, and why."""
    answer = f"HTTP {status}{': ' + said if said else ''}"
    if status == 401:
        remedy = "start the session with a valid identity, or set MISTRAL_API_KEY to a valid key"
    elif status == 403:
        remedy = "connect the user's GitHub account to these repositories, or leave them out"
    elif status >= 500 or status == 429:
        remedy = "try again later"
    else:
        remedy = "mend the binding that it names"
    return f"{sandbox}: Sandbox Proxy did not set up the bindings ({answer}); {remedy}"


def not_installed(sandbox: str, fact: str) -> str:
    """Say that what Sandbox Proxy gave is not inside."""
    return (
        f"{sandbox}: the environment of Sandbox Proxy could not be installed ({fact}); "
        "use an image with a folder that can be written to"
    )


def not_renewed(sandbox: str, fact: str) -> str:
    """Say that the session ends here, because its credentials do."""
    return (
        f"{sandbox}: the credentials of Sandbox Proxy could not be renewed, and a session never "
        f"runs without its bindings ({fact}); close it, and start another one"
    )


def not_kept(sandbox: str, fact: str) -> str:
    """Say that the session ends here, because something inside takes its bindings away."""
    return (
        f"{sandbox}: the environment of Sandbox Proxy does not stay inside, and a session never "
        f"runs without its bindings ({fact}); close it, and start another one"
    )


def no_python(sandbox: str, said: str) -> str:
    """Say that commands cannot be supervised inside."""
    return (
        f"{sandbox}: the image cannot run python3, which supervises its commands "
        f"({said or 'no output'}); use an image that has python3 3.9 or later"
    )


def no_secret(sandbox: str, identifier: str) -> str:
    """Say that a sandbox that was made before cannot be talked to."""
    return (
        f"{sandbox}: pre_provisioned_sandbox_id {identifier!r} has no secret for its executor, as "
        "those of a pool; name one that was made with a secret of its own"
    )


def weaker_policy(sandbox: str, identifier: str, fact: str) -> str:
    """Say that a sandbox that was made before opens too much."""
    return (
        f"{sandbox}: pre_provisioned_sandbox_id {identifier!r} is open wider than what you wrote: "
        f"{fact}; make one with that policy, or write the policy that it has"
    )


def not_revoked(sandbox: str, fact: str, seconds: float) -> str:
    """Say that a closed session's credential still works."""
    return (
        f"{sandbox}: Sandbox Proxy did not revoke the session's credential ({fact}); it is "
        f"accepted for {seconds:.0f} s more"
    )


def never_closed(sandbox: str, opened: str, seconds: float) -> str:
    """Say that the policy is not in force."""
    return (
        f"{sandbox}: the network policy was not in force after {seconds:g} s ({opened} could be "
        "reached from inside), and so nothing was run; use a region that filters outbound "
        "traffic, such as nl-north-1"
    )


def cannot_prove(sandbox: str) -> str:
    """Say that there is no address with which a policy could be shown to be in force."""
    return (
        f"{sandbox}: egress lists every address with which it could be proven to be in force; "
        "list narrower ranges, or pass network=Network.all()"
    )


def broken(sandbox: str, program: str, code: object, said: str) -> str:
    """Say that a program of ours came to grief inside."""
    return (
        f"{sandbox}: the program {program!r} inside ended with exit code {code} and no answer "
        f"({said or 'no output'}); see whether the sandbox has memory, and python3 3.9 or later"
    )
