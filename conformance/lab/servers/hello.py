"""Reading a TLS ClientHello: only what a witness tells, the server name and the protocols."""

from __future__ import annotations

from dataclasses import dataclass

HANDSHAKE = 22
_CLIENT_HELLO = 1
_SERVER_NAME = 0
_ALPN = 16


@dataclass(frozen=True)
class ClientHello:
    """What a client says first.

    Args:
        name: server name in lower case, or "".
        alpn: protocols offered.
    """

    name: str = ""
    alpn: tuple[str, ...] = ()


class Incomplete(Exception):
    """More bytes are needed."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise Incomplete
        chunk = self._data[self._at : end]
        self._at = end
        return chunk

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def block(self, size: int) -> _Reader:
        return _Reader(self.take(self.number(size)))

    def rest(self) -> bytes:
        return self._data[self._at :]

    def __bool__(self) -> bool:
        return self._at < len(self._data)


def parse(data: bytes) -> ClientHello:
    """Read the hello at the beginning of a stream.

    Raises:
        Incomplete: the stream ends before the hello does, or its lengths contradict.
        ValueError: this is no ClientHello.
    """
    records = _Reader(data)
    message = b""
    while True:
        if records.number(1) != HANDSHAKE:
            raise ValueError("no handshake record")
        records.take(2)
        message += records.block(2).rest()
        body = _Reader(message)
        if body.number(1) != _CLIENT_HELLO:
            raise ValueError("no ClientHello")
        size = body.number(3) if len(message) >= 4 else len(message)
        if len(message) >= 4 and len(message) - 4 >= size:
            return _read_body(_Reader(body.take(size)))


def _read_body(body: _Reader) -> ClientHello:
    body.take(2 + 32)
    for size in (1, 2, 1):  # session id, cipher suites, compression methods
        body.block(size)
    if not body:
        return ClientHello()
    name, alpn = "", []
    extensions = body.block(2)
    while extensions:
        kind, content = extensions.number(2), extensions.block(2)
        if kind == _SERVER_NAME and content:
            names = content.block(2)
            names.take(1)
            name = names.block(2).rest().decode("latin-1").lower()
        elif kind == _ALPN and content:
            protocols = content.block(2)
            while protocols:
                alpn.append(protocols.block(1).rest().decode("latin-1"))
    return ClientHello(name, tuple(alpn))
