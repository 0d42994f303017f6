"""A sandbox that runs: what a backend yields from `open`, and what it is asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class SandboxExecutionResult:
    """Output of a command run in the current session's sandbox.

    Attributes:
        exit_code: 0 to 255; 124 where the command ran into its time limit.
        stdout: What it wrote, UTF-8 with replacement of what is none.
        stderr: The same for standard error.
    """

    exit_code: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRequest:
    """What one session asks of a sandbox when it opens it.

    Attributes:
        session_id: Names the session; equal ids of one configuration mean the same
            session.
        secrets: Values of the secrets that the header bindings name.
        identity: The credential of the user on whose behalf the session runs. None in
            process: then it is the user of MISTRAL_API_KEY.
        ca_bundle: PEM file of certificates that programs inside must trust beside
            their own.
        resume: What `RunningSandbox.detach` returned when the session left elsewhere.
    """

    session_id: str
    secrets: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    identity: str | None = field(default=None, repr=False)
    ca_bundle: Path | None = None
    resume: JsonValue = None


class RunningSandbox(ABC):
    """A live sandbox. Paths are absolute, or relative to the workspace.

    Attributes:
        default_timeout_seconds: The limit of a command that brings none, in seconds.
        cancels: Whether cancelling `execute` ends the command; False only where nothing
            can end one before its limit.
    """

    default_timeout_seconds: float
    cancels: bool = True

    @abstractmethod
    async def execute(
        self, command: str, *, timeout_seconds: float | None = None
    ) -> SandboxExecutionResult:
        """Run a shell command in the workspace.

        A failing command does not raise. One that exceeds its limit ends with exit
        code 124 and keeps the output written before.

        Args:
            command: Text for the sandbox's shell.
            timeout_seconds: Its limit in seconds; `default_timeout_seconds` if None.

        Raises:
            ValueError: The limit is not a positive finite number, or the command holds
                a NUL.
            SandboxClosed: The sandbox is closed.
        """

    @abstractmethod
    async def read_file(self, path: str) -> bytes:
        """Read a file as commands see it.

        Raises:
            FileNotFoundError: There is none.
            IsADirectoryError: It is a folder.
            PermissionError: The sandbox refuses it.
            SandboxClosed: The sandbox is closed.
        """

    @abstractmethod
    async def write_file(self, path: str, data: bytes) -> None:
        """Write a whole file; missing parent folders are made.

        Raises:
            IsADirectoryError: The path is a folder.
            PermissionError: The sandbox refuses it.
            SandboxClosed: The sandbox is closed.
        """

    async def detach(self) -> JsonValue:
        """Let go without deleting, and return what a later `OpenRequest.resume` needs.

        Raises:
            NotImplementedError: The sandbox does not declare `supports_resume`.
        """
        raise NotImplementedError(f"{type(self).__name__} cannot be resumed elsewhere")

    async def inventory(self) -> Sequence[str]:
        """Name what exists outside this process because of this sandbox, a line each."""
        return ()
