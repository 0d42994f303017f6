"""First words of TLS clients, real ones and real ones with something changed."""

from __future__ import annotations

import ssl

ECH, UNKNOWN = 0xFE0D, 0x0A0A


def hello(name: str | None) -> bytes:
    """The ClientHello record of Python's own client."""
    context = ssl.create_default_context()
    context.check_hostname = False
    out = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        return out.read()
    raise AssertionError("a handshake without a server ended")


def records(message: bytes, size: int = 16384) -> bytes:
    """A handshake message in records of a size."""
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in parts)


def with_extension(record: bytes, kind: int, content: bytes) -> bytes:
    """The same hello with an extension at its end."""
    body = bytearray(record[9:])
    at = 34
    at += 1 + body[at]
    at += 2 + int.from_bytes(body[at : at + 2], "big")
    at += 1 + body[at]
    extension = kind.to_bytes(2, "big") + len(content).to_bytes(2, "big") + content
    length = int.from_bytes(body[at : at + 2], "big") + len(extension)
    body[at : at + 2] = length.to_bytes(2, "big")
    body += extension
    return records(b"\x01" + len(body).to_bytes(3, "big") + bytes(body))
