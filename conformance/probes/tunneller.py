"""A client in one file that takes no road by itself, sent as `python3 -I -c SOURCE VERB ...`.

It speaks to a proxy by hand where a variable names one, so that what goes through the tunnel
is what the command says: raw bytes, or TLS with a server name and a Host header of its
choice and no verification. It runs on Python 3.8 and the standard library, and on little of
that: a run starts it many hundred times, and most of what it costs is its imports.
"""

import base64
import json
import os
import select
import socket
import ssl
import sys
import threading
import urllib.parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing

SECONDS = 5


def connect(host: str, port: str) -> socket.socket:
    """Connect, through the proxy that the environment names if it names one."""
    names = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    proxy = next((os.environ[name] for name in names if os.environ.get(name)), "")
    if not proxy:
        return socket.create_connection((host, int(port)), SECONDS)
    parts = urllib.parse.urlsplit(proxy if "//" in proxy else "//" + proxy)
    secret = parts.scheme == "https"
    place = parts.hostname or "", parts.port or (443 if secret else 80)
    peer = socket.create_connection(place, SECONDS)
    if secret:
        peer = ssl.create_default_context().wrap_socket(peer, server_hostname=place[0])
    aim = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    head = f"CONNECT {aim} HTTP/1.1\r\nHost: {aim}\r\n"
    if parts.username:
        user = urllib.parse.unquote(f"{parts.username}:{parts.password or ''}")
        head += f"Proxy-Authorization: Basic {base64.b64encode(user.encode()).decode()}\r\n"
    peer.sendall((head + "\r\n").encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        piece = peer.recv(4096)
        if not piece:
            break
        answer += piece
    if answer.split(b" ")[1:2] != [b"200"]:
        raise ConnectionError(answer.decode(errors="replace"))
    return joined(peer) if isinstance(peer, ssl.SSLSocket) else peer


def joined(far: ssl.SSLSocket) -> socket.socket:
    """Give a plain socket that leads into TLS, since TLS within TLS needs one."""
    near, ours = socket.socketpair()
    near.settimeout(SECONDS)
    threading.Thread(target=pump, args=(ours, far), daemon=True).start()
    return near


def pump(near: socket.socket, far: ssl.SSLSocket) -> None:
    """Pass on what comes from either end, until one of them has done."""
    with near, far:
        while True:
            ready = [far] if far.pending() else select.select([near, far], [], [])[0]
            if far in ready:
                far.setblocking(False)
                try:
                    data = far.recv(65536)
                except ssl.SSLWantReadError:
                    data = None
                if data == b"":
                    return
                near.sendall(data or b"")
            if near in ready:
                data = near.recv(65536)
                if not data:
                    return
                far.settimeout(SECONDS)
                far.sendall(data)


def raw(host: str, port: str, payload: str) -> bytes:
    """Send bytes, and give what comes back first."""
    with connect(host, port) as peer:
        peer.sendall(payload.encode())
        return peer.recv(4096)


def tls(host: str, port: str, name: str, header: str, path: str) -> bytes:
    """Send a request inside TLS that nobody verifies, and give the answer."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with context.wrap_socket(connect(host, port), server_hostname=name) as peer:
        lines = (f"GET {path} HTTP/1.1", f"Host: {header}", "Connection: close", "", "")
        peer.sendall("\r\n".join(lines).encode())
        answer = b""
        while True:
            piece = peer.recv(4096)
            if not piece:
                return answer
            answer += piece


def asks(host: str, port: str, check: str, text: str) -> bytes:
    """Send requests one after the other, on one connection while it lasts, and give the answers.

    Each is a method, a target, a list of headers and a body, sent as they are.
    """
    context = ssl.create_default_context()
    if check == "unverified":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    answers = b""
    peer = None  # type: typing.Optional[ssl.SSLSocket]
    for method, target, headers, body in json.loads(text):
        lines = [method + " " + target + " HTTP/1.1"]
        lines += [name + ": " + value for name, value in headers]
        if body or method not in ("GET", "HEAD"):
            lines.append("Content-Length: " + str(len(body)))
        request = ("\r\n".join(lines) + "\r\n\r\n" + body).encode("latin-1")
        try:
            if peer is None:
                peer = context.wrap_socket(connect(host, port), server_hostname=host)
            peer.sendall(request)
            answer, last = answered(peer, method)
            answers += answer
        except (OSError, ValueError) as error:
            answers += f"{error!r}\n".encode()
            last = True
        if last and peer is not None:
            peer.close()
            peer = None
    return answers


def answered(peer: ssl.SSLSocket, method: str) -> "tuple[bytes, bool]":
    """Read one answer: its status, headers and body; and whether the connection ends with it."""
    with peer.makefile("rb") as lines:
        status = b"100"
        while status.startswith(b"1"):
            version, status = [*lines.readline(65536).split(), b"", b""][:2]
            if not version.startswith(b"HTTP/1."):
                raise ConnectionError("no answer to read begins with " + repr(version))
            head = list(iter(lambda: lines.readline(65536).strip(), b""))
        fields = [line.lower().partition(b":") for line in head]
        said = {name.strip(): value.strip() for name, _, value in fields}
        last = version == b"HTTP/1.0" or said.get(b"connection") == b"close"
        length = said.get(b"content-length")
        body = b""
        if method == "HEAD" or status in (b"204", b"304"):
            pass
        elif said.get(b"transfer-encoding") == b"chunked":
            while True:
                size = int(lines.readline(65536).partition(b";")[0], 16)
                if not size:
                    break
                body += lines.read(size)
                lines.readline(65536)
            while lines.readline(65536).strip():
                pass
        elif length is not None:
            body = lines.read(int(length))
        else:
            body, last = lines.read(), True
    return b"\n".join([status, *head, b"", body, b""]), last


if __name__ == "__main__":
    verbs: "dict[str, typing.Callable[..., bytes]]" = {"raw": raw, "tls": tls, "asks": asks}
    sys.stdout.buffer.write(verbs[sys.argv[1]](*sys.argv[2:]))
