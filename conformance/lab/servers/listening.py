"""Opening the servers' sockets, in the namespace that the calling thread is in."""

from __future__ import annotations

import contextlib
import socket

_IPV6_FREEBIND = 78
_BACKLOG = 1024
_ANY_IPV6 = "::"


def listen_everywhere(port: int) -> socket.socket:
    """Open a TCP listener for every address of both families."""
    listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    listener.bind((_ANY_IPV6, port))
    listener.listen(_BACKLOG)
    return listener


def datagrams_everywhere(port: int) -> socket.socket:
    """Open a UDP socket for every address of both families."""
    handle = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    handle.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    handle.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    # Else no answer could come from an address that the kernel only takes for its own.
    handle.setsockopt(socket.IPPROTO_IPV6, _IPV6_FREEBIND, 1)
    handle.setblocking(False)
    handle.bind((_ANY_IPV6, port))
    return handle


def listen_at(address: str, port: int) -> socket.socket:
    """Open a TCP listener at one address; port 0 lets the kernel choose."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    with contextlib.ExitStack() as on_error:
        on_error.callback(listener.close)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((address, port))
        listener.listen(_BACKLOG)
        on_error.pop_all()
    return listener


def datagrams_at(address: str, port: int) -> socket.socket:
    """Open a UDP socket at one address; port 0 lets the kernel choose."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    handle = socket.socket(family, socket.SOCK_DGRAM)
    with contextlib.ExitStack() as on_error:
        on_error.callback(handle.close)
        handle.setblocking(False)
        handle.bind((address, port))
        on_error.pop_all()
    return handle
