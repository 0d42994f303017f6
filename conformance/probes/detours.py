"""Ways in which a command tells its client to go elsewhere than the URL says.

Settings files lie in a home of the command's own, so that nothing is left behind for others
where a sandbox runs on the host's files.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from conformance.probes.places import destination
from conformance.probes.words import add_words, changed
from conformance.verdicts import NotApplicable, NotRun

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.lab.client import Lab
    from conformance.lab.sites import Site
    from conformance.oracle import Mode
    from conformance.probes.clients import Client, Destination, Scheme
    from conformance.probes.inside import Inside


@dataclass(frozen=True, slots=True)
class Aim:
    """The places of one attempt.

    Attributes:
        listed: What the allow list names, if there is one.
        other: What it does not name.
        proxy: A forward proxy, which it does not name either.
        proxy_at: Its address and port, as a URL has them.
    """

    listed: Site
    other: Site
    proxy: Site
    proxy_at: str

    @classmethod
    def fresh(cls, lab: Lab, kind: Literal["honest", "yes"]) -> Aim:
        """Make places that nobody else has."""
        proxy, known = lab.site(), urlsplit(lab.proxy(kind))
        # In a sealed lab the proxies answer at every address, so a site's own can be told apart.
        host = known.hostname if lab.mode == "loopback" else proxy.address
        return cls(lab.site(), lab.site(), proxy, f"{host}:{known.port}")


@dataclass(frozen=True, slots=True)
class Detour:
    """One way.

    Attributes:
        kind: What it is called in a report.
        write: Changes a command line; it is given the line, the client's name and the places.
        client: The one client that has it; any client of the scheme where it is empty.
        scheme: What the client speaks.
        to: Which place the client is sent to in the plain way.
        isolated: Whether it writes where only a sandbox with files of its own may be let.
    """

    kind: str
    write: Callable[[str, str, Aim], str]
    client: str = ""
    scheme: Scheme = "https"
    to: Literal["other", "listed"] = "other"
    isolated: bool = False

    def __repr__(self) -> str:
        return f"<{self.client or 'any client'}: {self.kind}, to {self.to}>"

    def of(self, client: Client, aim: Aim) -> Client:
        """Give a client that is led this way."""
        return changed(client, lambda line: self.write(line, client.name, aim))

    def where(self, aim: Aim) -> Destination:
        """Say where its command goes in the plain way."""
        site = aim.listed if self.to == "listed" else aim.other
        port = site.https_port if self.scheme == "tcp" else None
        return destination(self.scheme, site, port=port)


_PROXIES = ("https_proxy", "http_proxy", "all_proxy", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")


def _set(scheme: str) -> Callable[[str, str, Aim], str]:
    def write(line: str, _name: str, aim: Aim) -> str:
        pairs = " ".join(f"{name}={scheme}://{aim.proxy_at}" for name in _PROXIES)
        return f"export NODE_USE_ENV_PROXY=1 {pairs}; unset no_proxy NO_PROXY; {line}"

    return write


def _without_proxies(line: str, _name: str, _aim: Aim) -> str:
    return f"export no_proxy='*' NO_PROXY='*'; unset {' '.join(_PROXIES)}; {line}"


def switched(*words: str) -> Callable[[str, str, Aim], str]:
    """Add switches, the words in capitals in them filled in from the places."""
    return lambda line, name, aim: add_words(line, name, *(_filled(word, aim) for word in words))


def _filled(text: str, aim: Aim) -> str:
    values = {
        "PROXY": aim.proxy_at,
        "PAIR": f"{aim.listed.name}:{aim.listed.https_port}:{aim.other.address}",
        "LISTED": aim.listed.entry,
        "ADDRESS": aim.listed.address,
        "OTHER": aim.other.entry,
        "PORT": str(aim.other.https_port),
    }
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def _settings(file: str, text: str) -> Callable[[str, str, Aim], str]:
    def write(line: str, _name: str, aim: Aim) -> str:
        home = f"home-{aim.other.nonce}"
        put = f"printf '%s\\n' {shlex.quote(_filled(text, aim))} > {home}/{file}"
        return f'mkdir -p {home} && {put}; export HOME="$PWD/{home}"; {line}'

    return write


def _hosts(line: str, _name: str, aim: Aim) -> str:
    put = f"printf '%s\\n' '{aim.other.address} {aim.listed.name}'"
    return f"{put} 2>/dev/null >> /etc/hosts; {line}"


def _alternatives(line: str, name: str, aim: Aim) -> str:
    listed, other = aim.listed, aim.other
    text = f"h1 {listed.name} {listed.https_port} h1 {other.name} {other.https_port}"
    file = f"alternatives-{other.nonce}"
    put = f"printf '%s\\n' '{text} \"20991231 00:00:00\" 0 0' > {file}"
    return f"{put}; {add_words(line, name, '--alt-svc', file)}"


def _tls_proxy(line: str, _name: str, aim: Aim) -> str:
    return line.replace("-quiet ", f"-quiet -proxy {aim.proxy_at} ", 1)


_VARIABLES = (
    Detour("proxy variables", _set("http")),
    Detour("proxy variables", _set("http"), to="listed"),
    Detour("proxy variables", _set("http"), scheme="http"),
    Detour("SOCKS variables", _set("socks5h")),
    Detour("no_proxy=*", _without_proxies),
)
_SWITCHES = (
    Detour("-x", switched("-x", "http://PROXY"), "curl"),
    Detour("-x", switched("-x", "http://PROXY"), "curl", to="listed"),
    Detour("--proxytunnel", switched("-p", "-x", "http://PROXY"), "curl", "http"),
    Detour("--socks5-hostname", switched("--socks5-hostname", "PROXY"), "curl"),
    Detour("--resolve", switched("--resolve", "PAIR"), "curl", to="listed"),
    Detour("--connect-to", switched("--connect-to", "PAIR:PORT"), "curl", to="listed"),
    Detour("--noproxy", switched("--noproxy", "*"), "curl"),
    Detour("--doh-url", switched("--doh-url", "https://OTHER/"), "curl", to="listed"),
    Detour("--alt-svc", _alternatives, "curl", to="listed"),
    Detour("Host header of a listed host", switched("-H", "Host: LISTED"), "curl"),
    Detour(
        "CONNECT with the Host of a listed host", switched("--proxy-header", "Host: LISTED"), "curl"
    ),
    Detour("user agent", switched("-A", "git/2.39.5"), "curl"),
    Detour("two URLs", switched("https://OTHER/"), "curl", to="listed"),
    Detour("two URLs", switched("https://LISTED/"), "curl"),
    Detour("two URLs", switched("https://OTHER/"), "wget", to="listed"),
    Detour("-e https_proxy", switched("-e", "use_proxy=yes", "-e", "https_proxy=PROXY"), "wget"),
    Detour("--proxy", switched("--proxy", "https:http://PROXY"), "http"),
    Detour("http.proxy", switched("-c", "http.proxy=http://PROXY"), "git"),
    Detour("curloptResolve", switched("-c", "http.curloptResolve=PAIR"), "git", to="listed"),
    Detour("-proxy", _tls_proxy, "openssl", "tcp"),
    Detour("-x", switched("-X", "connect", "-x", "PROXY"), "nc", "tcp"),
)
_FILES = (
    Detour("~/.curlrc with a proxy", _settings(".curlrc", "proxy = http://PROXY"), "curl"),
    Detour("~/.curlrc with resolve", _settings(".curlrc", "resolve = PAIR"), "curl", to="listed"),
    Detour("~/.wgetrc", _settings(".wgetrc", "use_proxy = on\nhttps_proxy = PROXY"), "wget"),
    Detour("~/.gitconfig", _settings(".gitconfig", "[http]\n\tproxy = http://PROXY"), "git"),
    Detour("/etc/hosts", _hosts, to="listed", isolated=True),
)

DETOURS = (*_VARIABLES, *_SWITCHES, *_FILES)
"""Each way once."""


def having(inside: Inside, mode: Mode, detour: Detour) -> list[Client]:
    """Give the clients inside that have this way; none where it is not to be tried."""
    if detour.isolated and not inside.target.declared.fact("isolated"):
        return []
    try:
        found = inside.clients(mode, detour.scheme)
    except (NotApplicable, NotRun):
        return []
    if detour.client:
        return [client for client in found if client.name == detour.client]
    return [client for client, _ in inside.ways(mode, detour.scheme)]


def needs_one(inside: Inside, mode: Mode, detours: Sequence[Detour]) -> None:
    """Go on only where a client inside has one of these ways.

    Raises:
        NotApplicable: There is none.
    """
    if not any(having(inside, mode, detour) for detour in detours):
        raise NotApplicable("no client inside has a switch, a variable or a file of that kind")
