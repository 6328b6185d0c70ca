"""A sink for many BGP sessions: accepts, answers with prepared octets, and records arrivals.

A separate process, so that its work is not on the measured core. It implements just enough BGP to be
Established: one OPEN and KEEPALIVEs. It sends and decodes no UPDATE: an arrival is the moment when
the expected octets were read.

Commands on standard input, one a line, each answered with one JSON line:
``count N SESSIONS``  answers once that many sessions have received N prefixes each (of /32);
``first`` is the time of the first connection;
``expect HEX``  answers immediately that it watches, and again when every session has received HEX.
Times are from CLOCK_MONOTONIC, in nanoseconds, which all processes share.
"""

from __future__ import annotations

import json
import selectors
import socket
import struct
import sys
import time

from bench.workload import PEER_ASN

MARKER = b"\xff" * 16
KEEPALIVE = MARKER + struct.pack("!HB", 19, 4)
HOLD_TIME = 90
KEEPALIVE_SECONDS = 25.0
BACKLOG = 512


def open_message() -> bytes:
    """Return an OPEN with the multiprotocol (IPv4 unicast) and four-octet AS capabilities."""
    capabilities = bytes((1, 4, 0, 1, 0, 1)) + bytes((65, 4)) + struct.pack("!I", PEER_ASN)
    parameters = bytes((2, len(capabilities))) + capabilities
    body = struct.pack("!BHH4sB", 4, PEER_ASN, HOLD_TIME, bytes((192, 0, 2, 1)), len(parameters))
    return MARKER + struct.pack("!HB", 19 + len(body) + len(parameters), 1) + body + parameters


class Session:
    """One accepted connection."""

    __slots__ = ("connection", "prefixes", "rest", "tail", "waiting")

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.rest = b""
        self.tail = b""
        self.prefixes = 0
        self.waiting = False


class Sink:
    """All sessions, in one loop."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.listener = socket.create_server(("0.0.0.0", 0), backlog=BACKLOG)  # noqa: S104
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        self.sessions: dict[int, Session] = {}
        self.expected = b""
        self.missing = 0
        self.wanted: tuple[int, int] | None = None
        """Prefixes of each session, and sessions."""
        self.first = 0

    def run(self) -> None:
        """Serve until standard input closes."""
        print_answer({"port": self.listener.getsockname()[1]})
        due = time.monotonic() + KEEPALIVE_SECONDS
        while True:
            for key, _ in self.selector.select(max(0.0, due - time.monotonic())):
                if key.fd == self.listener.fileno():
                    self.accept()
                elif key.fd == sys.stdin.fileno():
                    if not self.command():
                        return
                else:
                    self.read(self.sessions[key.fd])
            if time.monotonic() >= due:
                due += KEEPALIVE_SECONDS
                for session in self.sessions.values():
                    session.connection.send(KEEPALIVE)

    def accept(self) -> None:
        """Accept a connection and send the OPEN."""
        connection, _ = self.listener.accept()
        self.first = self.first or time.monotonic_ns()
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.send(open_message() + KEEPALIVE)
        self.sessions[connection.fileno()] = Session(connection)
        self.selector.register(connection, selectors.EVENT_READ)

    def command(self) -> bool:
        """Read a command; False when there are no more."""
        line = sys.stdin.readline().split()
        if not line:
            return False
        if line[0] == "count":
            self.wanted = (int(line[1]), int(line[2]))
            self.counted()
        else:
            self.expected = bytes.fromhex(line[1])
            self.missing = len(self.sessions)
            for session in self.sessions.values():
                session.waiting, session.tail = True, b""
            print_answer({"watching": self.missing})
        return True

    def read(self, session: Session) -> None:
        """Read from a session."""
        data = session.connection.recv(1 << 18)
        now = time.monotonic_ns()
        if not data:
            self.selector.unregister(session.connection)
            del self.sessions[session.connection.fileno()]
            session.connection.close()
            return
        if session.waiting:
            seen = session.tail + data
            if self.expected in seen:
                session.waiting = False
                self.missing -= 1
                if not self.missing:
                    print_answer({"last": now})
            session.tail = seen[-len(self.expected) :]
        if self.wanted is not None:
            self.tally(session, data)

    def tally(self, session: Session, data: bytes) -> None:
        """Count the received prefixes of a session."""
        data = session.rest + data
        at = 0
        while len(data) - at >= 19:
            length, kind = struct.unpack_from("!HB", data, at + 16)
            if len(data) - at < length:
                break
            if kind == 2:
                session.prefixes += announced(data[at + 19 : at + length])
            at += length
        session.rest = data[at:]
        self.counted()

    def counted(self) -> None:
        """Answer ``count`` when all sessions have the prefixes."""
        if self.wanted is None:
            return
        prefixes, sessions = self.wanted
        if sum(session.prefixes >= prefixes for session in self.sessions.values()) >= sessions:
            self.wanted = None
            answer = {"sessions": len(self.sessions), "time": time.monotonic_ns()}
            print_answer({**answer, "first": self.first})


def announced(update: bytes) -> int:
    """Count the IPv4 prefixes that an UPDATE's body announces in its NLRI field."""
    (withdrawn,) = struct.unpack_from("!H", update)
    (attributes,) = struct.unpack_from("!H", update, 2 + withdrawn)
    at = 4 + withdrawn + attributes
    count = 0
    while at < len(update):
        at += 1 + (update[at] + 7) // 8
        count += 1
    return count


def print_answer(answer: dict[str, int]) -> None:
    """Write one answer."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    Sink().run()
