"""The cloud as a witness: what it was asked for, what is left in it, and who may ask."""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from conformance.subject.blame import shown
from conformance.verdicts import Violation
from sandboxes.contract import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.lab.client import Lab
    from conformance.lab.cloud.client import CloudClient
    from conformance.subject.targets import Target

TOKENS = (
    "KOYEB_API_KEY",
    "NUAGE_KOYEB_SANDBOX_API_TOKEN",
    "AGENTS_SDK_KOYEB_SANDBOX_API_TOKEN",
)
"""Where the documents say that the API token may be."""

PREFIX = "AGENTS_SDK_KOYEB_SANDBOX_"
"""Before the name of an option, in capitals, in the variable that gives its default."""

READY_SECONDS = 2
"""How long a check lets a sandbox wait until it is ready, where that is an option of it."""

_QUIET_SECONDS = 2.0
_PAUSE_SECONDS = 0.05


class Watch:
    """What becomes of a cloud from now on.

    Args:
        cloud: The cloud.
    """

    def __init__(self, cloud: CloudClient) -> None:
        self.cloud = cloud
        self._there = {row["id"] for row in cloud.inventory()}
        self._last = cloud.last_request()

    def asked(self, method: str = "", path: str = "/") -> list[dict[str, Any]]:
        """The requests since then with this method, and a path that begins so."""
        return [
            row
            for row in self.cloud.requests(self._last)
            if row["method"].startswith(method) and row["target"].startswith(path)
        ]

    def made(self) -> list[dict[str, str]]:
        """What there is in it that was not there then."""
        return [row for row in self.cloud.inventory() if row["id"] not in self._there]

    def judge_empty(self, when: str) -> None:
        """Judge that nothing is left; what is being deleted has a moment to go.

        Raises:
            Violation: Something is.
        """
        deadline = time.monotonic() + _QUIET_SECONDS
        while (left := self.made()) and time.monotonic() < deadline:
            time.sleep(_PAUSE_SECONDS)
        if left:
            names = ", ".join(f"{row['kind']} {row['name']}" for row in left[:4])
            raise Violation(
                f"{when} there was left in the cloud: {names}",
                remedy="delete what was made on every way out, and look for what may have been",
            )


def told_so_far(target: Target, lab: Lab) -> int:
    """The number of the latest request to the cloud; 0 where the subject does not run in one."""
    return lab.cloud().last_request() if target.cls.needs_cloud else 0


def told_since(target: Target, lab: Lab, number: int, part: str = "") -> str:
    """All that the cloud was told after a request, to targets that hold a text."""
    if not target.cls.needs_cloud:
        return ""
    rows = lab.cloud().requests(number)
    return json.dumps([row for row in rows if part in str(row.get("target"))])


@contextmanager
def watched(lab: Lab) -> Iterator[Watch]:
    """Have the cloud to oneself; what went wrong in it is mended at the end."""
    cloud = lab.cloud()
    with lab.alone():
        try:
            yield Watch(cloud)
        finally:
            cloud.mend()


@contextmanager
def only(variables: dict[str, str]) -> Iterator[None]:
    """Have these variables of `TOKENS` alone while the block runs, with these values."""
    before = {name: os.environ.get(name) for name in TOKENS}
    try:
        for name in TOKENS:
            _put(name, variables.get(name))
        yield
    finally:
        for name, value in before.items():
            _put(name, value)


def _put(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


@contextmanager
def defaults(**options: str) -> Iterator[None]:
    """Have texts for the defaults of these options in the environment while the block runs."""
    variables = {f"{PREFIX}{name.upper()}": text for name, text in options.items()}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]


def soon(target: Target, seconds: int = READY_SECONDS) -> dict[str, Any]:
    """The options with which a sandbox gives up after so many seconds, if it has them."""
    name = "wait_ready_timeout_seconds"
    return {name: seconds} if target.has_option(name) else {}


def raised(call: Callable[[], object]) -> Exception | None:
    """What a call of the subject raised, if it did.

    Raises:
        Violation: It hung, or gave what no caller can use.
    """
    try:
        call()
    except Violation:
        raise
    except Exception as error:  # noqa: BLE001 - the caller looks at it
        return error
    return None


def started(target: Target, **options: Any) -> Exception | None:  # noqa: ANN401 - a subject's own
    """Why a session with these options did not start, run a command and end; None if it did."""

    def session() -> None:
        with target.open(**options) as box:
            box.execute("echo on", timeout_seconds=10)

    return raised(session)


def judge_clear(error: Exception | None, when: str) -> None:
    """Judge that an error is one that callers of a sandbox can tell from a fault of their own.

    Raises:
        Violation: It is not.
    """
    if error is not None and not (isinstance(error, SandboxError) and str(error).strip()):
        raise Violation(
            f"{when} it raised {shown(error)}",
            remedy="raise a SandboxError that says what the cloud did not do",
        )
