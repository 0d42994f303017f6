"""The first words of a TLS client, and the frames that all its words come in."""

from __future__ import annotations

from dataclasses import dataclass

_HANDSHAKE, _CLIENT_HELLO = 22, 1
_SERVER_NAME, _ENCRYPTED_CLIENT_HELLO = 0, 0xFE0D
_RECORD_TYPES = frozenset({20, 21, 22, 23})  # ..., alert, handshake, application data
_MAX_RECORD = 16384 + 256
MAX_HELLO = 64 * 1024
UNRECOGNIZED_NAME, DECODE_ERROR, MISSING_EXTENSION = 112, 50, 109


class NotTls(ValueError):
    """The bytes are no TLS, or no ClientHello. The message says in which way."""


@dataclass(frozen=True, slots=True)
class ClientHello:
    """What a client says before anything is encrypted.

    Attributes:
        server_name: The host that it wants, as it wrote it; None where it names none.
        encrypted: It brings another, encrypted hello (ECH), which nobody between can read.
    """

    server_name: str | None
    encrypted: bool


def fatal_alert(description: int) -> bytes:
    """A TLS alert that a client can read as long as nothing is encrypted."""
    return bytes((21, 3, 3, 0, 2, 2, description))


def read_client_hello(data: bytes) -> ClientHello | None:
    """Read the first record or records of a client.

    Args:
        data: All that came so far.

    Returns:
        None where more has to come.

    Raises:
        NotTls: Whatever comes, it will not be a ClientHello.
    """
    message = _first_message(data)
    return None if message is None else _parse(_Fields(message))


def _first_message(data: bytes) -> bytes | None:
    """The body of the first handshake message, which several records may hold."""
    message, start = b"", 0
    while start < len(data):
        record = data[start : start + 5]
        if record[0] != _HANDSHAKE or (len(record) > 1 and record[1] != 3):
            raise NotTls("the first bytes are no TLS handshake")
        if len(record) < 5:
            return None
        length = int.from_bytes(record[3:5], "big")
        if not 0 < length <= _MAX_RECORD:
            raise NotTls("the first TLS record has an impossible length")
        message += data[start + 5 : start + 5 + length]
        start += 5 + length
        if message and message[0] != _CLIENT_HELLO:
            raise NotTls("the first TLS message is no ClientHello")
        end = 4 + int.from_bytes(message[1:4], "big")
        if len(message) >= 4 and end > MAX_HELLO:
            raise NotTls("the ClientHello is too long")
        if len(message) >= 4 and len(message) >= end:
            return message[4:end]
    return None


class _Fields:
    """Reads the fields of a message in turn; one that is cut short is no TLS."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) != count:
            raise NotTls("the ClientHello is cut short")
        self._at += count
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def block(self, size: int) -> bytes:
        """Take what begins with its own length, in so many bytes."""
        return self.take(self.number(size))


def _parse(hello: _Fields) -> ClientHello:
    hello.take(2 + 32)  # version, random
    hello.block(1)  # session id
    hello.block(2)  # cipher suites
    hello.block(1)  # compression methods
    found: dict[int, bytes] = {}
    extensions = _Fields(hello.block(2)) if hello else _Fields(b"")
    while extensions:
        kind, content = extensions.number(2), extensions.block(2)
        if kind in found:
            raise NotTls("the ClientHello repeats an extension")
        found[kind] = content
    if hello:
        raise NotTls("the ClientHello has bytes after its end")
    name = _server_name(found[_SERVER_NAME]) if _SERVER_NAME in found else None
    return ClientHello(name, _ENCRYPTED_CLIENT_HELLO in found)


def _server_name(content: bytes) -> str:
    outer = _Fields(content)
    names = _Fields(outer.block(2))
    kind, name = names.number(1), names.block(2)
    if outer or names or kind != 0 or not name.isascii():
        raise NotTls("the ClientHello's server name is malformed")
    return name.decode("ascii")


class RecordGate:
    """Follows the frames of a stream of TLS records, and nothing of what is in them."""

    def __init__(self) -> None:
        self._head = b""
        self._left = 0

    def check(self, data: bytes) -> None:
        """Look at the next bytes.

        Raises:
            NotTls: They are no TLS records.
        """
        at = 0
        while at < len(data):
            if self._left:
                step = min(self._left, len(data) - at)
                self._left -= step
                at += step
                continue
            taken = data[at : at + 5 - len(self._head)]
            self._head += taken
            at += len(taken)
            if self._head[0] not in _RECORD_TYPES or self._head[1:2] not in (b"", b"\x03"):
                raise NotTls("what follows is no TLS record")
            if len(self._head) == 5:
                self._left = int.from_bytes(self._head[3:5], "big")
                self._head = b""
                if not 0 < self._left <= _MAX_RECORD:
                    raise NotTls("a TLS record has an impossible length")
