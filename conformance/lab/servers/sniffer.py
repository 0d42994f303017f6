"""Sniffers: what leaves the subject's namespace, whether or not anything listens for it.

They sit on the subject's side of the wire and take outgoing packets only. The kernel
hands a packet to them within the call that sends it, so that what was sent before a
question is in the queue when the question comes; on the far side it might be on its way.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from typing import TYPE_CHECKING, NamedTuple

from conformance.lab.addresses import MARKER_PORT
from conformance.lab.errors import LabError
from conformance.lab.journal import MARKER

if TYPE_CHECKING:
    from conformance.lab.servers.records import Journal

_ETH_P_ALL = 3
_SOL_PACKET = 263
_PACKET_STATISTICS = 6
_SO_ATTACH_FILTER = 26
_SO_RCVBUFFORCE = 33
_QUEUE_BYTES = 16 << 20
_SNAP_BYTES = 1024
_PACKET_LIMIT = 512

_TCP, _UDP, _ICMP, _ICMP6, _IGMP = 6, 17, 1, 58, 2
_FRAGMENT, _DESTINATION_OPTIONS = 44, 60
_EXTENSIONS = {0, 43, _DESTINATION_OPTIONS}
_ECHO = {_ICMP: 8, _ICMP6: 128}
_SYN, _ACK = 2, 16

# (code, jump if true, jump if false, operand): outgoing packets that begin a conversation.
# Established TCP is left out in the kernel, or a large answer would crowd the queue.
_FILTER = (
    (0x28, 0, 0, 0xFFFFF004),  # ldh packet type
    (0x15, 0, 14, 4),  # outgoing, else drop
    (0x30, 0, 0, 0),  # ldb version
    (0x54, 0, 0, 0xF0),
    (0x15, 0, 4, 0x40),  # IPv4, else IPv6
    (0x30, 0, 0, 9),  # ldb protocol
    (0x15, 0, 8, _TCP),  # not TCP: take
    (0xB1, 0, 0, 0),  # ldx header length
    (0x05, 0, 0, 4),  # to the flags
    (0x15, 0, 6, 0x60),  # IPv6, else drop
    (0x30, 0, 0, 6),  # ldb next header
    (0x15, 0, 3, _TCP),  # not TCP: take
    (0x01, 0, 0, 40),  # ldx header length
    (0x50, 0, 0, 13),  # ldb flags
    (0x45, 0, 1, _SYN),  # SYN: take, else drop
    (0x06, 0, 0, _SNAP_BYTES),  # take
    (0x06, 0, 0, 0),  # drop
)


class Packet(NamedTuple):
    """A packet that begins something.

    Args:
        protocol: "tcp", "udp", "icmp", or "ip-N".
        source: address and port.
        destination: address and port.
        payload: what it carries.
    """

    protocol: str
    source: tuple[str, int]
    destination: tuple[str, int]
    payload: bytes


def parse(data: bytes) -> Packet | None:
    """Read a packet from its IP header on; `None` where it is the network's own talk."""
    try:
        if data[0] >> 4 == 4:
            protocol, rest = data[9], data[(data[0] & 15) * 4 :]
            source, destination = (socket.inet_ntoa(data[at : at + 4]) for at in (12, 16))
            if int.from_bytes(data[6:8], "big") & 0x1FFF:
                return Packet(f"ip-{protocol}", (source, 0), (destination, 0), rest)
        else:
            protocol, rest = _skip_extensions(data[6], data[40:])
            source, destination = (
                socket.inet_ntop(socket.AF_INET6, data[at : at + 16]) for at in (8, 24)
            )
        return _parse_transport(protocol, rest, source, destination)
    except (IndexError, OSError, struct.error, ValueError):
        return None  # cut short: nothing that a peer could take for a packet either


def _skip_extensions(protocol: int, rest: bytes) -> tuple[int, bytes]:
    while protocol in _EXTENSIONS or protocol == _FRAGMENT:
        size = 8 if protocol == _FRAGMENT else 8 + rest[1] * 8
        protocol, rest = rest[0], rest[size:]
    return protocol, rest


def _parse_transport(protocol: int, rest: bytes, source: str, destination: str) -> Packet | None:
    if protocol == _TCP:
        ports = struct.unpack_from("!HH", rest)
        if rest[13] & (_SYN | _ACK) != _SYN:
            return None
        name, payload = "tcp", rest[(rest[12] >> 4) * 4 :]
    elif protocol == _UDP:
        ports = struct.unpack_from("!HH", rest)
        name, payload = "udp", rest[8:]
    elif protocol in _ECHO:
        if rest[0] != _ECHO[protocol]:
            return None
        ports, name, payload = (0, 0), "icmp", rest[8:]
    elif protocol == _IGMP or (protocol == 0 and not rest):
        return None
    else:
        ports, name, payload = (0, 0), f"ip-{protocol}", rest
    return Packet(name, (source, ports[0]), (destination, ports[1]), payload)


class Sniffer:
    """Listens on one device of the network namespace that its socket was made in.

    Args:
        handle: a packet socket without link headers, not bound yet.
        journal: where packets are recorded.
    """

    def __init__(self, handle: socket.socket, journal: Journal) -> None:
        self._journal = journal
        self.markers: set[bytes] = set()
        self.socket = handle
        self.socket.setblocking(False)
        self._enlarge_queue()
        program = b"".join(struct.pack("HBBI", *step) for step in _FILTER)
        held = ctypes.create_string_buffer(program)
        header = struct.pack("HL", len(_FILTER), ctypes.addressof(held))
        self.socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, header)

    def _enlarge_queue(self) -> None:
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _QUEUE_BYTES)
        except PermissionError:  # in a user namespace: as much as anybody may have
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _QUEUE_BYTES)

    def listen(self, device: str) -> None:
        """Begin, on the device of this name.

        Raises:
            OSError: there is no such device.
        """
        self.socket.bind((device, _ETH_P_ALL))

    def drain(self) -> None:
        """Record what is in the queue.

        Raises:
            LabError: packets were lost before they could be recorded.
        """
        while True:
            try:
                data = self.socket.recv(_SNAP_BYTES)
            except BlockingIOError:
                break
            packet = parse(data)
            if packet is not None:
                self._take(packet)

    def check(self) -> None:
        """Check that nothing was lost since the last check.

        Raises:
            LabError: packets were lost before they could be recorded.
        """
        counters = self.socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        lost = struct.unpack("II", counters)[1]
        if lost:
            raise LabError(f"the sniffer lost {lost} packets; run fewer workers at a time")

    def _take(self, packet: Packet) -> None:
        if packet.destination[1] == MARKER_PORT and packet.payload.startswith(MARKER):
            self.markers.add(packet.payload[len(MARKER) :])
            return
        self._journal.record(
            "packet",
            packet.destination,
            packet.source,
            packet.protocol,
            payload=packet.payload[:_PACKET_LIMIT],
        )
