"""The minimum for a program in Python: forwards messages without decoding them.

``python -m bench.speed.relay ADDRESS ASN [uvloop]`` sends an OPEN on each connection and copies each
UPDATE of one peer to all others: from one loop of epoll without a library, or with ``uvloop`` on the
transports that Waggle has, whose cost is the difference. Its time in P3 is that of the kernel and the
interpreter, and the bound for programs in Python. It must not decode routes. It reads as much at a time
as Waggle: a buffer of 256 KiB is mapped anew for each message, which takes as long as a third of
everything else.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import sys
from typing import NoReturn

import uvloop

PORT = 179
HOLD_TIME = 240
_READ = 1 << 15
_HEADER = 19


def _message(kind: int, body: bytes) -> bytes:
    return b"\xff" * 16 + (_HEADER + len(body)).to_bytes(2, "big") + bytes((kind,)) + body


KEEPALIVE = _message(4, b"")


def open_message(address: str, asn: int) -> bytes:
    """Return an OPEN (RFC 4271 section 4.2) for IPv4 unicast and AS numbers of four octets."""
    capabilities = b"\x01\x04\0\1\0\1" + b"\x41\x04" + asn.to_bytes(4, "big")
    options = bytes((2, len(capabilities))) + capabilities
    return _message(
        1,
        b"\x04"
        + asn.to_bytes(2, "big")
        + HOLD_TIME.to_bytes(2, "big")
        + socket.inet_aton(address)
        + bytes((len(options),))
        + options,
    )


class Relay:
    """The descriptors of all connections, each with the octets of its incomplete message."""

    def __init__(self, greeting: bytes) -> None:
        self._greeting = greeting
        self._rest: dict[int, bytes] = {}

    def opened(self, peer: socket.socket) -> None:
        """Add a connection."""
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest[peer.fileno()] = b""
        os.write(peer.fileno(), self._greeting)

    def closed(self, descriptor: int) -> None:
        """Remove a connection."""
        del self._rest[descriptor]

    def received(self, descriptor: int, data: bytes) -> None:
        """Copy the UPDATEs in these octets to all other connections."""
        data = self._rest[descriptor] + data
        position = 0
        updates: list[bytes] = []
        while len(data) - position >= _HEADER:
            end = position + int.from_bytes(data[position + 16 : position + 18], "big")
            if end > len(data):
                break
            if data[position + 18] == 1:
                os.write(descriptor, KEEPALIVE)
            elif data[position + 18] == 2:
                updates.append(data[position:end])
            position = end
        self._rest[descriptor] = data[position:]
        if updates:
            message = b"".join(updates)
            for other in self._rest:
                if other != descriptor:
                    os.write(other, message)


def run_epoll(relay: Relay, address: str) -> NoReturn:
    """Run until the process is killed, on epoll alone."""
    listening = socket.create_server((address, PORT), backlog=512)
    peers: dict[int, socket.socket] = {}
    poll = select.epoll()
    poll.register(listening, select.EPOLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == listening.fileno():
                peer, _ = listening.accept()
                peer.setblocking(False)
                peers[peer.fileno()] = peer
                poll.register(peer, select.EPOLLIN)
                relay.opened(peer)
                continue
            try:
                data = peers[descriptor].recv(_READ)
            except OSError:
                data = b""
            if data:
                relay.received(descriptor, data)
            else:
                relay.closed(descriptor)
                poll.unregister(descriptor)
                peers.pop(descriptor).close()


async def run_uvloop(relay: Relay, address: str) -> None:
    """Run until the process is killed, on the transports that Waggle has."""
    buffer = memoryview(bytearray(_READ))

    class Connection(asyncio.BufferedProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            peer: socket.socket = transport.get_extra_info("socket")
            self._descriptor = peer.fileno()
            relay.opened(peer)

        def get_buffer(self, sizehint: int) -> memoryview:
            del sizehint
            return buffer

        def buffer_updated(self, nbytes: int) -> None:
            relay.received(self._descriptor, bytes(buffer[:nbytes]))

        def connection_lost(self, error: Exception | None) -> None:
            del error
            relay.closed(self._descriptor)

    server = await asyncio.get_running_loop().create_server(Connection, address, PORT)
    await server.serve_forever()


if __name__ == "__main__":
    _address, _asn, *_loop = sys.argv[1:]
    _relay = Relay(open_message(_address, int(_asn)))
    if _loop == ["uvloop"]:
        uvloop.run(run_uvloop(_relay, _address))
    else:
        run_epoll(_relay, _address)
