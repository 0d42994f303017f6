"""The network clients that a sandbox may have inside, and how each is driven.

A client that the sandbox does not have is left out. Commands hold single-purpose
flags only: interpreters of the shell exist that read `-sS` as one unknown flag.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Scheme = Literal["https", "http", "tcp", "udp", "dns"]

WEB: tuple[Scheme, ...] = ("https", "http")
"""What may go through a proxy that the environment names."""

CLIENT_SECONDS = 5
"""How long a client tries by itself, in seconds."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a client is sent.

    Attributes:
        url: For the schemes `https` and `http`; its path holds a nonce.
        host: For the others: a name or an address without brackets.
        port: A port for `tcp` and `udp`.
        payload: What is sent there; it holds a nonce.
        seconds: How long the client is to try by itself.
    """

    url: str = ""
    host: str = ""
    port: int = 0
    payload: str = ""
    seconds: int = CLIENT_SECONDS


@dataclass(frozen=True, slots=True)
class Client:
    """A program, or a feature of the shell, that opens connections.

    Attributes:
        name: What a certificate calls it.
        program: What the shell must find.
        commands: By scheme, the command line for a destination.
        usable: A command that succeeds where the program, which is there, can do its part.
        prints: Whether it shows the body of what it fetched.
        takes_proxies: Whether its requests go to the proxies that the environment names.
    """

    name: str
    program: str
    commands: Mapping[Scheme, Callable[[Destination], str]]
    usable: str = ""
    prints: bool = True
    takes_proxies: bool = True

    def command(self, scheme: Scheme, destination: Destination) -> str:
        """Write the command line that makes it try.

        Raises:
            KeyError: It does not speak that scheme.
        """
        return self.commands[scheme](destination)


def _join(*words: object) -> str:
    return shlex.join(str(word) for word in words)


def _web(*words: str) -> Mapping[Scheme, Callable[[Destination], str]]:
    def line(where: Destination, url: str) -> str:
        return _join(*(word.replace("SECONDS", str(where.seconds)) for word in words), url)

    def fetch(where: Destination) -> str:
        return line(where, where.url)

    def ask(where: Destination) -> str:
        return line(where, f"https://{where.host}/")

    return {"https": fetch, "http": fetch, "dns": ask}


def _bash(where: Destination, protocol: str) -> str:
    # The host and port are arguments, so that nothing in them is code.
    script = f'exec 3<>"/dev/{protocol}/$0/$1" && printf %s "$2" >&3'
    if protocol == "tcp":
        script += " && head -c 1 <&3"
    return _join("bash", "-c", script, where.host, where.port, where.payload)


def _source(name: str) -> str:
    return files("conformance.probes").joinpath(name).read_text(encoding="utf-8")


def _prober(where: Destination, verb: str, *arguments: object) -> str:
    source = _source("prober.py").replace("SECONDS = 5", f"SECONDS = {where.seconds}")
    return _join("python3", "-I", "-c", source, verb, *arguments)


def _piped(where: Destination, *words: object) -> str:
    return f"printf %s {shlex.quote(where.payload)} | {_join(*words)}"


def _netcat(where: Destination, *program: str) -> str:
    return _piped(where, *program, "-w", where.seconds, where.host, where.port)


def _openssl(where: Destination) -> str:
    host = f"[{where.host}]" if ":" in where.host else where.host
    return _piped(where, "openssl", "s_client", "-quiet", "-connect", f"{host}:{where.port}")


_PERL = """
my ($protocol, $host, $port, $payload, $seconds) = @ARGV;
alarm $seconds;
my $peer = IO::Socket::IP->new(PeerHost => $host, PeerPort => $port, Proto => $protocol)
    or die "$@\n";
$peer->autoflush(1);
print $peer $payload;
sysread($peer, my $answer, 99) if $protocol eq "tcp";
print $answer;
"""


def _perl(where: Destination, protocol: str) -> str:
    arguments = (protocol, where.host, where.port, where.payload, where.seconds)
    return _join("perl", "-MIO::Socket::IP", "-e", _PERL, *arguments)


_NODE = """
const [verb, host, port, payload, seconds] = process.argv.slice(1);
setTimeout(() => process.exit(28), 1000 * seconds);
const fail = (error) => { console.error(String(error)); process.exit(1); };
const show = (data) => process.stdout.write(data);
if (verb === "udp") {
  require("dns").lookup(host, (error, address, family) => {
    if (error) fail(error);
    require("dgram").createSocket("udp" + family)
      .send(payload, port, address, (problem) => problem ? fail(problem) : process.exit(0));
  });
} else if (verb === "tcp") {
  const peer = require("net").connect(port, host, () => peer.write(payload));
  peer.on("error", fail).on("data", (data) => { show(data); process.exit(0); });
} else {
  require(verb).get(payload, (answer) => answer.on("data", show).on("end", () => process.exit(0)))
    .on("error", fail);
}
"""


def _node(where: Destination, verb: str) -> str:
    payload = where.payload or where.url
    arguments = (verb, where.host, where.port, payload, where.seconds)
    return _join("node", "--use-openssl-ca", "-e", _NODE, "--", *arguments)


def _git(where: Destination) -> str:
    slow = ("-c", "http.lowSpeedLimit=1", "-c", f"http.lowSpeedTime={where.seconds}")
    return f"GIT_TERMINAL_PROMPT=0 {_join('git', *slow, 'ls-remote', where.url)}"


def _by_name(program: str) -> Callable[[Destination], str]:
    return lambda where: _join(*program.split(), where.host)


# A service that no machine has: refused before anything is dialled. Without the
# feature it is an ordinary file, and there is no such one.
_DEV_TCP = 'x=$(bash -c "exec 3<>/dev/tcp/127.0.0.1/-" 2>&1); case $x in *No\\ such*) false;; esac'

ALL: tuple[Client, ...] = (
    Client("curl", "curl", _web("curl", "-s", "-S", "-m", "SECONDS")),
    Client("wget", "wget", _web("wget", "-q", "-O", "-", "-T", "SECONDS", "-t", "1")),
    Client("http", "http", _web("http", "GET")),
    Client(
        "python3",
        "python3",
        {
            "https": lambda where: _prober(where, "url", where.url),
            "http": lambda where: _prober(where, "url", where.url),
            "tcp": lambda where: _prober(where, "tcp", where.host, where.port, where.payload),
            "udp": lambda where: _prober(where, "udp", where.host, where.port, where.payload),
            "dns": lambda where: "; ".join(
                _prober(where, verb, where.host) for verb in ("lookup", "dns")
            ),
        },
        usable="python3 -I -c 'import socket, ssl, urllib.request'",
    ),
    Client(
        "bash",
        "bash",
        {
            "tcp": lambda where: _bash(where, "tcp"),
            "udp": lambda where: _bash(where, "udp"),
        },
        usable=_DEV_TCP,
    ),
    Client("getent", "getent", {"dns": _by_name("getent hosts")}),
    Client("nslookup", "nslookup", {"dns": _by_name("nslookup")}),
    Client("host", "host", {"dns": _by_name("host")}),
    Client(
        "nc",
        "nc",
        {
            "tcp": lambda where: _netcat(where, "nc"),
            "udp": lambda where: _netcat(where, "nc", "-u"),
        },
    ),
    Client(
        "perl",
        "perl",
        {
            "tcp": lambda where: _perl(where, "tcp"),
            "udp": lambda where: _perl(where, "udp"),
        },
        usable="perl -MIO::Socket::IP -e 1",
    ),
    Client(
        "node",
        "node",
        {
            "https": lambda where: _node(where, "https"),
            "http": lambda where: _node(where, "http"),
            "tcp": lambda where: _node(where, "tcp"),
            "udp": lambda where: _node(where, "udp"),
        },
        usable="node -e 0",
        takes_proxies=False,
    ),
    Client(
        "busybox wget",
        "busybox",
        _web("busybox", "wget", "-q", "-O", "-"),
        usable="busybox wget --help",
    ),
    Client(
        "busybox nc",
        "busybox",
        {"tcp": lambda where: _netcat(where, "busybox", "nc")},
        usable="busybox nc --help",
    ),
    Client("openssl", "openssl", {"tcp": _openssl}, usable="openssl version"),
    Client(
        "git",
        "git",
        {"https": _git, "http": _git},
        usable='test -x "$(git --exec-path)/git-remote-https"',
        prints=False,
    ),
)
"""Every client that is known, the plainest first."""
