"""Heads of requests, read more strictly than HTTP asks for: what is odd is refused."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import h11

from sandboxes.contract import HostEntry, InvalidHostEntry
from sandboxes.egress.denied import Denied

if TYPE_CHECKING:
    from sandboxes.egress.limits import ProxyLimits
    from sandboxes.egress.wire import Stream

_END = b"\r\n\r\n"
# A CR or LF of its own, a folded line, white space before a colon, a control character.
_ODD = re.compile(
    rb"(?<!\r)\n|\r(?!\n)|\n[ \t]|\A[\s]|\n[^:\r\n]*[ \t]:|[\0-\x08\x0b\x0c\x0e-\x1f\x7f]"
)
_BARE_LF = re.compile(rb"(?<!\r)\n")
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/\\?#%\s]+)(?::([0-9]{1,5}))?")
_VERSIONS = (b"1.0", b"1.1")
_LENGTHS = re.compile(rb"(?i)\r\ncontent-length:[ \t]*(.*?)[ \t]*(?=\r\n)")
_DIGITS = re.compile(rb"[0-9]{1,18}")


def authority(text: bytes, default_port: int | None) -> HostEntry:
    """Read the `host[:port]` of a request.

    Args:
        text: As it was sent.
        default_port: Where it names none; without it the port must be there.

    Raises:
        Denied: It is none, or has anything with it.
    """
    matched = _AUTHORITY.fullmatch(text.decode("ascii")) if text.isascii() else None
    if matched is None or (matched[2] is None and default_port is None):
        raise Denied(400, "the host is malformed; send host:port")
    try:
        return HostEntry.parse(f"{matched[1]}:{matched[2] or default_port}")
    except InvalidHostEntry:
        raise Denied(400, "the host is malformed; send a host name or an IP address") from None


@dataclass(slots=True)
class RequestHead:
    """A request whose framing is beyond doubt, with the machine that reads its body.

    Attributes:
        machine: An h11 server that has taken the head.
        method: As sent.
        target: As sent.
        headers: Names in lower case, in the order sent.
        version: `b"1.0"` or `b"1.1"`.
    """

    machine: h11.Connection
    method: bytes
    target: bytes
    headers: list[tuple[bytes, bytes]]
    version: bytes

    def values(self, name: bytes) -> list[bytes]:
        """All values of a header, by its name in lower case."""
        return [value for key, value in self.headers if key == name]

    def host(self, default_port: int) -> HostEntry | None:
        """The one Host header; None where there is none.

        Raises:
            Denied: There are several, or it is malformed.
        """
        hosts = self.values(b"host")
        if len(hosts) > 1:
            raise Denied(400, "there are several Host headers; send one")
        return authority(hosts[0], default_port) if hosts else None

    @property
    def has_body(self) -> bool:
        """Whether a body follows."""
        lengths = self.values(b"content-length")
        return bool(self.values(b"transfer-encoding")) or bool(lengths and int(lengths[0]))


class HeadReader:
    """Reads one head after the other from a client; what was read too far is kept.

    Args:
        stream: The client.
        limits: How long and how much.
    """

    def __init__(self, stream: Stream, limits: ProxyLimits) -> None:
        self._stream = stream
        self._limits = limits
        self.read_ahead = b""
        """What came after the head, or after the body once that was given back."""

    async def next(self, wait_seconds: float) -> RequestHead | None:
        """Wait for a request; None where the client has none any more.

        Args:
            wait_seconds: For its first byte. The whole head then has `head_seconds`.

        Raises:
            Denied: It is malformed, too long or too slow.
        """
        if not self.read_ahead:
            try:
                self.read_ahead = await self._stream.receive(wait_seconds)
            except TimeoutError:
                return None
        if not self.read_ahead:
            return None
        try:
            async with asyncio.timeout(self._limits.head_seconds):
                raw = await self._whole()
        except TimeoutError:
            raise Denied(408, "the request is too slow") from None
        return self._parsed(raw)

    async def _whole(self) -> bytes:
        data, seen = self.read_ahead, 0
        while (end := data.find(_END, max(0, seen - len(_END)))) < 0:
            # A head of bare LFs would never end; the rest is checked once, when it is whole.
            if len(data) > self._limits.head_bytes or _BARE_LF.search(data, seen):
                self._check(data)
            seen = len(data)
            more = await self._stream.receive(self._limits.head_seconds)
            if not more:
                raise Denied(400, "the request is cut short")
            data += more
        head, self.read_ahead = data[: end + len(_END)], data[end + len(_END) :]
        self._check(head)
        return head

    def _check(self, head: bytes) -> None:
        if len(head) > self._limits.head_bytes:
            raise Denied(431, "the head of the request is too long")
        if _ODD.search(head):
            raise Denied(400, "the head of the request is malformed")

    def _parsed(self, raw: bytes) -> RequestHead:
        machine = h11.Connection(
            h11.SERVER, max_incomplete_event_size=self._limits.head_bytes + 4096
        )
        try:
            machine.receive_data(raw)
            request = machine.next_event()
        except h11.RemoteProtocolError:
            raise Denied(400, "the request is malformed") from None
        if not isinstance(request, h11.Request) or request.http_version not in _VERSIONS:
            raise Denied(400, "the request is no HTTP/1.1; HTTP/2 is not served")
        if len(request.headers) > self._limits.header_count:
            raise Denied(431, "the request has too many headers")
        head = RequestHead(
            machine, request.method, request.target, list(request.headers), request.http_version
        )
        _check_framing(raw, head)
        return head


def _check_framing(raw: bytes, head: RequestHead) -> None:
    """Refuse a body whose end two servers could see at different places."""
    # h11 folds repeated lengths that agree into one: the raw head tells.
    lengths = _LENGTHS.findall(raw)
    codings = head.values(b"transfer-encoding")
    if len(lengths) > 1 or len(codings) > 1 or (lengths and codings):
        raise Denied(400, "the body's length is given twice; send it once")
    if codings and (codings[0].lower() != b"chunked" or head.version == b"1.0"):
        raise Denied(400, "the transfer coding is not supported; send chunked")
    if lengths and not _DIGITS.fullmatch(lengths[0]):
        raise Denied(400, "the body's length is no number")
    if any(value.lower() != b"100-continue" for value in head.values(b"expect")):
        raise Denied(417, "the expectation cannot be met")
