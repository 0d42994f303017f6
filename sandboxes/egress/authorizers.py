"""Hosts whose requests are judged one by one by who holds the credential for them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from sandboxes.contract import HostEntry, RefusedConfiguration, messages
from sandboxes.egress.rules import folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sandboxes.contract import Network
    from sandboxes.egress.bodies import Body
    from sandboxes.egress.heads import RequestHead
    from sandboxes.egress.requests import Outgoing
    from sandboxes.egress.rules import HostRules

Header = tuple[bytes, bytes]

_OF_THE_BODY = frozenset(
    {b"content-length", b"content-type", b"content-encoding", b"transfer-encoding"}
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of a client, as an authorizer sees it.

    Attributes:
        origin: Where it goes.
        method: As sent.
        target: Path and query, as sent.
        headers: Names in lower case; what the client sent as a credential is here too.
        body: All of it where `Authorizer.body_limit` gave a limit, otherwise nothing.
    """

    origin: HostEntry
    method: str
    target: str
    headers: tuple[Header, ...] = field(repr=False)
    body: bytes = field(default=b"", repr=False)

    def values(self, name: bytes) -> list[bytes]:
        """All values of a header, by its name in lower case."""
        return [value for key, value in self.headers if key == name]


@dataclass(frozen=True, slots=True)
class Granted:
    """What a request gets.

    Attributes:
        headers: Those that join it.
        secrets: What of them is covered in answers, from now on.
        body: JSON that is sent in place of the body that was judged; None leaves it.
    """

    headers: tuple[Header, ...] = field(default=(), repr=False)
    secrets: tuple[bytes, ...] = field(default=(), repr=False)
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Answered:
    """What an origin said to a question of an authorizer's own."""

    status: int
    body: bytes


Ask = Callable[[HostEntry, str, tuple[Header, ...]], Awaitable[Answered]]
"""Asks an origin for a target, with some headers; raises `Denied` where there is no answer."""


class Authorizer(Protocol):
    """Judges each request to some hosts, and gives the credential that joins it.

    Attributes:
        hosts: The hosts whose tunnels are opened for it, as `host[:port]`.
        required: Those of them without which it is of no use; others may be out of the
            network's reach.
        stripped: Headers that no client sends to these hosts itself, in lower case.
    """

    @property
    def hosts(self) -> Collection[str]: ...  # noqa: D102 - see above

    @property
    def required(self) -> Collection[str]: ...  # noqa: D102 - see above

    @property
    def stripped(self) -> frozenset[bytes]: ...  # noqa: D102 - see above

    def body_limit(self, asked: Asked) -> int | None:
        """Give how many bytes of JSON the body may have where it is to be judged, or None.

        Raises:
            Denied: The request is not let through, whatever its body is.
        """

    async def authorize(self, asked: Asked, ask: Ask) -> Granted:
        """Let a request through.

        Raises:
            Denied: It is not.
        """


def by_host(
    network: Network, authorizers: Iterable[Authorizer], rules: Mapping[HostEntry, HostRules]
) -> dict[HostEntry, Authorizer]:
    """Sort authorizers by the hosts that the network reaches.

    Raises:
        RefusedConfiguration: A required host is out of reach, two claim one host, or a header
            binding there is for a header that is an authorizer's own.
    """
    found: dict[HostEntry, Authorizer] = {}
    for authorizer in authorizers:
        kind = type(authorizer).__name__
        for host in authorizer.hosts:
            origin = HostEntry.parse(host)
            if not network.reaches(host):
                if host in authorizer.required:
                    raise RefusedConfiguration(
                        messages.unreachable_authorizer(kind, host, network.mode)
                    )
                continue
            if origin in found:
                raise RefusedConfiguration(messages.authorizers_in_conflict(host))
            if origin in rules and rules[origin].bound & own_headers(authorizer):
                raise RefusedConfiguration(messages.header_of_an_authorizer(kind, host))
            found[origin] = authorizer
    return found


def own_headers(authorizer: Authorizer) -> frozenset[bytes]:
    """The headers that no client sends to an authorizer's hosts, as `folded` gives them."""
    return frozenset(map(folded, authorizer.stripped))


async def authorized(
    outgoing: Outgoing, head: RequestHead, body: Body, authorizer: Authorizer, ask: Ask
) -> tuple[Outgoing, Granted]:
    """Have a request judged that is otherwise fit to be sent.

    Nothing of it was sent. A body that is judged is read before, and sent as JSON and as
    nothing else, so that the origin reads what was judged.

    Raises:
        Denied: It is not let through.
        OSError: The client went away.
    """
    asked = Asked(
        outgoing.origin,
        head.method.decode("ascii"),
        head.target.decode("latin-1"),
        tuple(head.headers),
    )
    limit = authorizer.body_limit(asked)
    if limit is None:
        granted = await authorizer.authorize(asked, ask)
        return replace(outgoing, headers=[*outgoing.headers, *granted.headers]), granted
    content = await body.whole(limit)
    granted = await authorizer.authorize(replace(asked, body=content), ask)
    sent = content if granted.body is None else granted.body
    headers = [
        *((name, value) for name, value in outgoing.headers if name.lower() not in _OF_THE_BODY),
        (b"Content-Type", b"application/json; charset=utf-8"),
        (b"Content-Length", b"%d" % len(sent)),
        *granted.headers,
    ]
    return replace(outgoing, headers=headers, body=sent), granted
