"""Sockets of the harness itself that hear who comes: witnesses of what no network carries.

They listen where a sandbox's own host has services: at any port of its loopback, at a
path, at an abstract name. No barrier is needed but a call of the harness's own: what came
before it stands before it in the kernel's queue.
"""

from __future__ import annotations

import secrets
import socket
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from conformance.verdicts import HarnessError, NotApplicable

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Self

Kind = Literal["stream", "datagram"]
Address = str | bytes | tuple[str, int]

_TYPES = {"stream": socket.SOCK_STREAM, "datagram": socket.SOCK_DGRAM}
_BYTES = 4096
_FIRST_BYTES_SECONDS = 0.2
_OWN_CALL_SECONDS = 10.0


class Ear:
    """A socket that takes every call, notes it and hangs up.

    Args:
        family: Its address family.
        kind: Streams or datagrams.
        address: Where it is bound.

    Raises:
        OSError: It cannot be bound there.
    """

    def __init__(self, family: int, kind: Kind, address: Address) -> None:
        self._kind = kind
        self._family = family
        self._socket = socket.socket(family, _TYPES[kind])
        # Or else a port that was just heard at could not be had again for a minute.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(kind == "stream"))
        try:
            self._socket.bind(address)
            if kind == "stream":
                self._socket.listen()
        except OSError:
            self._socket.close()
            raise
        self._path: Path | None = None
        self._noted: list[bytes] = []
        self._closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._take_all, daemon=True)
        self._thread.start()

    @classmethod
    def at_loopback(cls, address: str, kind: Kind, port: int = 0) -> Ear:
        """Listen on the host's loopback.

        Args:
            address: A loopback address.
            kind: Streams or datagrams.
            port: Which port, if it is free; else, and for 0, any.

        Raises:
            NotApplicable: The host has no such address.
        """
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        for wanted in dict.fromkeys((port, 0)):
            try:
                return cls(family, kind, (address, wanted))
            except OSError as error:
                refused = error
        raise NotApplicable(f"this host has no loopback address {address} ({refused.strerror})")

    @classmethod
    def at_path(cls, path: Path, kind: Kind) -> Ear:
        """Listen at a path, open to every account.

        Raises:
            OSError: Nothing can be made there.
        """
        ear = cls(socket.AF_UNIX, kind, str(path))
        path.chmod(0o777)
        ear._path = path
        return ear

    @classmethod
    def at_abstract_name(cls, name: str, kind: Kind) -> Ear:
        """Listen at a name that is in no file system.

        Raises:
            NotApplicable: The host's system has no such names.
        """
        if sys.platform != "linux":
            raise NotApplicable("abstract names of sockets exist on Linux alone")
        return cls(socket.AF_UNIX, kind, b"\0" + name.encode())

    @property
    def port(self) -> int:
        """Its port, on loopback."""
        number: int = self._socket.getsockname()[1]
        return number

    def heard(self) -> list[str]:
        """Give a line for each call that came before this one, once.

        Raises:
            HarnessError: It does not hear the harness's own call either.
        """
        token = secrets.token_hex(8).encode()
        try:
            self._call(token)
        except OSError as error:
            raise HarnessError(f"the harness cannot reach its own socket: {error}") from error
        with self._changed:
            if not self._changed.wait_for(lambda: token in self._noted, _OWN_CALL_SECONDS):
                raise HarnessError("the harness's own socket does not hear; is the machine busy?")
            calls = self._noted[: self._noted.index(token)]
            del self._noted[: len(calls) + 1]
        return [f"a {self._kind} with {call[:40]!r}" for call in calls]

    def close(self) -> None:
        """Stop listening, and leave nothing at the path."""
        self._closing = True
        # Either wakes the thread, which a mere close would leave in its call.
        with suppress(OSError):
            self._call(b"")
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(_OWN_CALL_SECONDS)
        self._socket.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _call(self, payload: bytes) -> None:
        with socket.socket(self._family, _TYPES[self._kind]) as caller:
            caller.settimeout(_OWN_CALL_SECONDS)
            caller.connect(self._socket.getsockname())
            caller.sendall(payload)

    def _take_all(self) -> None:
        while not self._closing:
            with suppress(OSError):  # it was taken back before it could be taken
                call = self._take()
                with self._changed:
                    self._noted.append(call)
                    self._changed.notify_all()

    def _take(self) -> bytes:
        if self._kind == "datagram":
            return self._socket.recv(_BYTES)
        peer, _ = self._socket.accept()
        with peer:
            peer.settimeout(_FIRST_BYTES_SECONDS)
            try:
                return peer.recv(_BYTES)
            except OSError:
                return b""  # it said nothing, and still it came
