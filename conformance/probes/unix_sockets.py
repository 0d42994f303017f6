"""Clients for unix sockets that a sandbox may have inside, and the control that one works."""

from __future__ import annotations

import secrets
import shlex
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.probes.clients import Client, Destination
from conformance.probes.ears import Ear
from conformance.verdicts import NotApplicable, NotRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.oracle import Mode
    from conformance.probes.clients import Scheme
    from conformance.probes.ears import Kind
    from conformance.probes.inside import Inside

_SCHEMES: Mapping[Kind, Scheme] = {"stream": "tcp", "datagram": "udp"}
_SOCKET_TYPES: Mapping[Kind, str] = {"stream": "SOCK_STREAM", "datagram": "SOCK_DGRAM"}


@dataclass(frozen=True, slots=True)
class UnixPlace:
    """A kind of unix socket, at a path or at an abstract name."""

    kind: Kind
    abstract: bool

    @property
    def scheme(self) -> Scheme:
        """What the commands of clients for it are kept under."""
        return _SCHEMES[self.kind]

    @contextmanager
    def listening(self) -> Iterator[tuple[Ear, str]]:
        """Listen at such a place of this host, and give it as commands write it.

        Raises:
            NotApplicable: The host's system has no such places.
        """
        name = f"conformance-{secrets.token_hex(8)}"
        if self.abstract:
            with Ear.at_abstract_name(name, self.kind) as ear:
                yield ear, f"@{name}"
            return
        with tempfile.TemporaryDirectory(prefix="sockets-") as folder:
            path = Path(folder) / name
            path.parent.chmod(0o755)  # whoever runs the commands is to get as far as the socket
            with Ear.at_path(path, self.kind) as ear:
                yield ear, str(path)


_PYTHON = """
import socket, sys
kind, address, payload, seconds = sys.argv[1:]
with socket.socket(socket.AF_UNIX, getattr(socket, kind)) as peer:
    peer.settimeout(int(seconds))
    peer.connect(address.replace("@", chr(0), 1))
    peer.sendall(payload.encode())
    print(peer.recv(4096) if kind == "SOCK_STREAM" else "sent")
"""
_PERL = """
my ($kind, $address, $payload, $seconds) = @ARGV;
alarm $seconds;
$address =~ s/^@/\\0/;
socket(my $peer, PF_UNIX, $kind eq "stream" ? SOCK_STREAM : SOCK_DGRAM, 0) or die "$!\\n";
connect($peer, pack_sockaddr_un($address)) or die "$!\\n";
syswrite($peer, $payload);
sysread($peer, my $answer, 99) if $kind eq "stream";
"""
_NODE = """
const [address, payload, seconds] = process.argv.slice(1);
setTimeout(() => process.exit(28), 1000 * seconds);
require("net").connect(address.replace("@", "\\0"), function () { this.write(payload); })
  .on("error", (error) => { console.error(String(error)); process.exit(1); })
  .on("data", () => process.exit(0)).on("end", () => process.exit(0));
"""

# By subject, client and place: whether it gets through anywhere, kept for the run.
_proven: dict[tuple[str, str, UnixPlace], bool] = {}


def _curl(where: Destination) -> str:
    abstract = where.host.startswith("@")
    switch = "--abstract-unix-socket" if abstract else "--unix-socket"
    words = ("curl", "-s", "-S", "-m", where.seconds, switch, where.host.lstrip("@"), where.url)
    return shlex.join(map(str, words))


def _python(where: Destination, kind: Kind) -> str:
    words = (_SOCKET_TYPES[kind], where.host, where.payload, where.seconds)
    return shlex.join(["python3", "-I", "-c", _PYTHON, *map(str, words)])


def _netcat(where: Destination, *switches: str) -> str:
    words = ("nc", *switches, "-U", "-w", str(where.seconds), where.host)
    return f"printf %s {shlex.quote(where.payload)} | {shlex.join(words)}"


def _perl(where: Destination, kind: Kind) -> str:
    words = (kind, where.host, where.payload, where.seconds)
    return shlex.join(["perl", "-MSocket", "-e", _PERL, *map(str, words)])


def _node(where: Destination) -> str:
    words = (where.host, where.payload, where.seconds)
    return shlex.join(["node", "-e", _NODE, "--", *map(str, words)])


ALL: tuple[Client, ...] = (
    Client("curl", "curl", {"tcp": _curl}),
    Client(
        "python3",
        "python3",
        {
            "tcp": lambda where: _python(where, "stream"),
            "udp": lambda where: _python(where, "datagram"),
        },
    ),
    Client("nc", "nc", {"tcp": _netcat, "udp": lambda where: _netcat(where, "-u")}),
    Client(
        "perl",
        "perl",
        {
            "tcp": lambda where: _perl(where, "stream"),
            "udp": lambda where: _perl(where, "datagram"),
        },
    ),
    Client("node", "node", {"tcp": _node}),
)
"""Every client that is known, the plainest first."""


def clients(inside: Inside, mode: Mode, place: UnixPlace) -> list[Client]:
    """Give the clients inside that may know unix sockets of this kind.

    Raises:
        NotApplicable: There is no network client at all, and no command could bring one.
        NotRun: There is none that is known.
    """
    found = inside.clients(mode, "https", "http", "tcp", "udp", "dns")
    there = {client.program for client in found}
    return [one for one in ALL if one.program in there and place.scheme in one.commands]


def proven(inside: Inside, mode: Mode, place: UnixPlace, url: str) -> None:
    """Make sure that a client inside reaches such a socket somewhere; cached for the run.

    Either one of the host's under all(), or one inside the sandbox; or that the sandbox lets
    no program make a unix socket, which refuses all of them.

    Args:
        inside: The sandboxes of the check.
        mode: The policy under which it is to be refused.
        place: What is to be reached.
        url: What curl is to fetch there.

    Raises:
        NotApplicable: None does under any policy, and no command could bring one.
        NotRun: None was seen to.
    """
    for client in clients(inside, mode, place):
        key = (inside.target.name, client.name, place)
        if key not in _proven:
            _proven[key] = _goes_out(inside, client, place, url) or _reaches_itself(
                inside, mode, client, place, url
            )
        if _proven[key]:
            return
    if not inside.target.declared.fact("has_processes"):
        raise NotApplicable("no client inside reaches a unix socket under any policy")
    raise NotRun(
        "no client inside reached a unix socket anywhere, so a refusal would show nothing; "
        "put python3 inside"
    )


def _goes_out(inside: Inside, client: Client, place: UnixPlace, url: str) -> bool:
    if "all" not in inside.target.declared.network:
        return False
    with place.listening() as (ear, host):
        where = Destination(url=url, host=host, payload="control")
        inside.attempt(inside.plain("all"), client, place.scheme, where)
        return bool(ear.heard())


def _reaches_itself(inside: Inside, mode: Mode, client: Client, place: UnixPlace, url: str) -> bool:
    if not inside.target.declared.fact("has_processes"):
        return False
    name = ("@" if place.abstract else "") + f"control-{secrets.token_hex(4)}.sock"
    command = client.command(place.scheme, Destination(url=url, host=name, payload="control"))
    source = files("conformance.probes").joinpath("unix_listener.py").read_text(encoding="utf-8")
    words = ["python3", "-I", "-c", source, _SOCKET_TYPES[place.kind], name, command]
    ran = inside.plain(mode).execute(shlex.join(words), timeout_seconds=20)
    return bool({"heard=42", "unmakeable=42"} & set(ran.stdout.split()))
