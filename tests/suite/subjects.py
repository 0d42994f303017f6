"""Tiny subjects: one that is right as far as they go, and one for each way to misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Any, ClassVar

from sandboxes.contract import (
    Network,
    NetworkMode,
    OpenRequest,
    RunningSandbox,
    SandboxExecutionResult,
)
from sandboxes.custom_sandbox import CustomSandbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Echo(RunningSandbox):
    """Every command succeeds and writes itself out."""

    default_timeout_seconds = 5.0

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    async def execute(
        self, command: str, *, timeout_seconds: float | None = None
    ) -> SandboxExecutionResult:
        return SandboxExecutionResult(0, command, "")

    async def read_file(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    async def write_file(self, path: str, data: bytes) -> None:
        self.files[path] = data


class Right(CustomSandbox):
    def __init__(self, *, label: str = "", **options: Any) -> None:
        super().__init__(**options)
        self.label = label

    @contextlib.asynccontextmanager
    async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
        yield self.running()

    def running(self) -> RunningSandbox:
        return Echo()


class Private(Right):
    blocks_private_addresses = True


class AcceptsWhatItDoesNotDeclare(Right):
    def __init__(self, *, network: Any = None, **options: Any) -> None:
        super().__init__(**options)


class RefusesAll(Right):
    supported_network: ClassVar[frozenset[NetworkMode]] = frozenset({"none", "all"})

    def __init__(self, *, network: Any = None, **options: Any) -> None:
        if network is not None:
            raise ValueError("no network at all")
        super().__init__(**options)


class _Exits(Echo):
    async def execute(self, command: str, **_: Any) -> SandboxExecutionResult:
        os._exit(0)


class _Segfaults(Echo):
    async def execute(self, command: str, **_: Any) -> SandboxExecutionResult:
        os.kill(os.getpid(), signal.SIGSEGV)
        raise AssertionError("unreachable")


class _Hangs(Echo):
    async def execute(self, command: str, **_: Any) -> SandboxExecutionResult:
        await asyncio.sleep(600)
        raise AssertionError("unreachable")


class _MarksAndHangs(_Hangs):
    async def execute(self, command: str, **_: Any) -> SandboxExecutionResult:
        with open(os.environ["MARK"], "w"):  # noqa: ASYNC230 - a moment
            pass
        return await super().execute(command)


class _Stubborn(Echo):
    async def execute(self, command: str, **_: Any) -> SandboxExecutionResult:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(600)


class _Blocks(Echo):
    async def execute(self, command: str, **_: Any) -> SandboxExecutionResult:
        time.sleep(600)  # noqa: ASYNC251 - the sin itself
        raise AssertionError("unreachable")


class _Raises(Echo):
    async def execute(self, command: str, **_: Any) -> SandboxExecutionResult:
        raise RuntimeError("boom\nin two lines")


class _Quits(Echo):
    async def execute(self, command: str, **_: Any) -> SandboxExecutionResult:
        sys.exit(3)


class _Cancels(Echo):
    async def execute(self, command: str, **_: Any) -> SandboxExecutionResult:
        raise asyncio.CancelledError


class _Rubbish(Echo):
    async def execute(self, command: str, **_: Any) -> Any:
        return {
            "tuple": (0, "", ""),
            "code": SandboxExecutionResult(None, "", ""),  # type: ignore[arg-type]  # the sin
            "bool": SandboxExecutionResult(True, "", ""),
            "negative": SandboxExecutionResult(-15, "", ""),
            "wide": SandboxExecutionResult(256, "", ""),
            "bytes": SandboxExecutionResult(0, b"", ""),  # type: ignore[arg-type]  # the sin
        }[command]


class Exits(Right):
    def running(self) -> RunningSandbox:
        return _Exits()


class Segfaults(Right):
    def running(self) -> RunningSandbox:
        return _Segfaults()


class Hangs(Right):
    def running(self) -> RunningSandbox:
        return _Hangs()


class MarksAndHangs(Right):
    def running(self) -> RunningSandbox:
        return _MarksAndHangs()


class Stubborn(Right):
    def running(self) -> RunningSandbox:
        return _Stubborn()


class Blocks(Right):
    def running(self) -> RunningSandbox:
        return _Blocks()


class Raises(Right):
    def running(self) -> RunningSandbox:
        return _Raises()


class Quits(Right):
    def running(self) -> RunningSandbox:
        return _Quits()


class Cancels(Right):
    def running(self) -> RunningSandbox:
        return _Cancels()


class Rubbish(Right):
    def running(self) -> RunningSandbox:
        return _Rubbish()


class YieldsNothing(Right):
    @contextlib.asynccontextmanager
    async def open(self, request: OpenRequest) -> AsyncIterator[Any]:
        yield None


class FailsToClose(Right):
    @contextlib.asynccontextmanager
    async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
        yield Echo()
        raise RuntimeError("cannot delete")


class NeverOpens(Right):
    @contextlib.asynccontextmanager
    async def open(self, request: OpenRequest) -> AsyncIterator[RunningSandbox]:
        await asyncio.sleep(600)
        yield Echo()


class CannotBeBuilt(Right):
    def __init__(self, **options: Any) -> None:
        raise ValueError("not like this\nnor like that")


class Unfinished(CustomSandbox):
    """Leaves `open` unwritten."""


class DeclaresText(Right):
    supported_network = "none"  # type: ignore[assignment]  # the sin


class NoSandboxAtAll:
    supported_access = "full"


def function() -> None: ...


class DeclaresOneExtra(Right):
    optional_packages = "bashkit"  # type: ignore[assignment]  # the sin


class ForgetsItsBase(Right):
    """Has nothing of what the base's constructor gives it."""

    def __init__(self, *, network: Network | None = None) -> None:
        self.wanted = network


class _TakesNoPorts(Network):
    def __post_init__(self) -> None:
        if any(":" in host for host in self.hosts):
            raise ValueError("no ports")
        Network.__post_init__(self)


class RefusesPorts(Right):
    """Takes networks of a type that refuses what is right."""

    network_type: ClassVar[type[Network]] = _TakesNoPorts
