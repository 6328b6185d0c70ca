"""Netlink sockets: requests, packed requests with one acknowledgement, and dumps.

linux/netlink.h. A datagram may hold many requests, which the kernel handles in order; it answers
failed requests, and the request with an acknowledgement. An answer to a request that failed has the
whole request in it, so that requests of one datagram need no numbers of their own.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Protocol

HEADER: Final = struct.Struct("=IHHII")
"""nlmsghdr: length, type, flags, sequence, port."""
ATTRIBUTE: Final = struct.Struct("=HH")
"""nlattr: length, type."""
TYPE_MASK: Final = 0x3FFF

REQUEST, ACK, DUMP = 0x1, 0x4, 0x300
REPLACE, EXCL, CREATE = 0x100, 0x200, 0x400
INTERRUPTED: Final = 0x10
"""NLM_F_DUMP_INTR: the table changed during the dump."""
ERROR, DONE = 2, 3

_SOL_NETLINK: Final = 270
_ADD_MEMBERSHIP, _EXT_ACK, _STRICT_CHECK = 1, 11, 12
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_SEND_BUFFER: Final = 1 << 20
_RECEIVE_BUFFER: Final = 1 << 22
"""For the errors of a datagram in which every request fails, and for notifications while we write."""
_DATAGRAM: Final = 1 << 18
_SECONDS: Final = 30.0
_ATTEMPTS: Final = 5
_CAPPED, _ACK_TLVS = 0x100, 0x200
_ERROR_TEXT: Final = 1
_CODE: Final = struct.Struct("=i")


class Listing(Protocol):
    """Gathers the messages of a listing."""

    def clear(self) -> None:
        """Begin a netlink dump, at first or again: the table changed during the dump."""

    def take(self, octets: bytes, at: int, end: int) -> None:
        """Take a netlink message with its header, of a datagram of a dump."""


class Rejected(NamedTuple):
    """A request that the kernel refused."""

    request: bytes
    """The whole message."""
    error: int
    """errno."""
    text: str
    """The kernel's own explanation; may be empty."""


class DumpInterruptedError(OSError):
    """The kernel's table changed during every attempt of a dump."""

    def __init__(self) -> None:
        super().__init__(errno.EAGAIN, "the kernel's table changed during every dump")


def open_socket(*groups: int) -> socket.socket:
    """Open a netlink socket of the writer, a member of groups (RTNLGRP). Raises `OSError`."""
    kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    try:
        kernel.settimeout(_SECONDS)
        for option, size in ((_SO_SNDBUFFORCE, _SEND_BUFFER), (_SO_RCVBUFFORCE, _RECEIVE_BUFFER)):
            # Without CAP_NET_ADMIN the limits of the host hold.
            with contextlib.suppress(PermissionError):
                kernel.setsockopt(socket.SOL_SOCKET, option, size)
        for flag in (_EXT_ACK, _STRICT_CHECK):
            # Kernels before 4.20 have no strict checking: dumps are then filtered here alone.
            with contextlib.suppress(OSError):
                kernel.setsockopt(_SOL_NETLINK, flag, 1)
        kernel.bind((0, 0))
        for group in groups:
            kernel.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, group)
    except BaseException:
        kernel.close()
        raise
    return kernel


def attribute(kind: int, value: bytes) -> bytes:
    """Encode a netlink attribute for a request of the writer, padded to four octets."""
    octets = ATTRIBUTE.pack(ATTRIBUTE.size + len(value), kind) + value
    return octets + bytes(-len(octets) % 4)


def number(kind: int, value: int) -> bytes:
    """Encode a netlink attribute of 32 bits for a request of the writer."""
    return struct.pack("=HHI", 8, kind, value)


def attributes(message: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the netlink attributes of a message to the writer: type, begin, end."""
    while at + 4 <= end:
        length, kind = ATTRIBUTE.unpack_from(message, at)
        if length < 4 or at + length > end:
            return
        yield kind & TYPE_MASK, at + 4, at + length
        at += (length + 3) & ~3


def messages(octets: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield the netlink messages of a datagram to the writer: type, flags, begin, end."""
    at = 0
    while at + HEADER.size <= len(octets):
        length, kind, flags, _, _ = HEADER.unpack_from(octets, at)
        if length < HEADER.size or at + length > len(octets):
            return
        yield kind, flags, at, at + length
        at += (length + 3) & ~3


class Kernel:
    """A netlink socket for requests. All methods block, for milliseconds; they raise `OSError`."""

    def __init__(self) -> None:
        self._socket = open_socket()
        self.port: Final[int] = self._socket.getsockname()[0]
        """The port number that notifications of changes made by this socket have."""
        self._sequence = 0
        self.requests = 0
        """Requests that changed something, or tried to, since the start."""

    def close(self) -> None:
        """Close the writer's netlink socket for requests."""
        self._socket.close()

    def request(self, kind: int, flags: int, body: bytes) -> None:
        """Make one change by a netlink request of the writer. Raises `OSError`."""
        size = HEADER.size + len(body)
        head = HEADER.pack(size, kind, flags | REQUEST | ACK, self.next_sequence(), 0)
        rejected = self.change(head + body, 1)
        if rejected:
            refused = rejected[0]
            raise OSError(refused.error, refused.text or os.strerror(refused.error))

    def next_sequence(self) -> int:
        """Return the number for the writer's netlink requests of the next datagram."""
        self._sequence = self._sequence % 0xFFFFFFF0 + 1
        return self._sequence

    def change(self, datagram: bytes, requests: int) -> list[Rejected]:
        """Send packed netlink requests of the writer, the last with `ACK`; returns the failed ones."""
        self._socket.send(datagram)
        self.requests += requests
        rejected: list[Rejected] = []
        while True:
            octets = self._socket.recv(_DATAGRAM)
            for kind, flags, start, end in messages(octets):
                if kind != ERROR:
                    continue
                (code,) = _CODE.unpack_from(octets, start + HEADER.size)
                at = start + HEADER.size + 4
                length, _, request_flags, sequence, _ = HEADER.unpack_from(octets, at)
                if sequence != self._sequence:
                    continue  # of a datagram that was given up
                if code:
                    text = "" if not flags & _ACK_TLVS else _explanation(octets, at, end, flags)
                    rejected.append(Rejected(octets[at : at + length], -code, text))
                if request_flags & ACK:
                    return rejected

    def dump(self, kind: int, body: bytes, listing: Listing) -> None:
        """List something of the kernel for the writer by a netlink dump. Raises `OSError`."""
        for _ in range(_ATTEMPTS):
            listing.clear()
            if self._dump(kind, body, listing.take):
                return
        raise DumpInterruptedError

    def _dump(self, kind: int, body: bytes, take: Callable[[bytes, int, int], None]) -> bool:
        """Take the messages of a listing; returns False if the table changed meanwhile."""
        sequence = self.next_sequence()
        size = HEADER.size + len(body)
        self._socket.send(HEADER.pack(size, kind, REQUEST | DUMP, sequence, 0) + body)
        consistent = True
        unpack = HEADER.unpack_from
        while True:
            octets = self._socket.recv(_DATAGRAM)
            at, last = 0, len(octets) - HEADER.size
            while at <= last:
                length, answer, flags, answers, _ = unpack(octets, at)
                if answers != sequence or length < HEADER.size:
                    break
                if flags & INTERRUPTED:
                    consistent = False
                if answer in (ERROR, DONE):
                    (code,) = _CODE.unpack_from(octets, at + HEADER.size)
                    if code:
                        raise OSError(-code, os.strerror(-code))
                    return consistent
                take(octets, at, at + length)
                at += (length + 3) & ~3


def _explanation(octets: bytes, at: int, end: int, flags: int) -> str:
    (length,) = struct.unpack_from("=I", octets, at)
    at += HEADER.size if flags & _CAPPED else (length + 3) & ~3
    for kind, first, last in attributes(octets, at, end):
        if kind == _ERROR_TEXT:
            return octets[first:last].rstrip(b"\0").decode(errors="replace")
    return ""
