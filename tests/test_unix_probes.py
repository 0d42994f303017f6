"""The harness's own sockets hear who comes, and the clients for unix sockets do come."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance.probes import unix_sockets
from conformance.probes.clients import Destination
from conformance.probes.ears import Ear
from conformance.probes.unix_sockets import UnixPlace

if TYPE_CHECKING:
    from conformance.probes.ears import Kind

LISTENER = Path(unix_sockets.__file__).with_name("unix_listener.py").read_text(encoding="utf-8")
PLACES = [UnixPlace("stream", abstract=False), UnixPlace("datagram", abstract=False)]
if sys.platform == "linux":
    PLACES += [UnixPlace("stream", abstract=True), UnixPlace("datagram", abstract=True)]


def run(*words: str) -> str:
    ran = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
    )
    return ran.stdout


@pytest.mark.parametrize("kind", ["stream", "datagram"])
def test_an_ear_hears_each_call_once_and_not_its_own(kind: Kind) -> None:
    with Ear.at_loopback("127.0.0.1", kind) as ear:
        assert ear.heard() == []
        for word in (b"first", b"second"):
            type_ = socket.SOCK_STREAM if kind == "stream" else socket.SOCK_DGRAM
            with socket.socket(socket.AF_INET, type_) as caller:
                caller.connect(("127.0.0.1", ear.port))
                caller.sendall(word)
        first, second = ear.heard()
        assert "first" in first
        assert "second" in second
        assert ear.heard() == []


def test_an_ear_hears_a_call_that_was_taken_back_and_an_empty_one() -> None:
    with Ear.at_loopback("127.0.0.1", "stream") as ear:
        socket.create_connection(("127.0.0.1", ear.port)).close()
        assert len(ear.heard()) == 1
    with Ear.at_loopback("127.0.0.1", "datagram") as ear:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
            caller.sendto(b"", ("127.0.0.1", ear.port))
        assert len(ear.heard()) == 1


def test_a_port_that_is_taken_is_not_insisted_on() -> None:
    with (
        Ear.at_loopback("127.0.0.1", "stream") as first,
        Ear.at_loopback("127.0.0.1", "stream", first.port) as second,
    ):
        assert first.port != second.port


def test_an_ear_leaves_nothing_at_its_path(tmp_path: Path) -> None:
    with Ear.at_path(tmp_path / "ear", "stream"):
        assert (tmp_path / "ear").is_socket()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_every_client_of_this_machine_reaches_a_unix_socket(place: UnixPlace) -> None:
    came = {}
    for client in unix_sockets.ALL:
        if place.scheme in client.commands and shutil.which(client.program):
            with place.listening() as (ear, host):
                where = Destination(url="https://nothing.invalid/", host=host, payload="hello")
                run("sh", "-c", client.command(place.scheme, where))
                came[client.name] = bool(ear.heard())
    assert came.pop("python3")
    if place.abstract:
        came.pop("nc", None)  # it takes the name for a path
        came.pop("node", None)  # older ones do not know such names
    assert all(came.values()), came


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_a_listener_inside_tells_a_client_that_works_from_one_that_does_not(
    place: UnixPlace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (python,) = (one for one in unix_sockets.ALL if one.name == "python3")
    kind = "SOCK_STREAM" if place.kind == "stream" else "SOCK_DGRAM"
    name = f"{'@' if place.abstract else ''}ear-{tmp_path.name}"
    for dialled, heard in ((name, True), (f"{name}-other", False)):
        command = python.command(place.scheme, Destination(host=dialled, payload="hello"))
        printed = run(sys.executable, "-I", "-c", LISTENER, kind, name, command)
        assert ("heard=42" in printed.split()) is heard
        assert "unmakeable=42" not in printed
        Path(name).unlink(missing_ok=True)
