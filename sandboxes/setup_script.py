"""The setup script of a sandbox: run once, when it is ready and before anybody uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandboxes.contract import SandboxStartError

if TYPE_CHECKING:
    from sandboxes.contract import RunningSandbox

TIMED_OUT = 124
_SHOWN_CHARACTERS = 2000


async def run_setup_script(
    sandbox: str, running: RunningSandbox, script: str, *, timeout_seconds: float
) -> None:
    """Run a setup script; a backend calls this in `open`, before it yields.

    Not where it resumes a session: the script ran in the session's first part. A script
    that fails leaves `open` by an error, and so the sandbox is deleted.

    Args:
        sandbox: What the error calls the sandbox.
        running: The sandbox, ready and under its network policy.
        script: Text for the sandbox's shell.
        timeout_seconds: The script's own limit, in seconds.

    Raises:
        SandboxStartError: It ended with another exit code than 0, or at its limit; the
            message ends with the last 2,000 characters of its output.
    """
    result = await running.execute(script, timeout_seconds=timeout_seconds)
    if result.exit_code == 0:
        return
    # Also what a script itself may exit with; its output tells which.
    limit = f", the code of its limit of {timeout_seconds:g} s" * (result.exit_code == TIMED_OUT)
    output = "\n".join(part for part in (result.stdout.strip(), result.stderr.strip()) if part)
    raise SandboxStartError(
        f"{sandbox}: setup_script ended with exit code {result.exit_code}{limit}; "
        f"mend the script, whose output was: {output[-_SHOWN_CHARACTERS:] or 'nothing'}"
    )
