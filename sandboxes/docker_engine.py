"""A Docker engine through its SDK: blocking calls, with errors in words."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import docker
import requests
from docker import utils
from docker.errors import APIError, DockerException, ImageNotFound
from urllib3.exceptions import HTTPError

from sandboxes.contract import SandboxError, SandboxStartError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

T = TypeVar("T")

CALL_SECONDS = 30.0
"""For the engine's answer to one call."""

PULL_SECONDS = 1800.0
"""For an image that the engine has to get first."""

SILENCE_SECONDS = 300.0
"""For the next word of a registry."""

# The SDK's own classes are the first two; what its connections raise comes through as well.
ERRORS = (DockerException, requests.RequestException, HTTPError, OSError)
GONE, CONFLICT = 404, 409
"""What the engine answers about something that it has not, or not in the right state."""

_ANY_VERSION = "1.41"
_LOOK_SECONDS = 0.1
_LONGEST_FACT = 500


class EngineError(SandboxError):
    """The engine did not do what it was asked to.

    Attributes:
        fact: What it said, in one line.
        status: The status of its answer; 0 where there was none.
    """

    def __init__(self, action: str, error: Exception) -> None:
        self.fact = in_words(error)
        self.status = 0
        if isinstance(error, APIError) and error.response is not None:
            self.status = error.response.status_code
        super().__init__(f"the Docker engine could not {action} ({self.fact}); see its log")


def in_words(error: BaseException) -> str:
    """What an error of the SDK says, in one line."""
    if isinstance(error, APIError) and error.explanation:
        text = str(error.explanation)
    else:
        # The SDK's errors hold others, down to that of the operating system.
        inner: object = error
        while isinstance(inner, BaseException):
            text = _said(inner)
            inner = next((arg for arg in inner.args if isinstance(arg, BaseException)), None)
    return " ".join(text.split())[:_LONGEST_FACT]


def _said(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _without_password(text: str, url: str) -> str:
    """Leave out who somebody wrote into an address to be, and with what password."""
    place = urlsplit(url).netloc
    return text.replace(place, place.rpartition("@")[2]) if "@" in place else text


class Attached:
    """The connection to a program that the engine runs: what it writes, and its input."""

    def __init__(self, handle: Any) -> None:  # noqa: ANN401 - one of the SDK's five kinds
        self._handle = handle
        # Below the buffers of Python's own files, which do not go with time limits.
        self._socket = getattr(handle, "_sock", handle)
        self._response = getattr(handle, "_response", None)

    def send(self, data: bytes) -> None:
        """Write to its standard input.

        Raises:
            OSError: Nobody reads it any more.
        """
        self._socket.settimeout(CALL_SECONDS)
        self._socket.sendall(data)

    def receive(self, seconds: float) -> bytes | None:
        """Give what it wrote; nothing at its end, and None where nothing came in time."""
        try:
            self._socket.settimeout(max(seconds, 0.001))
            data: bytes = self._socket.recv(262_144)
        except TimeoutError:
            return None
        except OSError:  # the engine let go, or is gone
            return b""
        return data

    def close(self) -> None:
        """Hang up; the program goes on."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        # The response first: it looks into the handle when it is closed.
        for part in (self._response, self._handle):
            if part is not None:
                with contextlib.suppress(OSError):
                    part.close()


class _Client(docker.APIClient):
    """The SDK's client, which waits for nothing for ever: it does for an image."""

    def request(self, *arguments: Any, **options: Any) -> requests.Response:  # noqa: ANN401 - the base's own
        if options.get("timeout") is None:
            options["timeout"] = SILENCE_SECONDS
        return super().request(*arguments, **options)


class Engine:
    """One connection to the engine that the environment names (`DOCKER_HOST`).

    Args:
        sandbox: What errors call the sandbox.

    Raises:
        SandboxStartError: There is no engine, or it does not answer.
    """

    def __init__(self, sandbox: str) -> None:
        self._sandbox = sandbox
        self.url = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
        try:
            self.api = self._client()
        except ERRORS as error:
            raise SandboxStartError(
                f"{sandbox}: no Docker engine answers at "
                f"{_without_password(self.url, self.url)} "
                f"({_without_password(in_words(error), self.url)}); "
                "start it, or set DOCKER_HOST to one that you may use"
            ) from error

    def _client(self) -> docker.APIClient:
        self._look_for_it()
        options: dict[str, Any] = {"timeout": CALL_SECONDS, **utils.kwargs_from_env()}
        # The SDK does not close a client whose constructor asks for the version and gets none.
        with contextlib.closing(_Client(version=_ANY_VERSION, **options)) as asking:
            version: str = asking.version(api_version=False)["ApiVersion"]
        made = _Client(version=version, **options)
        # No proxy leads to a socket of this machine, and each call would look for one.
        made.trust_env = not self.is_local
        return made

    def _look_for_it(self) -> None:
        """See that it listens: the SDK forgets to close a socket that it cannot connect."""
        if self.is_local:
            with socket.socket(socket.AF_UNIX) as trying:
                trying.settimeout(CALL_SECONDS)
                trying.connect("/" + self.url.removeprefix("unix:").lstrip("/"))

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine."""
        return self.url.startswith("unix:")

    def call(self, action: str, call: Callable[[], T]) -> T:
        """Make a call of the SDK.

        Raises:
            EngineError: It failed.
        """
        try:
            self._look_for_it()
            return call()
        except ERRORS as error:
            raise EngineError(action, error) from error

    def attach(
        self,
        container: str,
        arguments: Sequence[str],
        *,
        user: str,
        folder: str,
        environ: Mapping[str, str] | None = None,
    ) -> Attached:
        """Start a program in a container; it should wait for a line before it writes.

        Raises:
            EngineError: There is no such container, or it does not run.
        """

        def start() -> Attached:
            made = self.api.exec_create(
                container,
                [*arguments],
                stdin=True,
                user=user,
                workdir=folder,
                environment=dict(environ or {}),
            )
            return Attached(self.api.exec_start(made["Id"], socket=True))

        return self.call("start a program in the container", start)

    def start(self, container: str) -> Attached:
        """Start a container, and give the connection to its main process.

        Raises:
            EngineError: It could not be started.
        """
        ends = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        attached = self.call(
            "attach to the container",
            lambda: Attached(self.api.attach_socket(container, params=ends)),
        )
        try:
            self.call("start the container", lambda: self.api.start(container))
        except BaseException:
            attached.close()
            raise
        return attached

    def image(self, name: str, given_up: threading.Event) -> Mapping[str, Any]:
        """Find an image, or get it from its registry.

        Args:
            name: Of the image.
            given_up: Set where nobody waits for it any more.

        Raises:
            SandboxStartError: It cannot be had.
        """
        try:
            found = self._found(name)
            if found is None:
                self._pull(name, given_up)
                found = self._found(name)
        except ERRORS as error:
            raise self._no_image(name, in_words(error)) from error
        if found is None:
            raise self._no_image(name, "its registry gave another one")
        return found

    def _found(self, name: str) -> Mapping[str, Any] | None:
        try:
            found: Mapping[str, Any] = self.api.inspect_image(name)  # type: ignore[no-untyped-call] # its stubs lack it
        except ImageNotFound:
            return None
        return found

    def _no_image(self, name: str, fact: str) -> SandboxStartError:
        return SandboxStartError(
            f"{self._sandbox}: the image {name} is not there and could not be pulled ({fact}); "
            "build, import or pull it yourself, or pass image= another one"
        )

    def _pull(self, name: str, given_up: threading.Event) -> None:
        """Have the engine get an image; its registry may never say anything."""
        failed: list[str] = []
        pulling = threading.Thread(
            target=self._pull_all, args=(name, failed, given_up), name="sandbox-pull", daemon=True
        )
        pulling.start()
        deadline = time.monotonic() + PULL_SECONDS
        while pulling.is_alive():
            pulling.join(_LOOK_SECONDS)
            if given_up.is_set() or time.monotonic() > deadline:
                given_up.set()
                raise self._no_image(name, "nobody waits for it any more")
        if failed:
            raise self._no_image(name, failed[0])

    def _pull_all(self, name: str, failed: list[str], given_up: threading.Event) -> None:
        repository, tag = utils.parse_repository_tag(name)
        try:
            # The whole of a repository would come without a tag.
            told = self.api.pull(repository, tag=tag or "latest", stream=True, decode=True)
            with contextlib.closing(told):
                for event in told:
                    if "error" in event:
                        failed.append(" ".join(str(event["error"]).split()))
                    if failed or given_up.is_set():
                        return
        except ERRORS as error:
            failed.append(in_words(error))

    def is_there(self, look: Callable[[], object]) -> bool:
        """Whether something that is looked at is there.

        Raises:
            EngineError: The engine did not say.
        """
        try:
            self.call("look at what is there", look)
        except EngineError as error:
            if error.status != GONE:
                raise
            return False
        return True

    def close(self) -> None:
        """Let go of the connections."""
        self.api.close()
