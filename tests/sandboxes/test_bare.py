"""What stands in for the standard library where a process starts commands."""

from __future__ import annotations

import _socket
import os
import socket
import sys
from typing import TYPE_CHECKING

import pytest

from sandboxes import bare

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_descriptors_are_received_than_asked_for(
    ends: tuple[socket.socket, socket.socket], most: int
) -> None:
    ours, theirs = ends
    socket.send_fds(ours, [b"x"], [theirs.fileno()] * (most + 1))

    data, found = bare.receive(theirs, 1, most)
    for number in found:
        os.close(number)

    assert (data, len(found)) == (b"x", most)


def test_a_message_without_descriptors_is_told_from_the_end(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = ends
    ours.sendall(b"x")
    ours.shutdown(socket.SHUT_WR)

    assert bare.receive(theirs, 4, 2) == (b"x", [])
    assert bare.receive(theirs, 4, 2) == (b"", [])


def test_a_descriptor_that_is_sent_is_that_of_the_same_file(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = ends
    read, write = os.pipe()
    with open(read, "rb") as reader, open(write, "wb", 0) as writer:
        bare.send_descriptor(ours, b"w", writer.fileno())
        data, [found] = bare.receive(theirs, 1, 1)
        with open(found, "wb", 0) as same:
            same.write(b"through")
        assert (data, reader.read(7)) == (b"w", b"through")


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="others have no such halves")
def test_it_is_the_c_halves_that_are_used() -> None:
    assert bare.socket is _socket


def test_only_the_named_errors_pass() -> None:
    with bare.suppress(FileNotFoundError, PermissionError):
        raise PermissionError
    with pytest.raises(KeyboardInterrupt), bare.suppress(OSError):
        raise KeyboardInterrupt
    with pytest.raises(OSError, match="other"), bare.suppress(FileNotFoundError):
        raise OSError("other")
