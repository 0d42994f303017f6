"""A container engine's own account of what there is, asked over its socket.

No client library: the subject may use that one, and a witness shares no fault with it.
"""

from __future__ import annotations

import http.client
import io
import json
import socket
from contextlib import closing
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from conformance.lab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_ANSWER_SECONDS = 20.0
_LOAD_SECONDS = 120.0
_OWN_NETWORKS = {"bridge", "host", "none"}


class EngineApi:
    """One engine.

    Args:
        path: its unix socket.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def answers(self) -> bool:
        """Whether an engine answers there."""
        try:
            return self._call("GET", "/_ping")[0] == 200
        except OSError:
            return False

    def items(self) -> dict[tuple[str, str], str]:
        """Give a readable line for each container, volume and network, by kind and identity.

        Raises:
            LabError: the engine does not answer as one.
        """
        found = {}
        for container in self._json("/containers/json?all=1"):
            name, state = ", ".join(container["Names"]).replace("/", ""), container["State"]
            line = f"container {name or container['Id'][:12]} of {container['Image']} ({state})"
            found["container", container["Id"]] = line
        for volume in self._json("/volumes")["Volumes"] or ():
            found["volume", volume["Name"]] = f"volume {volume['Name']}"
        for network in self._json("/networks"):
            if network["Name"] not in _OWN_NETWORKS:
                found["network", network["Id"]] = f"network {network['Name']}"
        return found

    def images(self) -> list[str]:
        """Give the names of the images, in alphabetical order.

        Raises:
            LabError: the engine does not answer as one.
        """
        every = self._json("/images/json")
        return sorted(
            name for image in every for name in image["RepoTags"] or () if "<none>" not in name
        )

    def inspect(self, container: str) -> Mapping[str, Any]:
        """Give all that the engine knows of a container.

        Raises:
            LabError: there is no such container, or the engine does not answer as one.
        """
        found: Mapping[str, Any] = self._json(f"/containers/{quote(container)}/json")
        return found

    def changed_image(self, image: str, command: str, name: str) -> bool:
        """Make an image from another one by a shell command; remove it by `remove`.

        Args:
            image: The other one.
            command: For `/bin/sh` in it, without a network.
            name: Of the new one, as `repository:tag`.

        Returns:
            Whether the command was successful; without that there is no new image.

        Raises:
            LabError: the engine refused a step.
        """
        fields = {
            "Image": image,
            "Entrypoint": ["/bin/sh", "-c", command],
            "User": "0",
            "HostConfig": {"NetworkMode": "none"},
        }
        container = self.start(fields)
        try:
            ended = self._done("wait for a container", f"/containers/{container}/wait")
            if ended["StatusCode"] != 0:
                return False
            own = self._json(f"/images/{quote(image)}/json")["Config"]
            repository, _, tag = name.rpartition(":")
            options = urlencode({"container": container, "repo": repository, "tag": tag})
            self._done("commit a container", f"/commit?{options}", own)
            return True
        finally:
            self.remove([("container", container)])

    def start(self, fields: Mapping[str, Any]) -> str:
        """Create a container with these fields of the engine's interface, and start it.

        Returns:
            Its identity.

        Raises:
            LabError: the engine refused it; it is removed.
        """
        container = str(self._done("create a container", "/containers/create", fields)["Id"])
        try:
            self._done("start a container", f"/containers/{container}/start")
        except LabError:
            self.remove([("container", container)])
            raise
        return container

    def image_id(self, name: str) -> str | None:
        """Give the identity of the image with this name, if there is one."""
        status, answer = self._call("GET", f"/images/{quote(name)}/json")
        return str(json.loads(answer)["Id"]) if status == 200 else None

    def load(self, archive: IO[bytes]) -> None:
        """Load images from an archive such as `docker save` writes.

        Raises:
            LabError: the engine refused it.
        """
        status, answer = self._call("POST", "/images/load?quiet=1", archive, _LOAD_SECONDS)
        if status != 200 or b'"error"' in answer:
            raise LabError(f"the engine loaded no image: {_told(answer)}")

    def remove(self, items: Iterable[tuple[str, str]]) -> None:
        """Remove containers, volumes, networks and images, in this order.

        Raises:
            LabError: one is still there.
        """
        order = {
            "container": "?force=1&v=1",
            "volume": "?force=1",
            "network": "",
            "image": "?force=1",
        }
        for kind, options in order.items():
            for name in (identity for one, identity in items if one == kind):
                status, answer = self._call("DELETE", f"/{kind}s/{quote(name)}{options}")
                if status not in (200, 204, 404, 409):  # going already
                    raise LabError(f"the engine did not remove a {kind}: {_told(answer)}")

    def _done(self, action: str, path: str, fields: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - JSON
        body = None if fields is None else io.BytesIO(json.dumps(fields).encode())
        try:
            status, answer = self._call("POST", path, body, kind="application/json")
        except OSError as cause:
            raise LabError(f"the container engine did not {action}: {cause}") from cause
        if status not in (200, 201, 204):
            raise LabError(f"the container engine did not {action}: {_told(answer)}")
        return json.loads(answer or b"null")

    def _json(self, path: str) -> Any:  # noqa: ANN401 - JSON
        try:
            status, answer = self._call("GET", path)
        except OSError as cause:
            raise LabError(f"the container engine does not answer: {cause}") from cause
        if status != 200:
            raise LabError(f"the container engine answered {status}: {_told(answer)}")
        return json.loads(answer)

    def _call(
        self,
        method: str,
        path: str,
        body: IO[bytes] | None = None,
        seconds: float = _ANSWER_SECONDS,
        kind: str = "application/x-tar",
    ) -> tuple[int, bytes]:
        with closing(_Connection(self._path, seconds)) as connection:
            headers = {"Content-Type": kind} if body else {}
            try:
                connection.request(method, path, body, headers, encode_chunked=body is not None)
                response = connection.getresponse()
                return response.status, response.read()
            except http.client.HTTPException as cause:
                raise OSError(f"no HTTP answer: {cause}") from cause


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._place = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._place)


def _told(answer: bytes) -> str:
    return answer.decode("utf-8", "replace").strip()[:300]
