"""The forward proxy of one session."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sandboxes.egress import authorizers as authorizing
from sandboxes.egress.asking import ask
from sandboxes.egress.client_hello import NotTls, RecordGate
from sandboxes.egress.denied import Denied
from sandboxes.egress.environment import environment
from sandboxes.egress.heads import HeadReader, authority
from sandboxes.egress.limits import ProxyLimits
from sandboxes.egress.origins import Origins, dial, resolve
from sandboxes.egress.redaction import Redaction
from sandboxes.egress.relay import Relay
from sandboxes.egress.requests import judge_bound, judge_plain
from sandboxes.egress.rules import NO_RULES, by_host, rules_of
from sandboxes.egress.session_ca import SessionCa
from sandboxes.egress.tls import TlsWire
from sandboxes.egress.tunnel import RefusedHello, hello_for, pass_on
from sandboxes.egress.wire import Wire
from sandboxes.trust import system_certificates

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Mapping

    from sandboxes.contract import AnyBinding, HostEntry, Network
    from sandboxes.egress.authorizers import Answered, Authorizer, Header
    from sandboxes.egress.bodies import Body
    from sandboxes.egress.heads import RequestHead
    from sandboxes.egress.origins import Dial, Resolve
    from sandboxes.egress.requests import Outgoing
    from sandboxes.egress.wire import Stream

LOG = logging.getLogger("sandboxes.egress")

_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_BACKLOG = 512


class EgressProxy:
    """A forward proxy that is a sandbox's only way out, and holds its network policy.

    A sandbox whose inside has no network of its own has a listening socket made there, and
    hands it over; what the inside sends to it is judged here, outside:

        # On 127.0.0.1 in the network namespace of a process inside.
        async with listening_inside(pid, 3128) as listener, EgressProxy(
            self.network,
            listen=listener,
            bindings=self.header_bindings,
            secrets=request.secrets,
            ca_bundle=request.ca_bundle,
        ) as proxy:
            ...  # write proxy.trusted_pem to a file inside
            variables = proxy.environ("127.0.0.1:3128", "/etc/sandbox-ca.pem")

    What is let through, by `network`:

    - `none()`: nothing.
    - `allow(hosts=...)`: a tunnel (CONNECT) to a listed host and port, that carries TLS
      whose server name is that host. No plain HTTP, no other name, no hidden name (ECH).
    - `all()`: every tunnel, whatever it carries, and plain HTTP.

    Under all of them a host that has a private address is refused, unless
    `block_private_addresses` is False. A name is resolved once for each connection, and
    the address that was judged is the one that is dialled.

    Tunnels to hosts with bindings are opened: the proxy speaks TLS with both ends, checks
    the origin's certificate, judges each request, takes out the bound headers and adds
    the bindings' own. Answers there are searched for the secrets. Nobody has to trust
    the proxy for other hosts. So are tunnels to the hosts of `authorizers`, where each request
    is judged by its authorizer, which gives the credential that joins it.

    What it cannot see: which host a request names within a tunnel that it does not open,
    and secrets that an origin sends back in another shape.

    Args:
        network: What is let through.
        listen: Where clients come from: a path for a new unix socket, or a stream socket
            that is bound already, of any network namespace. It is closed, and the path
            removed, when the proxy closes.
        bindings: Header bindings; of the type `HeaderBinding` only.
        authorizers: Judges of the requests to certain hosts, such as a `GitHubAuthorizer`.
        secrets: The values that the bindings name.
        ca_bundle: PEM file of certificates that are trusted beside the system's.
        block_private_addresses: Whether private and loopback addresses stay refused.
        resolve: How names become addresses; the system's resolver by default.
        dial: How an address is connected to; from this process by default.
        limits: What bounds it.

    Raises:
        RefusedConfiguration: A binding cannot be applied.
        SandboxStartError: A secret is missing or unusable; the message names it.
        OSError: The bundle cannot be read, or holds no certificate.
    """

    _judge_bound = staticmethod(judge_bound)

    def __init__(
        self,
        network: Network,
        *,
        listen: socket.socket | Path,
        bindings: Iterable[AnyBinding] = (),
        authorizers: Iterable[Authorizer] = (),
        secrets: Mapping[str, str] | None = None,
        ca_bundle: Path | None = None,
        block_private_addresses: bool = True,
        resolve: Resolve = resolve,
        dial: Dial = dial,
        limits: ProxyLimits | None = None,
    ) -> None:
        self._network = network
        self._entries = frozenset(network.entries)
        self._rules = by_host(rules_of(network, bindings, secrets or {}))
        self._authorizers = authorizing.by_host(network, authorizers, self._rules)
        self._opened = self._rules.keys() | self._authorizers.keys()
        # All secrets everywhere: one host may show what another was told.
        self._redaction = Redaction(
            secret for rules in self._rules.values() for secret in rules.secrets
        )
        self._ca = SessionCa(self._opened)
        self._limits = limits or ProxyLimits()
        self._bundle = b"" if ca_bundle is None else ca_bundle.read_bytes()
        self._origins = Origins(
            resolve=resolve,
            dial=dial,
            block_private_addresses=block_private_addresses,
            ca_bundle=ca_bundle,
            limits=self._limits,
        )
        self._listen = listen
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"EgressProxy({self._network!r}, bound={sorted(map(str, self._opened))})"

    @property
    def ca_pem(self) -> bytes:
        """What the inside must trust beside its own: the `ca_bundle`, and the session's CA.

        The latter is there only where bindings make the proxy open tunnels.
        """
        return (self._ca.pem if self._opened else b"") + self._bundle

    @property
    def trusted_pem(self) -> bytes:
        """What programs inside are to trust: this machine's own certificates, and `ca_pem`."""
        return system_certificates() + b"\n" + self.ca_pem

    def environ(self, address: str, ca_file: str) -> dict[str, str]:
        """Give the variables that make programs inside use the proxy.

        They are a convenience: what ignores them reaches nothing where the proxy is the
        only way out.

        Args:
            address: `host:port` of the proxy, as the inside reaches it.
            ca_file: Path, inside, of a file that holds `trusted_pem`, or the image's own
                certificates and `ca_pem` together.
        """
        return environment(address, ca_file)

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()

        def accept() -> Wire:
            return Wire(self._limits.silence_seconds, self._begin)

        if isinstance(self._listen, Path):
            self._server = await loop.create_unix_server(
                accept, path=self._listen, backlog=_BACKLOG
            )
        else:
            self._server = await loop.create_server(accept, sock=self._listen, backlog=_BACKLOG)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        while self._serving:
            tasks = list(self._serving)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()
        await asyncio.sleep(0)  # what was cut is closed in the loop's next round
        if isinstance(self._listen, Path):
            self._listen.unlink(missing_ok=True)

    def _begin(self, client: Wire) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(client))
        self._serving.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._serving.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # The type alone: nobody knows what the text of an unforeseen error holds.
            LOG.error("a connection ended by an unforeseen %s", type(error).__name__)

    async def _serve(self, client: Wire) -> None:
        try:
            if len(self._serving) > self._limits.connections:
                raise Denied(503, "too many connections; close some")
            await self._serve_head(client)
            await client.linger()
        except Denied as denied:
            await self._refuse(client, denied)
        except RefusedHello as refused:
            LOG.info("refused: %s", refused.reason)
            await self._say(client, refused.alert)
        except NotTls as error:
            LOG.info("cut: %s", error)
        except OSError as error:  # timeouts and what TLS complains of are
            LOG.debug("a connection ended by %s", type(error).__name__)
        finally:
            client.abort()

    async def _refuse(self, client: Stream, denied: Denied) -> None:
        LOG.info("refused: %s", denied.reason)
        await self._say(client, denied.response())

    async def _say(self, client: Stream, last_words: bytes) -> None:
        try:
            await client.send(last_words)
            await client.linger()
        except OSError:
            pass  # it does not listen any more

    async def _serve_head(self, client: Wire) -> None:
        heads = HeadReader(client, self._limits)
        head = await heads.next(self._limits.head_seconds)
        if head is None:
            return
        if head.method == b"CONNECT":
            await self._connect(client, heads, head)
            return
        await Relay(
            client, heads, self._judge_plain, self._origins.connect, None, self._limits
        ).run(head)

    async def _judge_plain(self, head: RequestHead, _body: Body) -> Outgoing:
        outgoing = judge_plain(head)
        if self._network.mode != "all":
            raise Denied(403, self._blocked(outgoing.origin, what="plain HTTP"))
        return outgoing

    def _blocked(self, asked: HostEntry, *, what: str = "") -> str:
        if self._network.mode == "none":
            return f"Network.none() blocks {asked}"
        if what:
            return f"Network.allow() blocks {what} to {asked}; use https://"
        return f"Network.allow() does not list {asked}; add it to hosts"

    async def _connect(self, client: Wire, heads: HeadReader, head: RequestHead) -> None:
        # Its Host header counts for nothing: some clients name the proxy there.
        asked = authority(head.target, None)
        if head.has_body or head.values(b"content-length"):
            raise Denied(400, "a CONNECT request has no body")
        mode = self._network.mode
        if mode == "none" or (mode == "allow" and asked not in self._entries):
            raise Denied(403, self._blocked(asked))
        if asked in self._opened:
            await self._open_up(client, heads, asked)
            return
        origin = await self._origins.connect(asked)
        try:
            await client.send(_ESTABLISHED)
            first, gate = heads.read_ahead, None
            if mode == "allow":
                first = await hello_for(asked, client, first, self._limits.head_seconds)
                gate = RecordGate()
            await pass_on(client, origin, first, self._limits.silence_seconds, gate)
        finally:
            origin.abort()

    async def _open_up(self, client: Wire, heads: HeadReader, asked: HostEntry) -> None:
        await client.send(_ESTABLISHED)
        seconds = self._limits.head_seconds
        first = await hello_for(asked, client, heads.read_ahead, seconds)
        stream = TlsWire(client, self._ca.context(asked), server_side=True, first=first)
        async with asyncio.timeout(seconds):
            await stream.handshake(seconds)
        rules = self._rules.get(asked, NO_RULES)
        authorizer = self._authorizers.get(asked)
        own = frozenset() if authorizer is None else authorizing.own_headers(authorizer)

        async def judge(head: RequestHead, body: Body) -> Outgoing:
            outgoing = self._judge_bound(head, asked, rules, own)
            if authorizer is None:
                return outgoing
            return await self._authorized(outgoing, head, body, authorizer)

        inner = HeadReader(stream, self._limits)
        relay = Relay(
            stream,
            inner,
            judge,
            self._origins.connect_tls,
            self._redaction,
            self._limits,
        )
        try:
            await relay.run()
        except Denied as denied:
            await self._refuse(stream, denied)
        else:
            await stream.linger()

    async def _authorized(
        self, outgoing: Outgoing, head: RequestHead, body: Body, authorizer: Authorizer
    ) -> Outgoing:
        outgoing, granted = await authorizing.authorized(
            outgoing, head, body, authorizer, self._ask
        )
        self._redaction.learn(granted.secrets)
        return outgoing

    async def _ask(self, origin: HostEntry, target: str, headers: tuple[Header, ...]) -> Answered:
        return await ask(self._origins, self._limits, origin, target, headers)
