"""Echo packets on the link: RFC 5881 section 4.

An echo packet is for its sender's own address, and is sent to the link-layer address of the neighbor,
whose forwarding returns it. No socket of UDP sends that, and none receives it, as its source is an
address of this node: so packets are sent and received below IP, by sockets that need CAP_NET_RAW when
they are opened.

The kernel has the link-layer addresses: of its neighbor table, to which control packets keep them.
"""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import os
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from speaker.bfd.source_filter import assembled, attach_program
from speaker.bfd.transport import MAX_OCTETS

ECHO_PORT: Final = 3785
_PROTOCOLS: Final[dict[int, int]] = {socket.AF_INET: 0x0800, socket.AF_INET6: 0x86DD}
_TTL: Final = 255
_CS6: Final = 0xC0
_LINK: Final = struct.Struct("=HHiHBB8x")
"""sockaddr_ll: family, protocol, interface, and what is of sent packets alone."""
_UDP: Final = struct.Struct("!HHHH")
_IPV4: Final = struct.Struct("!BBHHHBBH4s4s")
_IPV6: Final = struct.Struct("!IHBB16s16s")
_NETLINK: Final = struct.Struct("=IHHII")
_NEIGHBOR: Final = struct.Struct("=BxxxiHBB")
_ATTRIBUTE: Final = struct.Struct("=HH")
_RTM_NEWNEIGH, _RTM_GETNEIGH, _NLMSG_DONE, _NLMSG_ERROR = 28, 30, 3, 2
_NLM_F_REQUEST, _NLM_F_DUMP = 1, 0x300
_NDA_DST, _NDA_LLADDR = 1, 2
_NUD_KNOWN: Final = 0x02 | 0x04 | 0x08 | 0x10 | 0x80
"""Reachable, stale, delay, probe, permanent: states of neighbors whose address may be used."""
_REPLY_OCTETS: Final = 1 << 17
_PACKET_TYPE: Final = 0x1_0000_0000 - 0x1000 + 4
"""SKF_AD_OFF + SKF_AD_PKTTYPE: for whom a frame is, in a filter."""


class Neighbor(NamedTuple):
    """A neighbor on a link."""

    interface: int
    hardware: bytes
    """Its link-layer address."""


class EchoSocket:
    """Sends and receives the echo packets of one family, on all links."""

    def __init__(self, family: int) -> None:
        """Open. Raises OSError: CAP_NET_RAW is missing."""
        self.family = family
        # Of no protocol: nothing is received before `listen`.
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, 0)
        attach_program(self.sock, assembled(_program(family)))

    def listen(self) -> None:
        """Receive what returns, from now on. Raises OSError."""
        # For all links, which the module socket has no address of.
        address = _LINK.pack(socket.AF_PACKET, socket.htons(_PROTOCOLS[self.family]), 0, 0, 0, 0)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.bind(self.sock.fileno(), address, len(address)):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def send(self, neighbor: Neighbor, address: str, payload: bytes) -> None:
        """Send a payload to this node's own address, by way of a neighbor. Raises OSError."""
        packet = _packet(ipaddress.ip_address(address).packed, payload)
        with contextlib.suppress(BlockingIOError):  # a full buffer: a lost packet, as on the link
            interface = socket.if_indextoname(neighbor.interface)
            self.sock.sendto(packet, (interface, _PROTOCOLS[self.family], 0, 0, neighbor.hardware))

    def read(self, most: int) -> Iterator[bytes]:
        """Yield the payloads that wait, of ``most`` packets at the most."""
        for _ in range(most):
            try:
                packet = self.sock.recv(MAX_OCTETS)
            except OSError:
                return
            header = 40 if self.family == socket.AF_INET6 else 4 * (packet[0] & 0x0F)
            length = int.from_bytes(packet[header + 4 : header + 6])
            yield packet[header + _UDP.size : header + max(length, _UDP.size)]

    def close(self) -> None:
        """Close the socket."""
        self.sock.close()


def open_echo_sockets() -> tuple[EchoSocket, ...]:
    """Return the sockets of both families, or none without the capability."""
    sockets: list[EchoSocket] = []
    try:
        sockets.extend(map(EchoSocket, _PROTOCOLS))
    except OSError:
        for each in sockets:
            each.close()
        return ()
    return tuple(sockets)


def returns_echoes(family: int) -> bool:
    """Return whether the kernel forwards packets, and so returns the echo packets of a neighbor."""
    name = "ipv6/conf/all/forwarding" if family == socket.AF_INET6 else "ipv4/ip_forward"
    try:
        with open(f"/proc/sys/net/{name}", "rb") as file:  # noqa: PTH123  many times
            return file.read(1) == b"1"
    except OSError:
        return False


def neighbors(family: int, addresses: Iterable[str]) -> Mapping[str, tuple[Neighbor, ...]]:
    """Return what the kernel knows of addresses, one neighbor for each link. Raises OSError."""
    wanted = {ipaddress.ip_address(address).packed: address for address in addresses}
    by_address: dict[str, tuple[Neighbor, ...]] = {}
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
        body = _NEIGHBOR.pack(family, 0, 0, 0, 0)
        flags = _NLM_F_REQUEST | _NLM_F_DUMP
        size = _NETLINK.size + len(body)
        sock.send(_NETLINK.pack(size, _RTM_GETNEIGH, flags, 1, 0) + body)
        for message in _dump(sock):
            _, interface, state, _, _ = _NEIGHBOR.unpack_from(message)
            attributes = dict(_attributes(message[_NEIGHBOR.size :]))
            address = wanted.get(attributes.get(_NDA_DST, b""))
            hardware = attributes.get(_NDA_LLADDR, b"")
            if address is not None and hardware and state & _NUD_KNOWN:
                by_address[address] = (*by_address.get(address, ()), Neighbor(interface, hardware))
    return by_address


def _dump(sock: socket.socket) -> Iterator[bytes]:
    """Yield the messages of an answer. Raises OSError."""
    while True:
        octets = sock.recv(_REPLY_OCTETS)
        while len(octets) >= _NETLINK.size:
            length, kind, _, _, _ = _NETLINK.unpack_from(octets)
            if kind in {_NLMSG_DONE, _NLMSG_ERROR}:
                return
            if kind == _RTM_NEWNEIGH:
                yield octets[_NETLINK.size : length]
            octets = octets[(length + 3) & ~3 :]


def _attributes(octets: bytes) -> Iterator[tuple[int, bytes]]:
    while len(octets) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(octets)
        if length < _ATTRIBUTE.size:
            return
        yield kind, octets[_ATTRIBUTE.size : length]
        octets = octets[(length + 3) & ~3 :]


def _packet(address: bytes, payload: bytes) -> bytes:
    """Return a packet of UDP from an address to itself."""
    length = _UDP.size + len(payload)
    udp = _UDP.pack(ECHO_PORT, ECHO_PORT, length, 0) + payload
    protocol = socket.IPPROTO_UDP
    pseudo = address + address + struct.pack("!II", length, protocol)
    checksum = _checksum(pseudo + udp) or 0xFFFF
    udp = udp[:6] + checksum.to_bytes(2) + udp[8:]
    if len(address) == 4:
        fields = (0x45, _CS6, 20 + length, 0, 0x4000, _TTL, protocol)
        head = _IPV4.pack(*fields, 0, address, address)
        return _IPV4.pack(*fields, _checksum(head), address, address) + udp
    return _IPV6.pack(6 << 28 | _CS6 << 20, length, protocol, _TTL, address, address) + udp


def _checksum(octets: bytes) -> int:
    """Return the checksum of the Internet protocols (RFC 1071)."""
    if len(octets) % 2:
        octets += b"\0"
    total: int = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _program(family: int) -> tuple[tuple[int, int, int, int], ...]:
    """Return the filter that takes UDP to the port: of all packets of a link, nothing else.

    And of frames those for this node alone: in promiscuous mode an interface would take our own ones,
    on their way to the neighbor, for what it returns.
    """
    word, byte, half, half_at_x, header_length = 0x20, 0x30, 0x28, 0x48, 0xB1
    equal, bits, end = 0x15, 0x45, 0x06
    if family == socket.AF_INET6:
        return (
            (word, 0, 0, _PACKET_TYPE),
            (equal, 0, 5, socket.PACKET_HOST),
            (byte, 0, 0, 6),
            (equal, 0, 3, socket.IPPROTO_UDP),
            (half, 0, 0, 42),
            (equal, 0, 1, ECHO_PORT),
            (end, 0, 0, MAX_OCTETS),
            (end, 0, 0, 0),
        )
    return (
        (word, 0, 0, _PACKET_TYPE),
        (equal, 0, 8, socket.PACKET_HOST),
        (byte, 0, 0, 9),
        (equal, 0, 6, socket.IPPROTO_UDP),
        (half, 0, 0, 6),
        (bits, 4, 0, 0x1FFF),
        (header_length, 0, 0, 0),
        (half_at_x, 0, 0, 2),
        (equal, 0, 1, ECHO_PORT),
        (end, 0, 0, MAX_OCTETS),
        (end, 0, 0, 0),
    )
