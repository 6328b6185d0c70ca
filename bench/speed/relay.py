"""The minimum for a program in Python: forwards messages without decoding them.

``python -m bench.speed.relay ADDRESS ASN`` sends an OPEN on each connection and copies each UPDATE of
one peer to all others, from one loop without a library. Its time in P3 is that of the kernel and the
interpreter, and the bound for programs in Python. It must not decode routes. It reads as much at a time
as Waggle: a buffer of 256 KiB is mapped anew for each message, which
alone takes as long as a third of everything else.
"""

from __future__ import annotations

import select
import socket
import sys

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
    """All connections, each with the octets of its incomplete message."""

    def __init__(self, address: str, asn: int) -> None:
        self._greeting = open_message(address, asn)
        self._listening = socket.create_server((address, PORT), backlog=512)
        self._listening.setblocking(False)
        self._peers: dict[int, socket.socket] = {}
        self._rest: dict[int, bytes] = {}
        self._poll = select.epoll()
        self._poll.register(self._listening, select.EPOLLIN)

    def run(self) -> None:
        """Run until the process is killed."""
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor == self._listening.fileno():
                    self._accept()
                else:
                    self._read(descriptor)

    def _accept(self) -> None:
        peer, _ = self._listening.accept()
        peer.setblocking(False)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peers[peer.fileno()] = peer
        self._poll.register(peer, select.EPOLLIN)
        peer.send(self._greeting)

    def _read(self, descriptor: int) -> None:
        peer = self._peers[descriptor]
        try:
            data = peer.recv(_READ)
        except OSError:
            data = b""
        if not data:
            self._poll.unregister(peer)
            peer.close()
            del self._peers[descriptor]
            return
        data = self._rest.pop(descriptor, b"") + data
        position = 0
        updates: list[bytes] = []
        while len(data) - position >= _HEADER:
            end = position + int.from_bytes(data[position + 16 : position + 18], "big")
            if end > len(data):
                break
            if data[position + 18] == 1:
                peer.send(KEEPALIVE)
            elif data[position + 18] == 2:
                updates.append(data[position:end])
            position = end
        if position < len(data):
            self._rest[descriptor] = data[position:]
        if updates:
            message = b"".join(updates)
            for other in self._peers.values():
                if other is not peer:
                    other.send(message)


if __name__ == "__main__":
    Relay(sys.argv[1], int(sys.argv[2])).run()
