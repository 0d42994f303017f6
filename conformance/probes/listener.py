"""A server inside the sandbox, for controls: does a client work at all in there?

Sent as `python3 -I -c SOURCE PROTOCOL PORT COMMAND`. It listens on the sandbox's own
loopback, runs the command, and says whether the command got through to it. Python 3.8
and the standard library are enough.
"""

import socket
import subprocess
import sys

SECONDS = 8

if __name__ == "__main__":
    protocol, port, command = sys.argv[1:]
    kind = socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, kind) as server:
        server.bind(("127.0.0.1", int(port)))
        server.settimeout(SECONDS)
        if protocol == "tcp":
            server.listen()
        child = subprocess.Popen(["/bin/sh", "-c", command])
        peer = server.accept()[0] if protocol == "tcp" else server
        with peer:
            peer.settimeout(SECONDS)
            heard = peer.recv(4096)
        child.wait(SECONDS)
        # Computed, so that a fake which echoes its commands does not pass for a listener.
        sys.stdout.write(f"\nheard={40 + 2 if heard else 0}\n")
