"""One container with its workspace: made, used and removed, by blocking calls."""

from __future__ import annotations

import contextlib
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from docker.types import LogConfig, Mount

from sandboxes.contract import SandboxError, SandboxStartError
from sandboxes.docker_dialogues import Dialogues, Unanswered, line_of, serving
from sandboxes.docker_engine import CONFLICT, GONE, Attached, Engine, EngineError
from sandboxes.docker_owner import SESSION_LABEL, Owner
from sandboxes.docker_programs import Answer, converse, words
from sandboxes.docker_streams import Dialogue

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

WORKSPACE = "/workspace"
INIT = "/sbin/docker-init"
"""Where the engine puts its init into a container, which adopts orphans when told to."""

CA_FILE = "/etc/sandbox-ca.pem"
CA_VARIABLES = (
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
)

_ROOT = "0:0"
_PREPARE_SECONDS = 60.0
_REMOVE_SECONDS = 30.0
_AGAIN_SECONDS = 0.1
_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a container is to be.

    Attributes:
        sandbox: What errors call the sandbox.
        session_id: The session it is for.
        image: What it is made of.
        shell: The shell of its commands.
        network_mode: The engine's name of its network.
        name_servers: Who answers for names; the engine's choice if empty.
        no_names: Whether the engine's public servers are to answer for none.
        ca_bundle: Certificates to trust beside the image's own.
    """

    sandbox: str
    session_id: str
    image: str
    shell: str
    network_mode: str
    name_servers: tuple[str, ...] = ()
    no_names: bool = False
    ca_bundle: Path | None = None

    @property
    def is_offline(self) -> bool:
        """Whether it has loopback alone."""
        return self.network_mode == "none"


class Container:
    """A container and the volume of its workspace.

    Attributes:
        name: The container's and the volume's; nobody else has it.
        user: As whom commands run.
    """

    def __init__(self, engine: Engine, plan: Plan) -> None:
        self._engine = engine
        self._plan = plan
        self.name = f"sandbox-{uuid.uuid4().hex}"
        self.user = ""
        self._dialogues = Dialogues(self._as_user)
        self._removed = False

    def made(self, given_up: threading.Event) -> Container:
        """Make it, ready for commands; what fails leaves nothing.

        Args:
            given_up: Set where nobody waits for it any more.

        Raises:
            SandboxStartError: It could not be made.
        """
        certificates = self._certificates()
        image = self._engine.image(self._plan.image, given_up)
        self.user = str((image.get("Config") or {}).get("User") or "")
        try:
            self._create(len(certificates))
            self._prepare(certificates)
        except SandboxError as error:
            fact = (
                f"no container could be made of the image {self._plan.image}, which needs sh, "
                f"sleep and setsid: {error}"
            )
            if isinstance(error, SandboxStartError):
                fact = str(error)
            raise SandboxStartError(f"{self._plan.sandbox}: {fact}{self._undone()}") from error
        except BaseException:
            self._undone()
            raise
        return self

    def _undone(self) -> str:
        """Remove what was made so far, and say what that did not do."""
        try:
            self.remove()
        except SandboxError as error:
            return f"; and {error}"
        return ""

    def _certificates(self) -> bytes:
        if self._plan.ca_bundle is None:
            return b""
        try:
            return self._plan.ca_bundle.read_bytes()
        except OSError as error:
            raise SandboxStartError(
                f"{self._plan.sandbox}: ca_bundle {self._plan.ca_bundle} cannot be read "
                f"({error.strerror}); name a file of certificates"
            ) from error

    def _create(self, certificates: int) -> None:
        api, plan, labels = self._engine.api, self._plan, self.labels()
        names = "offline" if plan.is_offline else "no-names" if plan.no_names else ""
        shell = serving() if self._is_roots else []
        self._engine.call("make a volume", lambda: api.create_volume(self.name, labels=labels))
        self._engine.call(
            "make the container",
            lambda: api.create_container(
                plan.image,
                # Commands run as the image's user, and cannot end what keeps the container.
                user=_ROOT,
                entrypoint=words("prepare"),
                command=[self.user, WORKSPACE, plan.shell, names, str(certificates), *shell],
                stdin_open=True,
                working_dir=WORKSPACE,
                name=self.name,
                labels=labels,
                environment=dict.fromkeys(CA_VARIABLES, CA_FILE) if certificates else {},
                healthcheck={"test": ["NONE"]},
                # The runtime makes the namespace all the same, with loopback in it; an engine
                # that looks after it too starts itself twice for that, which is most of a start.
                network_disabled=plan.is_offline,
                host_config=api.create_host_config(**self.host_options()),
            ),
        )

    @property
    def _is_roots(self) -> bool:
        """Whether commands have the user of the main process."""
        return self.user in ("", "0", "root", _ROOT)

    def labels(self) -> dict[str, str]:
        """What both are found by."""
        return {
            SESSION_LABEL: self._plan.session_id,
            **Owner.here().labels(),
        }

    def host_options(self) -> dict[str, Any]:
        """How the container stands to the machine: its network and what is mounted."""
        return {
            "init": True,
            "network_mode": self._plan.network_mode,
            "dns": [*self._plan.name_servers],
            "mounts": [Mount(WORKSPACE, self.name, type="volume")],
            # What commands write is no log, and the engine is to keep nothing of it.
            "log_config": LogConfig(type="none"),
        }

    def _prepare(self, certificates: bytes) -> None:
        """Start it, and hear whether it has what it needs.

        That is its main process's own work: another exec takes as long as the start.
        """
        begun: list[Dialogue] = []
        answer = converse(
            self,
            "prepare",
            lambda _: Dialogue(self._engine.start(self.name)),
            seconds=_PREPARE_SECONDS,
            data=certificates,
            over=begun.append,
        )
        for dialogue in begun:
            if self._is_roots and not answer.word:
                self._dialogues.first(dialogue)
            else:
                dialogue.close()
        if answer.word:
            raise SandboxStartError(
                f"the image {self._plan.image} has {answer.word}; "
                "add it to the image, or pass image= another one"
            )

    def run(
        self, name: str, arguments: Sequence[str], environ: Mapping[str, str], token: str
    ) -> Dialogue:
        """Run a program of ours as the user of the commands, below an init of its own.

        Args:
            name: Which one.
            arguments: Its own, of any length.
            environ: More variables for it.
            token: What both streams may have on a line when it has ended.

        Raises:
            SandboxError: The container is gone, or the engine is.
        """
        line = line_of([INIT, "--", *_named(name)], arguments, environ)
        if line is not None:
            return self._told(line, token)
        return Dialogue(self._as_user([INIT, "--", *words(name, *arguments)], environ))

    def over(self, dialogue: Dialogue) -> None:
        """Take back the connection of a program that ended in good order."""
        self._dialogues.over(dialogue)

    def ask(
        self, name: str, arguments: Sequence[str], *, seconds: float, data: bytes = b""
    ) -> Answer:
        """Run a program of ours to its end, as the user of the commands.

        Raises:
            SandboxError: The container is gone, or the engine is; or it took too long.
        """

        def start(token: str) -> Dialogue:
            line = line_of(_named(name), arguments, {})
            if line is not None:
                return self._told(line, token)
            return Dialogue(self._as_user(words(name, *arguments)))

        return converse(self, name, start, seconds=seconds, data=data, over=self._dialogues.over)

    def as_root(self, name: str, arguments: Sequence[str], seconds: float) -> str:
        """Run a program of ours as root, and give the word that it ends with."""

        def start(_: str) -> Dialogue:
            return Dialogue(self._attach(words(name, *arguments), user=_ROOT, folder="/"))

        return converse(self, name, start, seconds=seconds).word

    def _told(self, line: str, token: str) -> Dialogue:
        try:
            return self._dialogues.begin(line, token)
        except (Unanswered, OSError) as error:
            said = error.said if isinstance(error, Unanswered) else b""
            raise self.broken("run anything", said) from error

    def _as_user(
        self, arguments: Sequence[str], environ: Mapping[str, str] | None = None
    ) -> Attached:
        return self._attach(arguments, user=self.user, folder=WORKSPACE, environ=environ)

    def _attach(
        self,
        arguments: Sequence[str],
        *,
        user: str,
        folder: str,
        environ: Mapping[str, str] | None = None,
    ) -> Attached:
        try:
            return self._engine.attach(
                self.name, arguments, user=user, folder=folder, environ=environ
            )
        except EngineError as error:
            if error.status in (GONE, CONFLICT):
                raise self.broken("run anything", error.fact.encode()) from error
            raise

    def broken(self, action: str, said: bytes) -> SandboxError:
        """The error for what did not come to its end: most of all, the container's own end."""
        text = " ".join(said.decode(errors="replace").split())[-_SHOWN:]
        try:
            state = self._state()
        except EngineError as error:
            fact = error.fact
        else:
            ended = f"it ended with exit code {state['ExitCode']}"
            fact = (text or "it was killed") if state["Running"] else ended
        return SandboxError(
            f"the sandbox's container cannot {action} ({fact}); start another session"
        )

    def is_running(self) -> bool:
        """Whether it has not ended."""
        with contextlib.suppress(EngineError):
            return bool(self._state()["Running"])
        return False

    def _state(self) -> Mapping[str, Any]:
        api = self._engine.api
        seen = self._engine.call("look at it", lambda: api.inspect_container(self.name))
        state: Mapping[str, Any] = seen["State"]
        return state

    def inventory(self) -> list[str]:
        """Name what there is of both."""
        if self._removed:  # and the engine is not asked any more
            return []
        api = self._engine.api
        return [
            *(
                [f"container {self.name}"]
                if self._engine.is_there(lambda: api.inspect_container(self.name))
                else []
            ),
            *(
                [f"volume {self.name}"]
                if self._engine.is_there(lambda: api.inspect_volume(self.name))
                else []
            ),
        ]

    def remove(self) -> None:
        """Remove both, whatever runs in them; once is enough, twice is harmless.

        Raises:
            SandboxError: The engine did not do it in time.
        """
        engine, api = self._engine, self._engine.api
        self._dialogues.close()
        deadline = time.monotonic() + _REMOVE_SECONDS
        try:
            # Its anonymous volumes are those that the image declares.
            gone(engine, lambda: api.remove_container(self.name, force=True, v=True), deadline)
            gone(engine, lambda: api.remove_volume(self.name, force=True), deadline)
        except EngineError as error:
            raise SandboxError(
                f"{self._plan.sandbox}: the container and volume {self.name} could not be "
                f"removed ({error.fact}); docker rm -f -v {self.name}; "
                f"docker volume rm {self.name}"
            ) from error
        self._removed = True


def _named(name: str) -> list[str]:
    """The words that run a program of ours in a shell that has it."""
    return ["/bin/sh", "-c", f'"$__{name}"', "sh"]


def gone(engine: Engine, remove: Callable[[], object], deadline: float) -> None:
    """Call what removes something until it is gone.

    Raises:
        EngineError: It is not gone in time, or the engine says that it will not be.
    """
    while True:
        try:
            engine.call("remove it", remove)
        except EngineError as error:
            if error.status == GONE:
                return
            if error.status != CONFLICT or time.monotonic() > deadline:
                raise
        else:
            return
        time.sleep(_AGAIN_SECONDS)


def remove_leftovers(engine: Engine) -> None:
    """Remove what processes of this machine left behind that were killed.

    Raises:
        EngineError: The engine did not do it.
    """
    api, chosen = engine.api, {"label": SESSION_LABEL}
    deadline = time.monotonic() + _REMOVE_SECONDS
    found = engine.call("list containers", lambda: api.containers(all=True, filters=chosen))
    for entry in found:
        if _is_left(entry["Labels"]):
            gone(
                engine,
                lambda name=entry["Id"]: api.remove_container(name, force=True, v=True),  # type: ignore[misc]
                deadline,
            )
    volumes = engine.call("list volumes", lambda: api.volumes(filters=chosen))["Volumes"]
    for entry in volumes or ():
        if _is_left(entry["Labels"]):
            gone(
                engine,
                lambda name=entry["Name"]: api.remove_volume(name, force=True),  # type: ignore[misc]
                deadline,
            )


def _is_left(labels: Mapping[str, str] | None) -> bool:
    owner = Owner.of(labels)
    return owner is not None and owner.is_gone()
