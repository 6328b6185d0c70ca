"""Packets of UDP with any source address and TTL, as many as the machine sends, within a namespace."""

from __future__ import annotations

import ctypes
import ipaddress
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Final

from tests.support.netns import Namespace

BATCH: Final = 64
_IPV4: Final = struct.Struct("!BBHHHBBH4s4s")
_UDP: Final = struct.Struct("!HHHH")


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Message(ctypes.Structure):
    """``struct mmsghdr``."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint),
        ("vectors", ctypes.POINTER(_Vector)),
        ("vector_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
        ("padding", ctypes.c_int),
        ("sent", ctypes.c_uint),
    )


def packet(source: str, destination: str, ttl: int, port: int, payload: bytes) -> bytes:
    """Return a packet of IPv4 and UDP; the kernel computes the checksum of the header."""
    length = _UDP.size + len(payload)
    addresses = (ipaddress.ip_address(source).packed, ipaddress.ip_address(destination).packed)
    head = _IPV4.pack(0x45, 0, 20 + length, 0, 0, ttl, socket.IPPROTO_UDP, 0, *addresses)
    return head + _UDP.pack(50_000, port, length, 0) + payload


def flood(seconds: float, least: int, destination: str, packets: Sequence[bytes]) -> int:
    """Send the packets in turn for a time, and until there are enough; returns how many were sent."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffers = [ctypes.create_string_buffer(each, len(each)) for each in packets]
    vectors = [_Vector(ctypes.addressof(each), len(each)) for each in buffers]
    messages = (_Message * BATCH)()
    for index, message in enumerate(messages):
        message.vectors = ctypes.pointer(vectors[index % len(vectors)])
        message.vector_count = 1
    sent, until = 0, time.monotonic() + seconds
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as sock:
        sock.connect((destination, 0))
        while sent < least or time.monotonic() < until:
            sent += max(0, libc.sendmmsg(sock.fileno(), messages, BATCH, 0))
    return sent


def flood_from(
    side: Namespace, seconds: float, destination: str, packets: Sequence[bytes], least: int = 1
) -> int:
    """Flood from a namespace; without time each packet is sent `BATCH` times or less."""
    how_long = (str(seconds), str(least))
    module = [sys.executable, "-m", "tests.support.packet_flood", *how_long, destination]
    command = [*side.command(), *module, *(each.hex() for each in packets)]
    return int(subprocess.run(command, capture_output=True, check=True).stdout)


def main(seconds: str, least: str, destination: str, *packets: str) -> None:
    """Run the program."""
    sent = flood(float(seconds), int(least), destination, [bytes.fromhex(each) for each in packets])
    sys.stdout.write(f"{sent}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
