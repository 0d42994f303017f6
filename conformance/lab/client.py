"""The client's view of the lab: what checks use to make sites and to ask what was seen."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from conformance.lab import controls, engine
from conformance.lab.addresses import CLOUD_DEVICE, GATEWAY_IPV4, MARKER_PORT, plain
from conformance.lab.cloud.client import CloudClient
from conformance.lab.cloud.place import DOOR
from conformance.lab.engine_api import EngineApi
from conformance.lab.errors import LabError, LabUnavailable
from conformance.lab.github.client import GitHubClient
from conformance.lab.journal import MARKER, Mark, Sighting
from conformance.lab.locks import Room, Turn
from conformance.lab.plan import (
    ADDRESSES_LOCK_NAME,
    BUNDLE_NAME,
    CONTROL_NAME,
    LAB_VARIABLE,
    LOCK_NAMES,
    Facts,
)
from conformance.lab.sandbox_proxy.client import SandboxProxyClient
from conformance.lab.seal import verify_seal
from conformance.lab.sites import Certificate, Names, Site
from conformance.verdicts import NotRun

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

_ANSWER_SECONDS = 20.0
_MARKER_PLACE = (GATEWAY_IPV4, MARKER_PORT)
_BEHAVIOURS = {
    *("answer", "silent", "close", "reset", "echo", "reflect", "drip", "loop"),
    *("slow", "large", "status"),
}


class Lab:
    """A connection to the lab that this process runs in; made by `connect`.

    Not for use across a fork. Several threads may share one.

    Args:
        folder: the lab's folder.
        facts: what it says of itself.
        worker: name of this worker, unique among those that use the lab at a time.
    """

    def __init__(self, folder: Path, facts: Facts, worker: str) -> None:
        self._worker = worker
        self._facts = facts
        self.folder = folder
        self._guard = threading.Lock()
        self._asked = 0
        self._room = Room(*(folder / name for name in LOCK_NAMES))
        self._turn = Turn(folder / ADDRESSES_LOCK_NAME)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(_ANSWER_SECONDS)
        try:
            self._socket.connect(str(folder / CONTROL_NAME))
        except OSError as cause:
            self._socket.close()
            raise LabError(f"the lab's servers cannot be reached: {cause}") from cause
        self._answers = self._socket.makefile("rb")
        self._marker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.ca_bundle = folder / BUNDLE_NAME
        self.judged = 0

    @classmethod
    def connect(cls, worker: str = "main", *, own_devices: Sequence[str] = ()) -> Lab:
        """Find the lab that this process runs in, and verify its seal.

        Args:
            worker: name of this worker, letters and digits.
            own_devices: beginnings of names of network devices that were made inside on
                purpose, such as those of a container engine.

        Raises:
            LabError: there is no lab, its servers are gone, or its seal is broken.
        """
        folder = os.environ.get(LAB_VARIABLE)
        if not folder:
            raise LabError(
                f"{LAB_VARIABLE} is not set: this process runs in no lab; "
                "start it through run_in_lab"
            )
        facts = Facts.read(Path(folder))
        engines = engine.DEVICES if engine.SOCKET.exists() else ()
        cloud = (CLOUD_DEVICE,) if DOOR.exists() else ()
        verify_seal(facts, own_devices=(*own_devices, *engines, *cloud))
        return cls(Path(folder), facts, worker)

    def close(self) -> None:
        """Let go of the connection; sites stay defined."""
        self._answers.close()
        self._socket.close()
        self._marker.close()
        self._room.close()
        self._turn.close()

    def __enter__(self) -> Self:
        """Give the lab itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the connection."""
        self.close()

    @property
    def mode(self) -> str:
        """Either "sealed" or "loopback"."""
        return self._facts.mode

    @property
    def missing(self) -> Mapping[str, str]:
        """What this lab cannot show, each with the reason and the remedy."""
        return self._facts.missing

    def start_engine(self) -> str:
        """Give the address of the lab's container engine, which starts at the first call.

        Raises:
            LabUnavailable: there is none; the message says what to do.
        """
        return engine.request(self._facts)

    def engine(self) -> EngineApi:
        """Give the lab's container engine, for what it knows of the subject's containers.

        Raises:
            LabUnavailable: there is none.
        """
        return EngineApi(self.start_engine().removeprefix("unix://"))

    def cloud(self) -> CloudClient:
        """Give the lab's cloud, which starts at the first question.

        All workers have the one: who has it do something wrong, or empties it, is `alone`.

        Raises:
            LabUnavailable: there is none.
        """
        return CloudClient(self._service("cloud"))

    def sandbox_proxy(self) -> SandboxProxyClient:
        """Give the lab's Sandbox Proxy, which starts at the first question.

        All workers have the one; each check makes users of its own, and is not `alone`.

        Raises:
            LabUnavailable: there is none.
        """
        return SandboxProxyClient(self._service("sandbox proxy"))

    def github(self) -> GitHubClient:
        """Give the lab's GitHub, which starts at the first question.

        All workers have the one; each check makes repositories of its own, and is not `alone`.

        Raises:
            LabUnavailable: there is none.
            NotRun: git is not installed.
        """
        if shutil.which("git") is None:
            raise NotRun("the lab's GitHub needs git; install it (apt-get install git)")
        return GitHubClient(self._service("GitHub"))

    def _service(self, name: str) -> str:
        if name not in self._facts.services:
            raise LabUnavailable(
                f"only a sealed lab has a {name}; run as root or allow user namespaces, "
                "without --lab"
            )
        return self._facts.services[name]

    def require_image(self, name: str) -> None:
        """Check that the lab's container engine has an image: no registry is in reach.

        Raises:
            LabUnavailable: it has not; the message names those that there are.
        """
        engine.require_image(self.engine(), self._facts, name)

    def site(
        self,
        *,
        certificate: Certificate = "good",
        addresses: Sequence[str] | None = None,
        family: Literal[4, 6, 46] = 4,
        redirect: str | tuple[int, str] | None = None,
        dns: Names | Sequence[Sequence[str]] | None = None,
        behaviour: str = "answer",
        name: str | None = None,
    ) -> Site:
        """Make a site with a name and, unless given, an address that nobody else has.

        Args:
            certificate: "good", or what is wrong with it.
            addresses: its addresses, which other sites may share; then what came to them
                since now counts as seen at the site, and the caller holds `addresses`.
            family: 4, 6, or 46 for an address of each.
            redirect: where each request is sent on to, by 302 or the status given.
            dns: how its name resolves, when not simply to its addresses: `Names`, or an
                answer for each question in turn.
            behaviour: "answer" (200 and the token), "echo" (the request as JSON),
                "reflect" (the values of its headers, in headers and in the body), "drip"
                (the same in the body, a few bytes at a time), "silent"
                (takes the connection and never speaks), "close" (takes a request and hangs
                up), "reset", "loop" (redirects to itself), "slow:SECONDS", "large:BYTES",
                "status:CODE".
            name: its host name, such as a look-alike of another site's.

        Raises:
            LabError: the lab does not know the behaviour or the certificate, or an address is none.
            NotRun: this lab has no names or no other addresses.
        """
        if behaviour.partition(":")[0] not in _BEHAVIOURS:
            raise LabError(f"the behaviour {behaviour!r} is none of {sorted(_BEHAVIOURS)}")
        if certificate not in get_args(Certificate):
            raise LabError(f"the certificate {certificate!r} is none of {get_args(Certificate)}")
        if self.mode == "loopback":
            for wanted, what in ((addresses, "private"), (dns, "dns"), (name, "names")):
                if wanted is not None:
                    raise NotRun(self.missing[what])
        try:
            given = [plain(address) for address in addresses or ()]
        except ValueError as cause:
            raise LabError(f"a site's addresses are IP addresses: {cause}") from cause
        nonce = _new_nonce()
        names = dns if isinstance(dns, Names) or dns is None else Names(dns)
        return self._define(
            nonce=nonce,
            family=family,
            on_host=False,
            name=self._name(name, nonce),
            given=given,
            certificate=certificate,
            behaviour=behaviour,
            redirect=(302, redirect) if isinstance(redirect, str) else redirect,
            names=names.to_wire() if names else None,
        )

    def _name(self, name: str | None, nonce: str) -> str | None:
        if self.mode == "loopback":
            return self._facts.place or None
        return name or f"{nonce}.{self._worker}.site.test"

    def loopback_site(self, family: Literal[4, 6] = 4) -> Site:
        """Give a service of the subject's own host, on its loopback address.

        Its ports are this worker's; what came to them since now counts as seen at it.
        """
        return self._define(
            nonce=_new_nonce(),
            family=family,
            on_host=True,
            name=None,
            given=[],
            certificate="good",
            behaviour="answer",
            redirect=None,
            names=None,
        )

    def _define(self, **fields: Any) -> Site:  # noqa: ANN401 - JSON
        return Site.from_wire(self._ask("define", worker=self._worker, **fields))

    def proxy(self, kind: Literal["honest", "yes"] = "honest") -> str:
        """Give the URL of a forward proxy: one that does as asked, or one that says 200 to all."""
        return self._facts.proxies[kind]

    def seen(self, site: Site) -> list[Sighting]:
        """Give everything of `site` that left before this call, in its order.

        An event is the site's by its address, its name in any spelling or as part of a
        longer one, or its nonce in a path or payload. What `reach` did is left out.

        Raises:
            LabError: the lab cannot say for sure.
        """
        self.judged += 1
        return self._seen(site, controls=False)

    def _seen(self, site: Site, *, controls: bool) -> list[Sighting]:
        answer = self._ask_after_barrier("seen", nonce=site.nonce, controls=controls)
        return [Sighting.from_wire(event) for event in answer["events"]]

    def mark(self) -> Mark:
        """Give the point in the journal behind everything that left before this call.

        Raises:
            LabError: the lab cannot say for sure.
        """
        return Mark(self._ask_after_barrier("mark")["number"])

    def traffic(self, mark: Mark) -> list[Sighting]:
        """Give everything that left since `mark`, whosever it is; for those who are `alone`.

        Raises:
            LabError: the lab cannot say for sure.
        """
        answer = self._ask_after_barrier("traffic", since=mark.number)
        return [Sighting.from_wire(event) for event in answer["events"]]

    def shared(self) -> AbstractContextManager[None]:
        """Be in the lab beside others; every check is."""
        return self._room.shared()

    def alone(self) -> AbstractContextManager[None]:
        """Be in the lab with nobody else among the workers.

        Raises:
            LabError: the others did not leave in time.
        """
        return self._room.alone()

    def addresses(self) -> AbstractContextManager[None]:
        """Be the only worker that makes sites of given addresses, beside others that do not.

        Raises:
            LabError: the others did not finish in time.
        """
        return self._turn.taken()

    def reach(
        self, site: Site, scheme: Literal["https", "http", "tcp", "udp", "dns"] = "https"
    ) -> list[Sighting]:
        """Go to `site` with the harness's own unrestricted client, which must arrive.

        Args:
            site: where to go.
            scheme: by what.

        Returns:
            What the lab saw of it; `seen` leaves it out.

        Raises:
            LabError: the lab did not see it, so that no refusal can be told there.
        """
        before = {event.number for event in self._seen(site, controls=True)}
        with controls.source_socket(site, scheme) as client:
            protocol = "udp" if client.type == socket.SOCK_DGRAM else "tcp"
            source = (protocol, client.getsockname()[1])
            self._ask("controls", add=[source], remove=[])
            try:
                controls.go(client, site, scheme, self.ca_bundle)
            except OSError as cause:
                raise LabError(
                    f"the lab's own {scheme} client did not reach {site.name}: {cause}"
                ) from cause
            finally:
                seen = self._seen(site, controls=True)
                self._ask("controls", add=[], remove=[source])
        arrived = [event for event in seen if event.number not in before]
        if not any(event.kind == controls.PROOF[scheme] for event in arrived):
            raise LabError(f"the lab did not see its own {scheme} client at {site.name}")
        return arrived

    def _ask_after_barrier(self, what: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
        marker = secrets.token_hex(8)
        if self.mode == "sealed":
            try:
                # Not connected: nothing listens there, and the refusal does not matter.
                self._marker.sendto(MARKER + marker.encode(), _MARKER_PLACE)
            except OSError as cause:
                raise LabError(f"the lab's wire is cut: {cause}") from cause
        return self._ask(what, marker=marker, **fields)

    def _ask(self, what: str, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        with self._guard:
            self._asked += 1
            question = {"do": what, "id": self._asked, **fields}
            answer: dict[str, Any] = {}
            try:
                self._socket.sendall(json.dumps(question).encode() + b"\n")
                # An earlier question may have been interrupted before its answer came.
                while answer.get("id") != self._asked:
                    line = self._answers.readline()
                    if not line:
                        raise LabError("the lab's servers have ended; see their message on stderr")
                    answer = json.loads(line)
            except (OSError, ValueError) as cause:
                raise LabError(f"the lab's servers do not answer: {cause}") from cause
        del answer["id"]
        if "error" in answer:
            raise LabError(answer["error"])
        return answer


def _new_nonce() -> str:
    return f"n{secrets.token_hex(7)}z"
