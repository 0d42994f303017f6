"""What becomes of a request: judged alone, each anew, and written afresh."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sandboxes.egress.bodies import Body
from sandboxes.egress.denied import Denied
from sandboxes.egress.heads import RequestHead, authority
from sandboxes.egress.rules import FRAMING, HOP_BY_HOP, folded

if TYPE_CHECKING:
    from sandboxes.contract import HostEntry
    from sandboxes.egress.rules import HostRules

_HTTP_PORT = 80
_REFUSED_METHODS = frozenset({b"CONNECT", b"TRACE", b"TRACK"})
# A part of an answer could hold a part of a secret, which nobody finds.
_NO_PARTS = frozenset({b"range", b"if-range", b"accept-encoding"})


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request as the origin gets it.

    Attributes:
        origin: Where it goes.
        method: As the client sent it.
        target: Path and query.
        headers: All of them, the bound ones included.
        body: All of it, where it was read to judge the request; None where it is to come.
    """

    origin: HostEntry
    method: bytes
    target: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes | None = None

    def __repr__(self) -> str:
        return f"Outgoing({self.method!r} to {self.origin})"


Judge = Callable[[RequestHead, Body], Awaitable[Outgoing]]
"""Decides on one request, with its body if need be; raises `Denied` where it is not let through."""


def _refuse_methods(head: RequestHead) -> None:
    if head.method.upper() in _REFUSED_METHODS:
        raise Denied(405, "the method is not let through")


def _listed_in_connection(head: RequestHead) -> set[bytes]:
    return {
        name.strip().lower()
        for value in head.values(b"connection")
        for name in value.split(b",")
        if name.strip()
    }


def _rewritten(
    head: RequestHead, origin: HostEntry, host_header: str, dropped: frozenset[bytes] | set[bytes]
) -> list[tuple[bytes, bytes]]:
    headers = [(b"Host", host_header.encode("ascii"))]
    headers += [
        (name, value)
        for name, value in head.headers
        if name not in HOP_BY_HOP
        and name not in (b"host", b"expect")
        and folded(name) not in dropped
    ]
    if head.values(b"transfer-encoding"):
        headers.append((b"Transfer-Encoding", b"chunked"))
    return headers


def judge_bound(
    head: RequestHead,
    origin: HostEntry,
    rules: HostRules,
    stripped: frozenset[bytes] = frozenset(),
) -> Outgoing:
    """Judge a request that came through a tunnel to a host with bindings.

    The bound headers are taken out wherever they come from, and the rules' own put in
    where the path is theirs.

    Args:
        head: The request.
        origin: Where the tunnel was asked to go.
        rules: Of that host.
        stripped: Further headers that are taken out, as `folded` gives them.

    Raises:
        Denied: It could be taken for another request than was judged.
    """
    _refuse_methods(head)
    if not head.target.startswith(b"/") or b"#" in head.target:
        raise Denied(400, "the request target is no path; send the path alone")
    if head.host(origin.port) != origin:
        raise Denied(421, f"the Host header does not name {origin}, where the tunnel goes")
    if head.values(b"upgrade"):
        raise Denied(400, f"no other protocol is let through to {origin}, which has bindings")
    listed = {folded(name) for name in _listed_in_connection(head)}
    taken = rules.bound | stripped
    if listed & (FRAMING | taken):
        raise Denied(400, "the Connection header names one that is not of the connection")
    added = rules.headers_for(head.target.partition(b"?")[0])
    headers = _rewritten(head, origin, str(origin), listed | taken | _NO_PARTS)
    headers.append((b"Accept-Encoding", b"identity"))
    return Outgoing(origin, head.method, head.target, headers + added)


def judge_plain(head: RequestHead) -> Outgoing:
    """Read a plain HTTP request for a proxy; nothing is added to it.

    Raises:
        Denied: It is none, or its parts disagree.
    """
    _refuse_methods(head)
    if not head.target.lower().startswith(b"http://"):
        raise Denied(400, "the request is none for a proxy; use CONNECT for https://")
    try:
        parts = urlsplit(head.target)
    except ValueError:
        raise Denied(400, "the request target is malformed") from None
    if parts.fragment or b"#" in head.target:
        raise Denied(400, "the request target has a fragment; leave it out")
    origin = authority(parts.netloc, _HTTP_PORT)
    if head.host(_HTTP_PORT) not in (origin, None):
        raise Denied(400, "the Host header and the request target disagree")
    listed = _listed_in_connection(head)
    if listed & FRAMING:
        raise Denied(400, "the Connection header names one that is not of the connection")
    bare = f"[{origin.host}]" if ":" in origin.host else origin.host
    host_header = bare if origin.port == _HTTP_PORT else f"{bare}:{origin.port}"
    target = (parts.path or b"/") + (b"?" + parts.query if parts.query else b"")
    return Outgoing(origin, head.method, target, _rewritten(head, origin, host_header, listed))
